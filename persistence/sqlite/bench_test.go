package sqlite_test

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// variant is one way to do a thing: one call per step, counted from 0.
type variant struct {
	name string
	step func(n int) error
}

// lampWays are the ways to flip a row for ever, the hand-written floor first. Each
// has a row of its own, so that they can be interleaved.
func lampWays(tb testing.TB, store *persistence.Store) []variant {
	bare, journaled := machineOn(tb, store, bareText), machineOn(tb, store, lampText)
	mustCreate(tb, bare, "floor", "named", "plain")
	mustCreate(tb, journaled, "journaled", "pinned")
	ctx := context.Background()
	fire := func(m *engine.Machine, id string, named bool) func(n int) error {
		return func(n int) error {
			transition := "switch_on"
			if n%2 == 1 {
				transition = "switch_off"
			}
			var opts []engine.CallOption
			if named {
				opts = []engine.CallOption{engine.WithVersion(int64(n + 1))}
			}
			res, err := m.FireValues(ctx, transition, id, nil, opts...)
			if err == nil && res.Outcome != engine.Applied {
				tb.Errorf("%s %s: %v", id, transition, res.Outcome)
			}
			return err
		}
	}
	return []variant{
		{"floor", floor(tb, store)},
		{"bare-version-named", fire(bare, "named", true)},
		{"bare", fire(bare, "plain", false)},
		{"journaled", fire(journaled, "journaled", false)},
		{"journaled-version-named", fire(journaled, "pinned", true)},
	}
}

// floor is what a team writes by hand: one prepared conditional UPDATE.
func floor(tb testing.TB, store *persistence.Store) func(n int) error {
	stmt, err := store.DB().Prepare("UPDATE bare_lamp SET status = ?, version = version + 1 WHERE id = ? AND status = ? AND version = ?")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = stmt.Close() })
	ctx := context.Background()
	return func(n int) error {
		from, to := "off", "on"
		if n%2 == 1 {
			from, to = to, from
		}
		res, err := stmt.ExecContext(ctx, to, "floor", from, int64(n+1))
		if err != nil {
			return err
		}
		if rows, err := res.RowsAffected(); err != nil || rows != 1 {
			tb.Errorf("the floor's step %d changed %d rows: %v", n, rows, err)
		}
		return nil
	}
}

func setSync(tb testing.TB, store *persistence.Store, mode string) {
	mustExec(tb, store.DB(), "PRAGMA synchronous = "+mode)
}

func BenchmarkFire(b *testing.B) {
	for _, mode := range []string{"NORMAL", "FULL"} {
		b.Run(mode, func(b *testing.B) {
			store := open(b)
			setSync(b, store, mode)
			for _, v := range lampWays(b, store) {
				n := 0 // goes on over the runs of one variant: the row does too
				b.Run(v.name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if err := v.step(n); err != nil {
							b.Fatal(err)
						}
						n++
					}
				})
			}
		})
	}
}

func BenchmarkAnswers(b *testing.B) {
	store := open(b)
	setSync(b, store, "NORMAL")
	m := machineOn(b, store, orderText)
	ctx := context.Background()
	mustCreate(b, m, "o")
	args := engine.Args{"payment_ref": "r"}
	mustFire(b, m, "pay", "o", args, engine.WithKey("k"))
	run := func(name string, call func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	n := 0
	run("create", func() error {
		n++
		_, err := m.Create(ctx, engine.Row{"id": "c" + strconv.Itoa(n)})
		return err
	})
	run("duplicate", func() error { _, err := m.Fire(ctx, "pay", "o", args); return err })
	run("replay", func() error { _, err := m.Fire(ctx, "pay", "o", args, engine.WithKey("k")); return err })
	run("miss", func() error {
		if _, err := m.Fire(ctx, "ship", "nobody", nil); err == nil {
			return sql.ErrNoRows
		}
		return nil
	})
	run("get", func() error { _, err := m.Get(ctx, "o"); return err })
}

// What a call allocates is pinned: more is a finding, less moves the pin.
func TestAllocations(t *testing.T) { //nolint:paralleltest // it counts the process's allocations
	store := open(t)
	setSync(t, store, "OFF")
	pins := map[string]float64{"floor": 7, "bare-version-named": 17, "bare": 28, "journaled": 50, "journaled-version-named": 44}
	for _, v := range lampWays(t, store) {
		n := 0
		got := testing.AllocsPerRun(200, func() {
			if err := v.step(n); err != nil {
				t.Fatal(err)
			}
			n++
		})
		if got > pins[v.name] {
			t.Errorf("%s: %v allocations per call, at most %v were", v.name, got, pins[v.name])
		}
		t.Logf("%s: %v allocations", v.name, got)
	}
}

// TestRatios measures the figures that are promised, interleaved in one process.
func TestRatios(t *testing.T) {
	if !*ratios {
		t.Skip("only with -ratios: it measures, and wants a quiet machine")
	}
	targets := map[string]map[string]float64{
		"NORMAL": {"bare-version-named": 0.90},
		"FULL":   {"bare-version-named": 0.90, "journaled": 0.75},
	}
	for _, mode := range []string{"NORMAL", "FULL"} {
		store := open(t)
		setSync(t, store, mode)
		ways := lampWays(t, store)
		for i, rates := range interleave(t, ways, 30, 60*time.Millisecond) {
			ratio := median(rates)
			t.Logf("%-6s %-24s x%.2f of the floor", mode, ways[i].name, ratio)
			if want := targets[mode][ways[i].name]; ratio < want {
				t.Errorf("%s %s: x%.2f of the floor, want at least x%.2f", mode, ways[i].name, ratio, want)
			}
		}
	}
}

// interleave runs the variants in turn, each for a slice of time and each round in
// another order, and gives their rates of every round as a share of the first variant's.
func interleave(tb testing.TB, ways []variant, rounds int, slice time.Duration) [][]float64 {
	shares, steps := make([][]float64, len(ways)), make([]int, len(ways))
	for round := range rounds {
		rates := make([]float64, len(ways))
		for turn := range ways {
			i := (round + turn) % len(ways)
			start, first := time.Now(), steps[i]
			for time.Since(start) < slice {
				if err := ways[i].step(steps[i]); err != nil {
					tb.Fatal(err)
				}
				steps[i]++
			}
			rates[i] = float64(steps[i]-first) / time.Since(start).Seconds()
		}
		for i := range ways {
			shares[i] = append(shares[i], rates[i]/rates[0])
		}
	}
	return shares
}

func median(values []float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}
