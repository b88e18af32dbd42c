package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// onEachB runs a benchmark on a fresh store of each of the kinds.
func onEachB(b *testing.B, kinds []kind, run func(b *testing.B, m *engine.Machine), def *definitions.Machine) {
	b.Helper()
	for _, k := range kinds {
		b.Run(k.name, func(b *testing.B) {
			eng, err := engine.New(k.open(b).open(b, def).Store())
			check(b, err)
			m, err := eng.Machine(b.Context(), def)
			check(b, err)
			run(b, m)
		})
	}
}

// BenchmarkGuarded measures one transition three ways, call by call in turn, so that
// whatever else the machine does meets all alike: bare, with a condition and a computed
// field, and with branches. The metrics are the medians' ratios to the bare one.
//
//	go test -run xxx -bench Guarded -benchtime 2000x
func BenchmarkGuarded(b *testing.B) {
	onEachB(b, databases(), func(b *testing.B, m *engine.Machine) {
		b.Helper()
		ways := []string{"plain", "guarded", "branches"}
		took := make([][]time.Duration, len(ways))
		ctx := context.Background()
		for i := range ways {
			_, err := m.Create(ctx, engine.Row{"id": fmt.Sprint("row-", i)})
			check(b, err)
		}
		for n := 0; b.Loop(); n++ {
			for k := range ways {
				i := (k + n) % len(ways)
				id := fmt.Sprint("row-", i)
				begun := time.Now()
				_, err := m.Fire(ctx, ways[i], id, engine.Args{"amount": 9900})
				took[i] = append(took[i], time.Since(begun))
				check(b, err)
				_, err = m.Fire(ctx, "back", id, nil)
				check(b, err)
			}
		}
		b.ReportMetric(float64(median(took[0]).Microseconds()), "plain-µs")
		for i := 1; i < len(ways); i++ {
			b.ReportMetric(float64(median(took[i]))/float64(median(took[0])), ways[i]+"/plain")
		}
	}, load(b, "bench"))
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkHotRow lets 32 callers vote on one row: by the one statement, and by reading
// the row, counting, and writing the version that was read, until that succeeds. Rounds
// of both take turns; the metrics are votes per second.
//
//	go test -run xxx -bench HotRow -benchtime 5x
func BenchmarkHotRow(b *testing.B) {
	const callers, each = 32, 8
	onEachB(b, databases(), func(b *testing.B, m *engine.Machine) {
		b.Helper()
		var pushed, counted time.Duration
		rounds, retries := 0, 0
		for ; b.Loop(); rounds++ {
			ids := []string{fmt.Sprint("pushed-", rounds), fmt.Sprint("counted-", rounds)}
			for _, id := range ids {
				_, err := m.Create(b.Context(), engine.Row{"id": id})
				check(b, err)
				_, err = m.Fire(b.Context(), "open", id, nil)
				check(b, err)
			}
			begun := time.Now()
			voted(b, atOnce(callers, func(i int) (res engine.Result, err error) {
				for n := 0; n < each && err == nil; n++ {
					res, err = m.Fire(context.Background(), "vote", ids[0], engine.Args{"voter": fmt.Sprint(i, "-", n)})
				}
				return res, err
			}))
			pushed += time.Since(begun)
			begun = time.Now()
			tries := make([]int, callers)
			voted(b, atOnce(callers, func(i int) (res engine.Result, err error) {
				for n := 0; n < each && err == nil; n++ {
					res, err = countVote(m, ids[1], &tries[i])
				}
				return res, err
			}))
			counted += time.Since(begun)
			for _, n := range tries {
				retries += n
			}
			for _, id := range ids {
				row, err := m.Get(b.Context(), id)
				check(b, err)
				if row.Row()["votes"] != int64(callers*each) {
					b.Fatalf("%s has %v votes", id, row.Row()["votes"])
				}
			}
		}
		votes := float64(rounds * callers * each)
		b.ReportMetric(votes/pushed.Seconds(), "pushed/s")
		b.ReportMetric(votes/counted.Seconds(), "counted/s")
		b.ReportMetric(counted.Seconds()/pushed.Seconds(), "pushed/counted")
		b.ReportMetric(float64(retries)/votes, "tries/vote")
	}, load(b, "bench"))
}

func voted(b *testing.B, calls []got) {
	b.Helper()
	for _, c := range calls {
		check(b, c.err)
	}
}

// countVote is what a team writes by hand: read, compute, compare and set, again.
func countVote(m *engine.Machine, id string, tries *int) (engine.Result, error) {
	for {
		*tries++
		row, err := m.Get(context.Background(), id)
		if err != nil {
			return engine.Result{}, err
		}
		votes, _ := row.Row()["votes"].(int64)
		res, err := m.Fire(context.Background(), "put_votes", id, engine.Args{"votes": votes + 1}, engine.WithVersion(row.Version))
		if !errors.Is(err, engine.ErrConflict) {
			return res, err
		}
	}
}
