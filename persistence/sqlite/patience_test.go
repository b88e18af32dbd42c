package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// wait is how long the store of withRollbackJournal waits for a lock.
const wait = 600 * time.Millisecond

// withRollbackJournal is a machine on a pool of the user's own that keeps a rollback
// journal, in which readers and writers hold each other off.
func withRollbackJournal(t *testing.T) (*sqlx.DB, *engine.Machine) {
	t.Helper()
	db, err := sqlx.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "x.db")+"?_journal_mode=DELETE&_busy_timeout=0&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlite.New(db, sqlite.WithWait(wait))
	if err != nil {
		t.Fatal(err)
	}
	return db, machineOn(t, store, lampText)
}

// A pool of the user's own that keeps a rollback journal: whoever reads holds up a COMMIT,
// which waits as a BEGIN does.
func TestCommitWaitsForReaders(t *testing.T) {
	t.Parallel()
	for name, batch := range map[string]int{"alone": 1, "together": 8} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, m := withRollbackJournal(t)
			for i := range batch {
				mustCreate(t, m, fmt.Sprint(i))
			}
			fire := func(transition string, want error) {
				t.Helper()
				var wg sync.WaitGroup
				for i := range batch {
					wg.Go(func() {
						start := time.Now()
						_, err := m.Fire(context.Background(), transition, fmt.Sprint(i), nil)
						if !errors.Is(err, want) {
							t.Errorf("%s: %v, want %v", transition, err, want)
						}
						if took := time.Since(start); took > 3*wait {
							t.Errorf("%s: took %v, and a call waits %v", transition, took, wait)
						}
					})
				}
				wg.Wait()
			}
			stop := reads(t, db)
			time.AfterFunc(wait/3, stop)
			fire("switch_on", nil)
			stop = reads(t, db)
			fire("switch_off", engine.ErrBusy)
			stop()
			fire("switch_off", nil)
		})
	}
}

// There a write holds off readers: they wait, as long as the store says.
func TestReadWaitsForAWriter(t *testing.T) {
	t.Parallel()
	db, m := withRollbackJournal(t)
	mustCreate(t, m, "1")
	for _, held := range []time.Duration{wait / 3, 2 * wait} {
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.ExecContext(t.Context(), "BEGIN EXCLUSIVE"); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		time.AfterFunc(held, func() {
			_, err := conn.ExecContext(context.Background(), "ROLLBACK")
			done <- errors.Join(err, conn.Close())
		})
		start := time.Now()
		_, err = m.Get(t.Context(), "1")
		took := time.Since(start)
		if held < wait && err != nil || held > wait && (!errors.Is(err, engine.ErrBusy) || took > held) {
			t.Errorf("held for %v: %v after %v", held, err, took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// reads has somebody read until stop is called.
func reads(t *testing.T, db *sqlx.DB) (stop func()) {
	t.Helper()
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := conn.GetContext(t.Context(), &n, "SELECT count(*) FROM lamp"); err != nil {
		t.Fatal(err)
	}
	return func() {
		_, err := conn.ExecContext(context.Background(), "ROLLBACK")
		if err = errors.Join(err, conn.Close()); err != nil {
			t.Error(err)
		}
	}
}

// Another process holds the lock, and the caller in whose goroutine a batch runs has a
// deadline: it is told in time, and the others of its batch go on waiting.
func TestLeaderLeaves(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	store, other := openAt(t, path), openAt(t, path)
	m := machineOn(t, store, lampText)
	mustCreate(t, m, "1", "2", "3")
	tx := other.DB().MustBegin()
	conn, err := store.DB().Conn(t.Context()) // holds up the first until the others are there
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	fire := func(id string, patience time.Duration, want error) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			start := time.Now()
			_, err := m.Fire(ctx, "switch_on", id, nil)
			if took := time.Since(start); !errors.Is(err, want) || (want != nil && took > 2*patience) {
				t.Errorf("%s: %v after %v, want %v after %v at most", id, err, took, want, patience)
			}
		})
		time.Sleep(30 * time.Millisecond)
	}
	fire("1", 300*time.Millisecond, context.DeadlineExceeded) // leads
	fire("2", time.Minute, nil)
	fire("3", 400*time.Millisecond, context.DeadlineExceeded)
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	mustFire(t, m, "switch_on", "1", nil) // it was not applied, and somebody is at work
}
