package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// mattn/go-sqlite3#204: in memory every connection of a pool would have a database
// of its own.
func TestMemory(t *testing.T) {
	t.Parallel()
	store := openAt(t, ":memory:", sqlite.WithWait(100*time.Millisecond))
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	count := together(t, 32, func(int) (engine.Outcome, error) {
		if _, err := m.Get(context.Background(), "o"); err != nil {
			return 0, err
		}
		res, err := m.Fire(context.Background(), "pay", "o", engine.Args{"payment_ref": "r"})
		return res.Outcome, err
	})
	if count[engine.Applied] != 1 || count[engine.AlreadyReached] != 31 {
		t.Errorf("outcomes %v, want one Applied and 31 duplicates", count)
	}
	other := openAt(t, ":memory:")
	if _, err := other.DB().Exec("SELECT * FROM orders"); err == nil {
		t.Error("two stores in memory share a database")
	}
}

// One connection, an open transaction, and a call beside it: an error, no deadlock.
func TestMemoryCallBesideTransaction(t *testing.T) {
	t.Parallel()
	store := openAt(t, ":memory:", sqlite.WithWait(50*time.Millisecond))
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	err = eng.InTx(context.Background(), func(ctx context.Context, tx engine.Tx) error {
		if _, err := m.Fire(ctx, "ship", "o", nil); !errors.Is(err, engine.ErrBusy) {
			t.Errorf("a call with the transaction's context, but not in it: %v, want ErrBusy at once", err)
		}
		for what, call := range map[string]func() error{
			"fire": func() error { _, err := m.Fire(context.Background(), "ship", "o", nil); return err },
			"get":  func() error { _, err := m.Get(context.Background(), "o"); return err },
		} {
			start := time.Now()
			if err := call(); !errors.Is(err, engine.ErrBusy) {
				t.Errorf("%s beside an open transaction: %v, want ErrBusy", what, err)
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("%s beside an open transaction took %v", what, took)
			}
		}
		_, err := m.In(tx).Fire(ctx, "pay", "o", engine.Args{"payment_ref": "r"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := m.Get(context.Background(), "o"); err != nil || e.State != "paid" {
		t.Errorf("after the transaction: %+v, %v", e, err)
	}
}

// together runs n calls at once and counts their outcomes; an error ends the test.
func together(t *testing.T, n int, call func(i int) (engine.Outcome, error)) map[engine.Outcome]int {
	t.Helper()
	outcomes := make([]engine.Outcome, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { outcomes[i], errs[i] = call(i) })
	}
	wg.Wait()
	count := map[engine.Outcome]int{}
	for i := range n {
		if errs[i] != nil {
			t.Errorf("call %d: %v", i, errs[i])
		}
		count[outcomes[i]]++
	}
	return count
}

// foreign opens a pool as a user does, with the driver's defaults, and a store on it.
func foreign(t *testing.T, params string, opts ...sqlite.Option) (*sqlx.DB, *persistence.Store) {
	t.Helper()
	db := sqlx.MustOpen("sqlite3", "file:"+filepath.Join(t.TempDir(), "x.db")+params)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	store, err := sqlite.New(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return db, store
}

// mattn/go-sqlite3#274: a deferred transaction that reads first and then writes gets
// BUSY_SNAPSHOT at once. Twenty callers on twenty rows of a default pool all get
// through.
func TestDefaultPool(t *testing.T) {
	t.Parallel()
	for _, params := range []string{"", "?_journal_mode=WAL&_busy_timeout=5000", "?_journal_mode=WAL&_busy_timeout=0&_stmt_cache_size=64", "?_txlock=immediate", "?_txlock=exclusive&_journal_mode=WAL"} {
		db, store := foreign(t, params)
		m := machineOn(t, store, orderText)
		for i := range 20 {
			mustCreate(t, m, fmtInt(i))
		}
		var beside atomic.Int64
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { // the team's own writer, in its own transactions
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := db.Exec("UPDATE orders SET amount = amount + 1 WHERE id = '0'"); err == nil {
					beside.Add(1)
				}
				time.Sleep(time.Millisecond) //nolint:forbidigo // a writer now and then, not all the time
			}
		})
		count := together(t, 20, func(i int) (engine.Outcome, error) {
			res, err := m.Fire(context.Background(), "pay", fmtInt(i), engine.Args{"payment_ref": "r"})
			return res.Outcome, err
		})
		close(stop)
		wg.Wait()
		if count[engine.Applied] != 20 {
			t.Errorf("%q: outcomes %v, want 20 Applied", params, count)
		}
		if n := db.Stats().InUse; n != 0 {
			t.Errorf("%q: %d connections in use", params, n)
		}
	}
}

// In a caller's deferred transaction that has read, and was overtaken: ErrBusy at
// once, however long the driver would wait.
func TestDeferredSnapshot(t *testing.T) {
	t.Parallel()
	db, store := foreign(t, "?_journal_mode=WAL&_busy_timeout=10000")
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "a", "b")
	tx := db.MustBegin()
	defer tx.Rollback() //nolint:errcheck // its end is the test
	var status string
	if err := tx.Get(&status, "SELECT status FROM orders WHERE id = 'a'"); err != nil {
		t.Fatal(err)
	}
	mustFire(t, m, "pay", "b", engine.Args{"payment_ref": "r"})
	start := time.Now()
	_, err := m.In(tx).Fire(context.Background(), "pay", "a", engine.Args{"payment_ref": "r"})
	if !errors.Is(err, engine.ErrBusy) || time.Since(start) > time.Second {
		t.Errorf("error %v after %v, want ErrBusy at once", err, time.Since(start))
	}
}

// mattn/go-sqlite3#863: the driver waits for a lock without looking at the context.
// The store does not let it, and what it gave up is not written later.
func TestDeadlineBeatsBusyTimeout(t *testing.T) {
	t.Parallel()
	for _, ours := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "x.db")
		store := openAt(t, path)
		if !ours {
			db := sqlx.MustOpen("sqlite3", "file:"+path+"?_journal_mode=WAL&_busy_timeout=10000")
			defer db.Close() //nolint:errcheck // for reading
			var err error
			if store, err = sqlite.New(db); err != nil {
				t.Fatal(err)
			}
		}
		m := machineOn(t, store, orderText)
		bare := machineOn(t, store, bareText)
		mustCreate(t, m, "o")
		mustCreate(t, bare, "l")
		holder := sqlx.MustOpen("sqlite3", "file:"+path+"?_txlock=immediate")
		defer holder.Close() //nolint:errcheck // as above
		held := holder.MustBegin()
		for what, call := range map[string]func(ctx context.Context) error{
			"fire": func(ctx context.Context) error {
				_, err := m.Fire(ctx, "pay", "o", engine.Args{"payment_ref": "r"})
				return err
			},
			"bare": func(ctx context.Context) error {
				_, err := bare.Fire(ctx, "switch_on", "l", nil, engine.WithVersion(1))
				return err
			},
			"create": func(ctx context.Context) error { _, err := m.Create(ctx, engine.Row{"id": "n"}); return err },
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			start := time.Now()
			err := call(ctx)
			took := time.Since(start)
			cancel()
			if took > time.Second || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrUnknownOutcome) {
				t.Errorf("ours %v, %s: %v after %v, want the context's error after 100 ms", ours, what, err, took)
			}
		}
		if err := held.Rollback(); err != nil {
			t.Fatal(err)
		}
		mustFire(t, m, "cancel", "o", nil) // the writer is free: a straggler would have been first
		if e, err := m.Get(context.Background(), "o"); err != nil || e.State != "cancelled" || e.Version != 2 {
			t.Errorf("ours %v: after the holder ended: %+v, %v", ours, e, err)
		}
		if _, err := m.Get(context.Background(), "n"); !errors.Is(err, engine.ErrNotFound) {
			t.Errorf("ours %v: a creation that was given up: %v", ours, err)
		}
		if !ours { // the caller's setting is as it was
			var timeout int
			if err := store.DB().Get(&timeout, "PRAGMA busy_timeout"); err != nil || timeout != 10000 {
				t.Errorf("busy_timeout is %d, %v", timeout, err)
			}
		}
	}
}

// Waiting for a writer that nobody gives back is bounded, and says what to do.
func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	store := open(t, sqlite.WithWait(60*time.Millisecond))
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	tx := store.DB().MustBegin()
	defer tx.Rollback() //nolint:errcheck // its end is the test
	count := 0
	for err := range fireAll(m, 8) {
		if count++; !errors.Is(err, engine.ErrBusy) {
			t.Errorf("error %v, want ErrBusy", err)
		}
		if want := "must go through In(tx)"; err == nil || !containsText(err, want) {
			t.Errorf("error %v, want it to say %q", err, want)
		}
	}
	if count != 8 {
		t.Errorf("%d calls answered, want 8", count)
	}
	if _, err := m.Get(context.Background(), "o"); err != nil {
		t.Errorf("readers do not wait for the writer: %v", err)
	}
}

// fireAll ships the same row n times at once and gives each error.
func fireAll(m *engine.Machine, n int) <-chan error {
	out := make(chan error, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			_, err := m.Fire(context.Background(), "cancel", "o", nil)
			out <- err
		})
	}
	wg.Wait()
	close(out)
	return out
}

func containsText(err error, part string) bool {
	return strings.Contains(err.Error(), part)
}
