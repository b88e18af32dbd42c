package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/faultproxy"
)

// proxied is a rig whose store goes through a fault proxy; its tables exist.
func proxied(t *testing.T, yaml string, seed uint64, opts ...Option) (*rig, *faultproxy.Proxy, *rig) {
	t.Helper()
	direct := open(t, yaml)
	proxy, err := faultproxy.Start(t.Context(), target(t, direct.dsn), seed)
	check(t, err)
	t.Cleanup(func() { check(t, proxy.Close()) })
	dsn := through(t, direct.dsn, proxy.Addr())
	store, err := Open(t.Context(), dsn, append([]Option{WithConnections(8)}, opts...)...)
	check(t, err)
	return bind(t, dsn, store, direct.def), proxy, direct
}

// insist repeats a call under its key until it has an answer, as a caller would.
func insist(t testing.TB, attempt time.Duration, key string, call func(ctx context.Context, opts ...engine.CallOption) (engine.Result, error)) (engine.Result, int) {
	t.Helper()
	var opts []engine.CallOption
	if key != "" {
		opts = append(opts, engine.WithKey(key))
	}
	for n := 1; n < 1000; n++ {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), attempt)
		res, err := call(ctx, opts...)
		cancel()
		var e *engine.Error
		switch {
		case err == nil:
			return res, n
		case errors.Is(err, engine.ErrUnknownOutcome) && errors.As(err, &e) && e.Key != "":
			opts = []engine.CallOption{engine.WithKey(e.Key)}
		case errors.Is(err, engine.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		default:
			t.Errorf("%v", err)
			return res, n
		}
	}
	t.Error("no answer after a thousand tries")
	return engine.Result{}, 0
}

// Invariant H.8: whatever the network does, requests = applied = sum of versions.
func TestChaos(t *testing.T) {
	for name, opts := range map[string][]Option{"sharing commits": nil, "without": {WithoutGroupCommit()}} {
		t.Run(name, func(t *testing.T) { chaos(t, opts...) })
	}
}

func chaos(t *testing.T, opts ...Option) {
	r, proxy, direct := proxied(t, counter, 7, opts...)
	const workers, rows = 8, 8
	for i := range rows {
		direct.create(t, fmt.Sprint("a", i), nil)
		direct.create(t, fmt.Sprint("b", i), nil)
	}
	proxy.Set(faultproxy.Plan{CutBefore: 0.15, CutAfter: 0.15, Swallow: 0.01, SwallowAnswer: 0.01, Delay: 0.02, DelayFor: 30 * time.Millisecond, Skip: 1})
	requests, attempts := int64(rounds(240, 2000)), atomic.Int64{}
	var next, moved atomic.Int64
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			cycle := []string{"next", "more", "back"}
			for i := next.Add(1); i <= requests; i = next.Add(1) {
				id, transition, args, key := fmt.Sprint("a", i%rows), "add", engine.Args{"by": 1}, fmt.Sprint("k", i)
				if i%3 == 0 { // a row of the worker's own, under generated keys
					id, transition, args, key = fmt.Sprint("b", w), cycle[0], nil, ""
					cycle = append(cycle[1:], cycle[0])
					moved.Add(1)
				}
				res, n := insist(t, 400*time.Millisecond, key, func(ctx context.Context, opts ...engine.CallOption) (engine.Result, error) {
					return r.m.Fire(ctx, transition, id, args, opts...)
				})
				attempts.Add(int64(n))
				if res.Outcome != engine.Applied && res.Outcome != engine.Replayed {
					t.Errorf("%s %s: %+v", transition, id, res)
				}
			}
		})
	}
	wg.Wait()
	proxy.Set(faultproxy.Plan{})
	counts := proxy.Counts()
	t.Logf("%d requests in %d calls; the proxy: %+v", requests, attempts.Load(), counts)
	if counts.Before == 0 || counts.After == 0 {
		t.Error("the proxy cut nothing")
	}
	var sum struct{ Versions, N, Entries int64 }
	check(t, direct.store.DB().GetContext(t.Context(), &sum, `SELECT sum(version - 1) AS versions, sum(n) AS n,
  (SELECT count(*) FROM fsm_journal WHERE transition <> '') AS entries FROM counters`))
	if sum.Versions != requests || sum.Entries != requests || sum.N != requests-moved.Load() {
		t.Errorf("%d requests, of which %d moved a row: %+v", requests, moved.Load(), sum)
	}
	direct.whole(t)
}

// Invariant H.9. The row is locked, the network dies, the deadline passes: the
// statement is still on its way when the caller asks again.
func TestZombie(t *testing.T) {
	r, proxy, direct := proxied(t, counter, 1)
	direct.create(t, "1", nil)
	holder := direct.begin(t, 0)
	_, err := holder.Exec("SELECT 1 FROM counters FOR UPDATE")
	check(t, err)
	go func() {
		waitForLock(t, direct)
		proxy.Freeze()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = r.m.Fire(ctx, "add", "1", engine.Args{"by": 1}, engine.WithKey("k"))
	if !errors.Is(err, engine.ErrUnknownOutcome) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, want ErrUnknownOutcome for the deadline", err)
	}
	row, err := direct.m.Get(t.Context(), "1")
	check(t, err)
	if row.Version != 1 {
		t.Fatal("it was applied before the lock was free: the test shows nothing")
	}
	proxy.Set(faultproxy.Plan{})
	got := make(chan engine.Result)
	go func() {
		res, _ := insist(t, 5*time.Second, "k", func(ctx context.Context, opts ...engine.CallOption) (engine.Result, error) {
			return r.m.Fire(ctx, "add", "1", engine.Args{"by": 1}, opts...)
		})
		got <- res
	}()
	time.Sleep(50 * time.Millisecond)
	check(t, holder.Commit())
	res := <-got
	row, err = direct.m.Get(t.Context(), "1")
	check(t, err)
	if res.Version != 2 || row.Version != 2 || row.Row()["n"] != int64(1) {
		t.Errorf("%+v; the row is %+v", res, row)
	}
	direct.whole(t)
}

// The connection breaks while the statement waits; the engine asks again on another.
func TestConnectionBreaksWhileWaiting(t *testing.T) {
	r, proxy, direct := proxied(t, counter, 1)
	direct.create(t, "1", nil)
	holder := direct.begin(t, 0)
	_, err := holder.Exec("SELECT 1 FROM counters FOR UPDATE")
	check(t, err)
	go func() {
		waitForLock(t, direct)
		proxy.CutAll()
		time.Sleep(50 * time.Millisecond)
		check(t, holder.Commit())
	}()
	res, err := r.m.Fire(t.Context(), "next", "1", nil)
	check(t, err)
	if res.Outcome != engine.Applied || res.Version != 2 {
		t.Errorf("%+v", res)
	}
	time.Sleep(50 * time.Millisecond)
	row, err := direct.m.Get(t.Context(), "1")
	check(t, err)
	if row.Version != 2 {
		t.Errorf("%+v", row)
	}
	direct.whole(t)
}

// A call whose deadline passes while it waits for a row is over when it returns: the
// server has said so, and the row can be freed.
func TestDeadlineEndsTheStatement(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r := open(t, counter, opts...)
		r.create(t, "1", nil)
		calls, lost := 0, 0
		for range rounds(5, 50) {
			var unknown atomic.Int32 // a connection that closed under the call proves nothing
			holder := r.begin(t, 0)
			_, err := holder.Exec("SELECT 1 FROM counters FOR UPDATE")
			check(t, err)
			together(8, func(i int) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(20+10*i)*time.Millisecond)
				defer cancel()
				_, err := r.m.Fire(ctx, "next", "1", nil)
				if errors.Is(err, engine.ErrUnknownOutcome) {
					unknown.Add(1)
				} else if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want a deadline at which nothing was applied", err)
				}
			})
			calls, lost = calls+8, lost+int(unknown.Load())
			check(t, holder.Commit())
			time.Sleep(20 * time.Millisecond)
			row, err := r.m.Get(t.Context(), "1")
			check(t, err)
			if row.Version != 1 && unknown.Load() == 0 {
				t.Fatal("a call that was told to have ended was applied")
			}
			if row.Version != 1 {
				r = open(t, counter, opts...)
				r.create(t, "1", nil)
			}
		}
		if lost*10 > calls {
			t.Errorf("%d of %d calls did not learn that they had ended", lost, calls)
		}
		r.whole(t)
	})
}

// A statement that nobody waits for any more ends by the DSN's timeout.
func TestStrayStatementEnds(t *testing.T) {
	r, proxy, direct := proxied(t, counter, 1, WithStatementTimeout(400*time.Millisecond))
	direct.create(t, "1", nil)
	holder := direct.begin(t, 0)
	_, err := holder.Exec("SELECT 1 FROM counters FOR UPDATE")
	check(t, err)
	go func() {
		waitForLock(t, direct)
		proxy.Freeze()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	if _, err = r.m.Fire(ctx, "next", "1", nil); !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Fatalf("%v, want ErrUnknownOutcome", err)
	}
	time.Sleep(700 * time.Millisecond)
	check(t, holder.Commit())
	time.Sleep(100 * time.Millisecond)
	row, err := direct.m.Get(t.Context(), "1")
	check(t, err)
	if row.Version != 1 {
		t.Errorf("the statement lived on: %+v", row)
	}
}

// pg_terminate_backend at any time: applied once, whatever was told.
func TestTerminatedBackends(t *testing.T) {
	r := open(t, counter, WithConnections(4))
	r.create(t, "1", nil)
	killer := open(t, lamp)
	var application string // of this test's own connections: others run on the server too
	check(t, r.store.DB().Get(&application, "SELECT current_setting('application_name')"))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Millisecond):
			}
			_, _ = killer.store.DB().Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = $1 ORDER BY random() LIMIT 1`, application)
		}
	})
	n := rounds(150, 2000)
	for i := range n {
		insist(t, 5*time.Second, fmt.Sprint(i), func(ctx context.Context, opts ...engine.CallOption) (engine.Result, error) {
			return r.m.Fire(ctx, "add", "1", engine.Args{"by": 1}, opts...)
		})
	}
	close(stop)
	wg.Wait()
	row, err := r.m.Get(t.Context(), "1")
	check(t, err)
	if row.Row()["n"] != int64(n) || row.Version != int64(n+1) {
		t.Errorf("%d calls, the row is %+v", n, row)
	}
	r.whole(t)
}

// TestCancelBesideAnError: a context ends at the moment when the server reports an error. The
// one is handled beside the call, and touches nothing that the call does.
func TestCancelBesideAnError(t *testing.T) {
	r := open(t, counter)
	conn, err := r.store.DB().Conn(t.Context())
	check(t, err)
	defer conn.Close() //nolint:errcheck // it goes back
	check(t, conn.Raw(func(dc any) error {
		pg := dc.(*stdlib.Conn).Conn().PgConn()
		handler := newCanceller(pg)
		if wasCancelled(pg) {
			t.Error("nobody has cancelled anything yet")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		done := make(chan struct{})
		go func() {
			defer close(done)
			handler.HandleCancel(ctx)
		}()
		for range 1000 {
			note(pg, &pgconn.PgError{Code: "23505"})
		}
		<-done
		handler.HandleUnwatchAfterCancel()
		if !wasCancelled(pg) {
			t.Error("the connection does not know that it was cancelled")
		}
		return nil
	}))
}
