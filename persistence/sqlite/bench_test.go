package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
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
	mustCreate(tb, journaled, "journaled", "pinned", "hand")
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
		{"journaled-by-hand", byHand(tb, store)},
	}
}

// byHand is what a team writes that keeps a history: a transaction of two prepared
// statements, in the journal's own table.
func byHand(tb testing.TB, store *persistence.Store) func(n int) error {
	update, err := store.DB().Prepare("UPDATE lamp SET status = ?, version = version + 1 WHERE id = 'hand' AND status = ? AND version = ?")
	if err != nil {
		tb.Fatal(err)
	}
	insert, err := store.DB().Prepare(`INSERT INTO fsm_journal (machine, entity_id, version, transition, from_state, to_state, args, key, fingerprint, attempt, at)
		VALUES ('lamp', 'hand', ?, ?, ?, ?, '{}', ?, ?, ?, ?)`)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = update.Close(), insert.Close() })
	return func(n int) error {
		from, to := "off", "on"
		if n%2 == 1 {
			from, to = to, from
		}
		tx, err := store.DB().Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()                                            //nolint:errcheck // committed by then
		if _, err := tx.Stmt(update).Exec(to, from, n+1); err != nil { //nolint:sqlclosecheck // it ends with the transaction
			return err
		}
		key := fmt.Sprintf("%032x", rand.Uint64())
		if _, err := tx.Stmt(insert).Exec(n+2, "switch_"+to, from, to, "#"+key, key+key, key, time.Now().UTC().Format(time.RFC3339Nano)); err != nil { //nolint:sqlclosecheck // as above
			return err
		}
		return tx.Commit()
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
	if raceDetector {
		t.Skip("the race detector allocates too")
	}
	store := open(t)
	setSync(t, store, "OFF")
	pins := map[string]float64{"floor": 7, "bare-version-named": 13, "bare": 18, "journaled": 32, "journaled-version-named": 30, "journaled-by-hand": 1000}
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
		medians := interleave(t, ways, 2000)
		for i, took := range medians {
			ratio := float64(medians[0]) / float64(took)
			t.Logf("%-6s %-24s %10v per call, x%.2f of the floor", mode, ways[i].name, took, ratio)
			if want := targets[mode][ways[i].name]; ratio < want {
				t.Errorf("%s %s: x%.2f of the floor, want at least x%.2f", mode, ways[i].name, ratio, want)
			}
		}
	}
}

// interleave runs the variants call by call, each round in another order, and gives the
// median time of a call of each.
func interleave(tb testing.TB, ways []variant, rounds int) []time.Duration {
	took := make([][]time.Duration, len(ways))
	for n := range rounds {
		for _, i := range rand.Perm(len(ways)) {
			start := time.Now()
			if err := ways[i].step(n); err != nil {
				tb.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	medians := make([]time.Duration, len(ways))
	for i := range ways {
		slices.Sort(took[i])
		medians[i] = took[i][rounds/2]
	}
	return medians
}

// BenchmarkSharedCommit shows what there is to win: a call by hand with a commit of its
// own, the statements of a journaled call in a loop of the driver's with 64 to a commit,
// which is as fast as SQLite takes them, and 128 callers of the engine.
func BenchmarkSharedCommit(b *testing.B) {
	b.Run("floor", func(b *testing.B) {
		store := open(b)
		bare := machineOn(b, store, bareText)
		mustCreate(b, bare, "floor")
		step, n := floor(b, store), 0
		for b.Loop() {
			if err := step(n); err != nil {
				b.Fatal(err)
			}
			n++
		}
	})
	b.Run("driver", func(b *testing.B) {
		store := open(b)
		lamps(b, machineOn(b, store, lampText))
		conn, err := store.DB().Conn(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // it goes back
		if err := conn.Raw(func(dc any) error { return driverLoop(b, dc.(driver.Conn)) }); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("engine", func(b *testing.B) {
		store := open(b)
		m := machineOn(b, store, lampText)
		lamps(b, m)
		var callers atomic.Int64
		b.SetParallelism(128 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(pb *testing.PB) {
			own := callers.Add(1) - 1 // one of each 128 rows is its own
			for n := 0; pb.Next(); n++ {
				row := int(own) + n%lampsEach*128
				transition := []string{"switch_on", "switch_off"}[n/lampsEach%2]
				if res, err := m.FireValues(context.Background(), transition, strconv.Itoa(row), nil); err != nil || res.Outcome != engine.Applied {
					b.Errorf("%s %d: %v, %v", transition, row, res.Outcome, err)
					return
				}
			}
		})
	})
}

// lampsEach is how many rows each of 128 callers has.
const lampsEach = 8

func lamps(b *testing.B, m *engine.Machine) {
	b.Helper()
	for i := range 128 * lampsEach {
		mustCreate(b, m, strconv.Itoa(i))
	}
}

// driverLoop flips the rows one after the other.
func driverLoop(b *testing.B, conn driver.Conn) error {
	b.Helper()
	run := map[string]func(args ...driver.Value) error{}
	for name, text := range map[string]string{
		"begin": "BEGIN IMMEDIATE", "commit": "COMMIT", "save": "SAVEPOINT unit", "release": "RELEASE unit",
		"update": "UPDATE lamp SET status = ?, version = version + 1 WHERE id = ? AND status = ?",
		"insert": `INSERT INTO fsm_journal (machine, entity_id, version, transition, from_state, to_state, args, key, fingerprint, attempt, at)
			VALUES ('lamp', ?, ?, 'switch', 'off', 'on', '{}', ?, ?, ?, ?)`,
	} {
		st, err := conn.Prepare(text)
		if err != nil {
			return err
		}
		defer st.Close() //nolint:errcheck // with its connection
		run[name] = func(args ...driver.Value) error {
			_, err := st.Exec(args) //nolint:staticcheck // the driver's own form is what is measured
			return err
		}
	}
	n := 0
	for b.Loop() {
		row, turn := strconv.Itoa(n%(128*lampsEach)), n/(128*lampsEach)
		from, to := "off", "on"
		if turn%2 == 1 {
			from, to = to, from
		}
		key := fmt.Sprintf("%032x", rand.Uint64())
		var err error
		if n%64 == 0 {
			err = run["begin"]()
		}
		err = errors.Join(err, run["save"](), run["update"](to, row, from),
			run["insert"](row, int64(turn+2), "#"+key, key+key, key, time.Now().UTC().Format(time.RFC3339Nano)), run["release"]())
		if n%64 == 63 {
			err = errors.Join(err, run["commit"]())
		}
		if err != nil {
			return err
		}
		n++
	}
	if n%64 != 0 {
		return run["commit"]()
	}
	return nil
}
