package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

const (
	benchCallers = 32
	benchRows    = 64 // per caller, so that callers never meet
	benchSlice   = 60 * time.Millisecond
)

// contender is one way to move a lamp. turn does one call of one caller.
type contender struct {
	name string
	turn func(ctx context.Context, caller, n int) error
	// rates are calls per second, one per round.
	rates []float64
}

// switchable is a lamp with a table, and a journal, of its own.
func switchable(name string, journal bool) string {
	text := `
machine: lamp
table: {name: ` + name + `}
initial: "off"
states: {"off": , "on": }
transitions:
  switch_on:  {from: "off", to: "on"}
  switch_off: {from: "on", to: "off"}
`
	if !journal {
		return text + "journal: false\n"
	}
	return text + "journal: {table: " + name + "_log}\n"
}

// benchPool is the one pool of all contenders.
func benchPool(b *testing.B) *rig {
	b.Helper()
	dsn := servertest.PostgresSchema(b)
	store, err := Open(b.Context(), dsn, WithConnections(benchCallers))
	check(b, err)
	b.Cleanup(func() { check(b, store.Close()) })
	return &rig{dsn: dsn, store: store}
}

// lamps makes a table of rows, and a journal that is not empty.
func (r *rig) lamps(b *testing.B, name string, journal bool, opts ...Option) *rig {
	b.Helper()
	store, err := New(r.store.DB(), opts...)
	check(b, err)
	r = bind(b, r.dsn, store, parse(b, switchable(name, journal)))
	r.exec(b, "INSERT INTO "+name+" SELECT 'c' || c || '-' || n, 'off', 1 FROM generate_series(0, $1 - 1) AS c, generate_series(0, $2 - 1) AS n", benchCallers, benchRows)
	r.exec(b, "ANALYZE "+name)
	if !journal {
		return r
	}
	r.exec(b, "INSERT INTO "+r.def.Journal.Table+` (machine, entity_id, version, transition, to_state, args, key, fingerprint, attempt, at)
SELECT 'lamp', 'old' || n, 1, '', 'off', '{}', md5(n::text), md5(n::text), md5(n::text), now() FROM generate_series(1, 20000) AS n`)
	r.exec(b, "ANALYZE "+r.def.Journal.Table)
	return r
}

func rowOf(caller, n int) string { return fmt.Sprint("c", caller, "-", n%benchRows) }

// way is what the n-th call of a caller does: each round over the rows goes the other way.
func way(n int) (from, to, transition string, version int64) {
	version = int64(n/benchRows) + 1
	if version%2 == 1 {
		return "off", "on", "switch_on", version
	}
	return "on", "off", "switch_off", version
}

func fired(r *rig) func(ctx context.Context, caller, n int) error {
	return func(ctx context.Context, caller, n int) error {
		_, _, transition, _ := way(n)
		res, err := r.m.Fire(ctx, transition, rowOf(caller, n), nil)
		if err == nil && res.Outcome != engine.Applied {
			return fmt.Errorf("%+v", res)
		}
		return err
	}
}

// missed fires what has happened already.
func missed(r *rig) func(ctx context.Context, caller, n int) error {
	r.store.DB().MustExec("UPDATE " + r.def.Table.Name + " SET status = 'on', version = 2")
	return func(ctx context.Context, caller, n int) error {
		res, err := r.m.Fire(ctx, "switch_on", rowOf(caller, n), nil)
		if err == nil && res.Outcome != engine.AlreadyReached {
			return fmt.Errorf("%+v", res)
		}
		return err
	}
}

const handUpdate = " SET status = $1, version = version + 1 WHERE id = $2 AND status = $3 AND version = $4"

// byHand is the prepared UPDATE.
func byHand(b *testing.B, r *rig) func(ctx context.Context, caller, n int) error {
	b.Helper()
	update, err := r.store.DB().PrepareContext(b.Context(), "UPDATE "+r.def.Table.Name+handUpdate)
	check(b, err)
	b.Cleanup(func() { check(b, update.Close()) })
	return func(ctx context.Context, caller, n int) error {
		from, to, _, version := way(n)
		return one(update.ExecContext(ctx, to, rowOf(caller, n), from, version))
	}
}

func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return fmt.Errorf("%d rows, %w", n, err)
	}
	return nil
}

// txByHand is BEGIN; UPDATE; INSERT; COMMIT, prepared.
func txByHand(b *testing.B, r *rig) func(ctx context.Context, caller, n int) error {
	b.Helper()
	prepare := func(text string) *sql.Stmt {
		st, err := r.store.DB().PrepareContext(b.Context(), text)
		check(b, err)
		b.Cleanup(func() { check(b, st.Close()) })
		return st
	}
	update := prepare("UPDATE " + r.def.Table.Name + handUpdate)
	insert := prepare("INSERT INTO " + r.def.Journal.Table + ` (machine, entity_id, version, transition, from_state, to_state, args, key, fingerprint, attempt, actor, meta, topic, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`)
	var serial atomic.Int64
	return func(ctx context.Context, caller, n int) error {
		from, to, transition, version := way(n)
		tx, err := r.store.DB().DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()                                                                                            //nolint:errcheck // after Commit there is nothing to do
		if err := one(tx.StmtContext(ctx, update).ExecContext(ctx, to, rowOf(caller, n), from, version)); err != nil { //nolint:sqlclosecheck // the transaction closes it
			return err
		}
		token := fmt.Sprintf("#%032x", serial.Add(1))
		args := []any{"lamp", rowOf(caller, n), version + 1, transition, from, to, "{}", token, token + token, token, nil, nil, nil, time.Now()}
		if err := one(tx.StmtContext(ctx, insert).ExecContext(ctx, args...)); err != nil { //nolint:sqlclosecheck // the transaction closes it
			return err
		}
		return tx.Commit()
	}
}

// BenchmarkRatios holds the store against statements by hand, interleaved in one run:
// go test -run - -bench Ratios -benchtime 41x ./persistence/postgres
// runs 41 rounds of every contender. The figures are the medians' ratios to the
// prepared UPDATE, and for the journaled ones to the transaction by hand.
func BenchmarkRatios(b *testing.B) {
	for _, n := range []int{1, 8, benchCallers} {
		b.Run(fmt.Sprint("callers=", n), func(b *testing.B) { benchRatios(b, n) })
	}
}

func benchRatios(b *testing.B, n int) {
	b.Helper()
	pool := benchPool(b)
	floor := &contender{name: "update", turn: byHand(b, pool.lamps(b, "floor", false))}
	tx := &contender{name: "tx", turn: txByHand(b, pool.lamps(b, "tx", true))}
	all := []*contender{
		floor, tx,
		{name: "bare", turn: fired(pool.lamps(b, "bare", false, WithoutGroupCommit()))},
		{name: "journaled", turn: fired(pool.lamps(b, "alone", true, WithoutGroupCommit()))},
		{name: "shared", turn: fired(pool.lamps(b, "shared", true))},
		{name: "miss", turn: missed(pool.lamps(b, "miss", true, WithoutGroupCommit()))},
	}
	counts := make([][]int, len(all))
	for i := range counts {
		counts[i] = make([]int, n)
	}
	for i, c := range all { // connections and plans are made
		c.round(b, n, counts[i])
	}
	for _, c := range all {
		c.rates = nil
	}
	b.ResetTimer()
	for round := range b.N {
		for k := range all {
			i := (k + round) % len(all)
			all[i].round(b, n, counts[i])
		}
	}
	b.StopTimer()
	base := floor.median()
	for _, c := range all[1:] {
		b.ReportMetric(c.median()/base, c.name+"/update")
	}
	b.ReportMetric(all[3].median()/tx.median(), "journaled/tx")
	b.ReportMetric(all[5].median()/all[3].median(), "miss/journaled")
	b.ReportMetric(base, "update/s")
	b.ReportMetric(0, "ns/op")
}

// round lets n callers work for a moment.
func (c *contender) round(b *testing.B, n int, counts []int) {
	b.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for caller := range n {
		wg.Go(func() {
			for time.Since(begun) < benchSlice {
				if err := c.turn(context.Background(), caller, counts[caller]); err != nil {
					b.Errorf("%s: %v", c.name, err)
					return
				}
				counts[caller]++
				done.Add(1)
			}
		})
	}
	wg.Wait()
	c.rates = append(c.rates, float64(done.Load())/time.Since(begun).Seconds())
}

func (c *contender) median() float64 {
	s := slices.Sorted(slices.Values(c.rates))
	return s[len(s)/2]
}
