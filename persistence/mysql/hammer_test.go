package mysql

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/faultproxy"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// TestHammer is DBFACTS H.1, H.2 and H.14: one winner, one effect per key, and not one
// deadlock on the way.
func TestHammer(t *testing.T) {
	for _, transition := range []string{"next", "add"} {
		t.Run(transition, func(t *testing.T) { testHammer(t, transition) })
	}
}

func testHammer(t *testing.T, transition string) {
	r, log := recorded(t, counter)
	for i := range rounds(15, 300) {
		id := rowID(i)
		r.create(t, id, nil)
		log.Reset()
		var applied, replayed, other atomic.Int64
		var wg sync.WaitGroup
		for c := range 16 {
			wg.Go(func() {
				key := fmt.Sprint("k", c%4)
				args := engine.Args(nil)
				if transition == "add" {
					args = engine.Args{"by": c % 4}
				}
				res, err := r.m.Fire(t.Context(), transition, id, args, engine.WithKey(key))
				switch {
				case err != nil:
					t.Error(err)
				case res.Outcome == engine.Applied:
					applied.Add(1)
				case res.Outcome == engine.Replayed:
					replayed.Add(1)
				default:
					other.Add(1)
				}
			})
		}
		wg.Wait()
		want := int64(1)
		if transition == "add" {
			want = 4
		}
		if applied.Load() != want {
			t.Fatalf("row %s: %d applied, %d replayed, %d others; want %d applied", id, applied.Load(), replayed.Load(), other.Load(), want)
		}
		if transition == "add" && replayed.Load() != 12 {
			t.Fatalf("row %s: %d replayed, want 12", id, replayed.Load())
		}
		if _, version := r.where(t, id); version != 1+want {
			t.Fatalf("row %s is at version %d", id, version)
		}
		for _, e := range log.Events() {
			if e.Err != nil && errors.Is(e.Err, serverError(1213, "")) {
				t.Fatalf("a deadlock: %s", e.Text)
			}
		}
	}
	r.whole(t)
}

// TestCreateHammer: many create the same row; the ones that lose the race inside the
// INSERT are told like those that saw it.
func TestCreateHammer(t *testing.T) {
	r, log := recorded(t, order)
	for i := range rounds(15, 100) {
		id := rowID(i)
		var applied, others atomic.Int64
		var wg sync.WaitGroup
		log.Reset()
		for c := range 16 {
			wg.Go(func() {
				var opts []engine.CallOption
				if c%2 == 0 {
					opts = append(opts, engine.WithKey("k"))
				}
				res, err := r.m.Create(t.Context(), engine.Row{"id": id, "payment_ref": "x"}, opts...)
				switch {
				case err != nil:
					t.Error(err)
				case res.Outcome == engine.Applied:
					applied.Add(1)
				default:
					others.Add(1)
				}
			})
		}
		wg.Wait()
		if applied.Load() != 1 || others.Load() != 15 {
			t.Fatalf("%d applied, %d others", applied.Load(), others.Load())
		}
		for _, e := range log.Events() {
			if e.Err != nil && errors.Is(e.Err, serverError(1213, "")) {
				t.Fatalf("a deadlock: %s", e.Text)
			}
		}
	}
	r.whole(t)
}

// TestChaos is DBFACTS H.8: a proxy cuts before and after the server acted and
// swallows answers. Requests = applied = sum of versions.
func TestChaos(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	r := openAt(t, cfg, counter) // past the proxy
	ctx := t.Context()
	proxy, err := faultproxy.Start(ctx, cfg.Addr, 7)
	check(t, err)
	defer proxy.Close() //nolint:errcheck // the test is over
	broken := cfg.Clone()
	broken.Addr, broken.ReadTimeout = proxy.Addr(), time.Second
	store, err := Open(ctx, broken.FormatDSN(), WithConnections(8))
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	through := bind(t, broken, store, counter)
	const rows = 8
	for i := range rows {
		r.create(t, rowID(i), nil)
	}
	proxy.Set(faultproxy.Plan{CutBefore: 0.15, CutAfter: 0.15, Swallow: 0.01, SwallowAnswer: 0.01, Skip: 4})
	requests := rounds(200, 2000)
	var unknown, attempts atomic.Int64
	var wg sync.WaitGroup
	todo := make(chan int)
	for range 8 {
		wg.Go(func() {
			for n := range todo {
				id, key, args := rowID(n%rows), fmt.Sprint("req-", n), engine.Args{"by": 1}
				for { // as a client would: until there is an answer
					attempts.Add(1)
					ctx, cancel := context.WithTimeout(ctx, time.Duration(200+rand.IntN(2000))*time.Millisecond)
					_, err := through.m.Fire(ctx, "add", id, args, engine.WithKey(key))
					cancel()
					if err == nil {
						break
					}
					if errors.Is(err, engine.ErrUnknownOutcome) {
						unknown.Add(1)
					} else if !errors.Is(err, engine.ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("request %d: %v", n, err)
						return
					}
				}
			}
		})
	}
	for n := range requests {
		todo <- n
	}
	close(todo)
	wg.Wait()
	proxy.Set(faultproxy.Plan{})
	t.Logf("%d requests, %d attempts, %d unknown outcomes, proxy %+v", requests, attempts.Load(), unknown.Load(), proxy.Counts())
	var sum, entries, n int
	check(t, r.store.DB().QueryRowContext(ctx, "SELECT SUM(version - 1), SUM(n) FROM counters").Scan(&sum, &n))
	check(t, r.store.DB().GetContext(ctx, &entries, "SELECT COUNT(*) FROM fsm_journal WHERE transition = 'add'"))
	if sum != requests || entries != requests || n != requests {
		t.Errorf("%d requests, versions add up to %d, n to %d, %d entries", requests, sum, n, entries)
	}
	r.whole(t)
	through.idle(t)
}

// TestCancelled is DBFACTS H.10: what was called not applied was not applied.
func TestCancelled(t *testing.T) {
	r := open(t, counter)
	r.create(t, "x", nil)
	version := int64(1)
	var unknown, no int
	for i := range rounds(400, 10000) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(1500))*time.Microsecond)
		key := fmt.Sprint("k", i)
		_, err := r.m.Fire(ctx, "add", "x", engine.Args{"by": 1}, engine.WithKey(key))
		cancel()
		_, now := r.where(t, "x")
		switch {
		case err == nil:
			version++
		case errors.Is(err, engine.ErrUnknownOutcome):
			unknown++
			applied := now > version
			res, err := r.m.Fire(t.Context(), "add", "x", engine.Args{"by": 1}, engine.WithKey(key))
			check(t, err)
			if res.Outcome != engine.Replayed && (applied || res.Outcome != engine.Applied) { // its statement may have ended since
				t.Fatalf("call %d: the row had moved, %v: repeated it is %v", i, applied, res.Outcome)
			}
			version++
			_, now = r.where(t, "x")
		default:
			no++
		}
		if now != version {
			t.Fatalf("call %d: %v, and the row is at version %d, want %d", i, err, now, version)
		}
	}
	t.Logf("%d not applied, %d unknown", no, unknown)
	r.whole(t)
}

// TestKilled: KILL of the connection, and of the query, at random moments.
func TestKilled(t *testing.T) {
	r := open(t, counter, WithConnections(4))
	r.create(t, "x", nil)
	admin, err := pool(r.cfg)
	check(t, err)
	defer admin.Close() //nolint:errcheck // it only kills
	ctx, stop := context.WithCancel(t.Context())
	var kills sync.WaitGroup
	kills.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			var ids []int64
			if err := admin.SelectContext(ctx, &ids, "SELECT id FROM information_schema.PROCESSLIST WHERE db = ? AND id <> CONNECTION_ID()", r.cfg.DBName); err != nil {
				continue
			}
			if len(ids) > 0 {
				_, _ = admin.ExecContext(ctx, fmt.Sprintf("KILL %s %d", []string{"QUERY", "CONNECTION"}[i%2], ids[rand.IntN(len(ids))]))
			}
			// Longer than it takes to read the row's history, which is long in the end.
			time.Sleep(time.Duration(rounds(2, 20)) * time.Millisecond)
		}
	})
	var calls sync.WaitGroup
	const callers = 4
	each := rounds(60, 1000)
	for c := range callers {
		calls.Go(func() {
			for i := range each {
				if _, err := r.m.Fire(t.Context(), "add", "x", engine.Args{"by": 1}, engine.WithKey(fmt.Sprint(c, "-", i))); err != nil {
					if errors.Is(err, engine.ErrBusy) || errors.Is(err, engine.ErrUnknownOutcome) {
						r.again(t, fmt.Sprint(c, "-", i))
						continue
					}
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	stop()
	kills.Wait()
	if _, version := r.where(t, "x"); version != int64(1+callers*each) {
		t.Errorf("the row is at version %d, want %d", version, 1+callers*each)
	}
	r.whole(t)
}

// TestKilledInCompound: a compound that is stopped from outside leaves no transaction
// open to whoever gets the connection next.
func TestKilledInCompound(t *testing.T) {
	r := open(t, counter, WithConnections(1))
	r.create(t, "x", nil)
	r.create(t, "y", nil)
	free := r.hold(t, "x")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() { // this caller cannot give up, so the compound waits for the row
		_, err := r.m.Fire(context.WithoutCancel(ctx), "add", "x", engine.Args{"by": 1}, engine.WithKey("k"))
		done <- err
	}()
	admin, err := pool(r.cfg)
	check(t, err)
	defer admin.Close() //nolint:errcheck // it only kills
	for killed, end := 0, time.Now().Add(5*time.Second); killed < 2; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing waits for the row")
		}
		var id int64
		if err := admin.GetContext(ctx, &id, "SELECT id FROM information_schema.PROCESSLIST WHERE db = ? AND id <> CONNECTION_ID() AND command IN ('Query', 'Execute')", r.cfg.DBName); err != nil {
			continue
		}
		_, err := admin.ExecContext(ctx, fmt.Sprint("KILL QUERY ", id))
		check(t, err)
		killed++
	}
	free()
	check(t, <-done)
	r.fire(t, engine.Applied, "next", "y", nil)
	if n := r.entries(t, "x"); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	r.whole(t)
}

// TestStatementTimeout: the server ends a wait; its row is freed later, and the same
// call applies.
func TestStatementTimeout(t *testing.T) {
	r := open(t, counter, WithConnections(1), WithLockWait(20*time.Second), WithStatementTimeout(time.Second))
	r.create(t, "x", nil)
	r.create(t, "y", nil)
	free := r.hold(t, "x")
	done := make(chan error, 1)
	go func() {
		_, err := r.m.Fire(context.Background(), "add", "x", engine.Args{"by": 1}, engine.WithKey("k"))
		done <- err
	}()
	time.Sleep(1500 * time.Millisecond)
	free()
	check(t, <-done)
	r.fire(t, engine.Applied, "next", "y", nil)
	r.fire(t, engine.Replayed, "add", "x", engine.Args{"by": 1}, engine.WithKey("k"))
	r.whole(t)
}

// again repeats a call under its key until it is answered.
func (r *rig) again(t *testing.T, key string) {
	var err error
	for range 100 {
		if _, err = r.m.Fire(t.Context(), "add", "x", engine.Args{"by": 1}, engine.WithKey(key)); err == nil {
			return
		}
	}
	t.Errorf("key %s was not settled in 100 tries: %v", key, err)
}

// TestQueueBehindHeldRow: of many calls on a row that somebody else holds only a few wait
// for it in the database, each on a connection of its own; the others share commits when
// it is free.
func TestQueueBehindHeldRow(t *testing.T) {
	r := open(t, counter)
	r.create(t, "hot", nil)
	free := r.hold(t, "hot")
	var wg sync.WaitGroup
	for c := range 30 {
		wg.Go(func() {
			if _, err := r.m.Fire(t.Context(), "add", "hot", engine.Args{"by": 1}, engine.WithKey(fmt.Sprint("k", c))); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	if n := r.store.DB().Stats().InUse; n > 10 {
		t.Errorf("%d of 30 calls wait in the database", n)
	}
	free()
	wg.Wait()
	if _, version := r.where(t, "hot"); version != 31 {
		t.Errorf("the row is at version %d, want 31", version)
	}
	r.whole(t)
}

// account has conditions on what the database writes by itself.
const account = `
machine: account
table: {name: accounts}
fields:
  total: {type: int, default: 0}
  twice: {type: int, default: 0}
initial: open
states: {open: , full: {final: true}}
transitions:
  add:
    from: open
    to: open
    key: required
    args: {by: int}
    when: total + args.by <= 100
    set: {total: total + args.by}
  bound:
    from: open
    to: open
    key: required
    args: {by: int}
    when: twice + 2 * args.by <= 20
    set: {total: total + args.by}
  fill: {from: open, to: full}
`

// TestBatchOnARowTheDatabaseWritesTo: calls on one row share a commit, each judged by
// what those before it leave; a trigger, also one made later, and a computed column
// leave something else.
func TestBatchOnARowTheDatabaseWritesTo(t *testing.T) {
	const fee = "CREATE TRIGGER fee BEFORE UPDATE ON accounts FOR EACH ROW SET NEW.total = NEW.total + 1"
	for name, test := range map[string]struct {
		transition, alter string
		again             bool // bound again behind the change
		applied, total    int
	}{
		"trigger":            {"add", fee, true, 50, 100},
		"trigger made later": {"add", fee, false, 50, 100},
		"computed column":    {"bound", "ALTER TABLE accounts DROP COLUMN twice, ADD COLUMN twice BIGINT GENERATED ALWAYS AS (total * 2) STORED", false, 10, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, account)
			r.create(t, "a", nil)
			r.exec(t, test.alter)
			if test.again {
				r = bind(t, r.cfg, r.store, account)
			}
			var applied atomic.Int64
			var wg sync.WaitGroup
			for c := range 32 {
				wg.Go(func() {
					for n := range 10 {
						res, err := r.m.Fire(t.Context(), test.transition, "a", engine.Args{"by": 1}, engine.WithKey(fmt.Sprint("k", c, "-", n)))
						switch {
						case err == nil && res.Outcome == engine.Applied:
							applied.Add(1)
						case !errors.Is(err, engine.ErrRejected):
							t.Errorf("%v, %v", res.Outcome, err)
						}
					}
				})
			}
			wg.Wait()
			var total int
			check(t, r.store.DB().GetContext(t.Context(), &total, "SELECT total FROM accounts WHERE id = 'a'"))
			if int(applied.Load()) != test.applied || total != test.total {
				t.Errorf("%d applied and a total of %d, want %d and %d", applied.Load(), total, test.applied, test.total)
			}
			r.idle(t)
		})
	}
}

// sample has a field of every type that is judged in Go.
const sample = `
machine: sample
table: {name: samples}
fields:
  s: {type: string, nullable: true}
  i: {type: int, default: 0}
  b: {type: bool, default: false}
  t: {type: time, nullable: true}
  d: {type: decimal, default: 0}
  y: {type: bytes, nullable: true}
  j: {type: json, nullable: true}
initial: a
states: {a: , z: {final: true}}
transitions:
  write:
    from: a
    to: a
    key: required
    args: {s: string, t: time, d: decimal, y: bytes, j: json}
    set: {s: args.s, i: i + 1, b: not b, t: args.t, d: args.d, y: args.y, j: args.j}
  end: {from: a, to: z}
`

// TestCallsOnOneRowShareCommits: the values of every type are found as they were written,
// so the batch stands.
func TestCallsOnOneRowShareCommits(t *testing.T) {
	r, log := recorded(t, sample)
	r.create(t, "a", nil)
	var wg sync.WaitGroup
	for c := range 16 {
		wg.Go(func() {
			for n := range 20 {
				args := engine.Args{
					"s": fmt.Sprint("Ä ", c), "t": time.Now(), "d": fmt.Sprintf("%d.%06d", c*1_000_000, n), "y": []byte{0, 255, byte(n)},
					"j": fmt.Sprintf(`{"b": 1.50, "a": [%d, "é"]}`, n),
				}
				if _, err := r.m.Fire(t.Context(), "write", "a", args, engine.WithKey(fmt.Sprint("k", c, "-", n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	shared := 0
	for _, e := range log.Events() {
		if strings.HasPrefix(e.Text, "BEGIN NOT ATOMIC UPDATE") && strings.Contains(e.Text, "<=>") {
			shared++
			if e.Err != nil {
				t.Fatalf("a batch was not to stand: %v", e.Err)
			}
		}
	}
	if shared == 0 && r.maria(t) {
		t.Error("no batch had two calls on the row")
	}
	r.whole(t)
}

func (r *rig) maria(t *testing.T) bool {
	t.Helper()
	var version string
	check(t, r.store.DB().GetContext(t.Context(), &version, "SELECT version()"))
	return strings.Contains(version, "MariaDB")
}

// TestMissAfterAnUndoneBatch: a batch is undone because its journal entries have to wait.
// Meanwhile a row moves, and what was judged to fit does not fit any more.
func TestMissAfterAnUndoneBatch(t *testing.T) {
	r := open(t, order, WithLockWait(time.Second))
	ref := engine.Args{"payment_ref": "x"}
	var warm sync.WaitGroup
	for i := range 16 { // so that calls share commits from the first
		id := fmt.Sprint("warm", i)
		r.create(t, id, nil)
		warm.Go(func() { r.fire(t, engine.Applied, "pay", id, ref) })
	}
	warm.Wait()
	for round := range 3 {
		id := func(i int) string { return fmt.Sprint("o", round, "-", i) }
		const rows = 12
		for i := range rows {
			r.create(t, id(i), nil)
		}
		blocker, err := r.store.DB().BeginTx(t.Context(), nil)
		check(t, err)
		for i := range rows / 2 { // whoever comes first goes alone
			_, err = blocker.ExecContext(t.Context(), "INSERT INTO fsm_journal (machine, entity_id, version, transition, to_state, `key`, fingerprint, attempt, at) VALUES ('order', ?, 2, 'pay', 'paid', ?, '', '', NOW())", id(i), id(i))
			check(t, err)
		}
		var calls sync.WaitGroup
		for i := range rows {
			calls.Go(func() {
				res, err := r.m.Fire(t.Context(), "pay", id(i), ref)
				if row, version := r.where(t, id(i)); err == nil && (res.State != row || res.Version != version) {
					t.Errorf("%s: %v to %s at version %d, and the row is %s at version %d", id(i), res.Outcome, res.State, res.Version, row, version)
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		var moves sync.WaitGroup
		for i := rows / 2; i < rows; i++ {
			moves.Go(func() { // it waits until the batch is undone, or in vain
				_, _ = r.store.DB().ExecContext(t.Context(), "UPDATE orders SET status = 'cancelled', version = version + 1 WHERE id = ? AND status = 'pending'", id(i)) //nolint:errcheck // as above
			})
		}
		moves.Wait()
		check(t, blocker.Rollback())
		calls.Wait()
	}
}
