package postgres

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
)

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// forLevels runs a test at each isolation level.
func forLevels(t *testing.T, test func(t *testing.T, level sql.IsolationLevel)) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) { test(t, level) })
	}
}

func (r *rig) begin(t testing.TB, level sql.IsolationLevel) *sqlx.Tx {
	t.Helper()
	tx, err := r.store.DB().BeginTxx(context.WithoutCancel(t.Context()), &sql.TxOptions{Isolation: level})
	check(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// usable fails the test where a transaction is aborted.
func usableTx(t testing.TB, tx *sqlx.Tx) {
	t.Helper()
	var one int
	if err := tx.GetContext(t.Context(), &one, "SELECT 1"); err != nil {
		t.Fatalf("the transaction is not usable any more: %v", err)
	}
}

// wantBusyLast: the call ended in ErrBusy, and the statement that failed was the last.
func wantBusyLast(t testing.TB, log *recorder.Log, err error) {
	t.Helper()
	if !errors.Is(err, engine.ErrBusy) {
		t.Fatalf("%v, want ErrBusy", err)
	}
	events := log.Events()
	for i, e := range events {
		if last := i == len(events)-1; (e.Err != nil) != last {
			t.Errorf("statement %d of %d: %s: %v", i+1, len(events), e, e.Err)
		}
	}
}

func TestSameKeyTwiceInOneTransaction(t *testing.T) {
	forLevels(t, func(t *testing.T, level sql.IsolationLevel) {
		r := open(t, counter)
		tx := r.begin(t, level)
		m := r.m.In(tx)
		for _, want := range []engine.Outcome{engine.Applied, engine.Replayed, engine.Replayed} {
			res, err := m.Create(t.Context(), engine.Row{"id": "1"}, engine.WithKey("new"))
			check(t, err)
			if res.Outcome != want {
				t.Errorf("create: %v, want %v", res.Outcome, want)
			}
		}
		for _, want := range []engine.Outcome{engine.Applied, engine.Replayed, engine.Replayed} {
			res, err := m.Fire(t.Context(), "add", "1", engine.Args{"by": 5}, engine.WithKey("k"))
			check(t, err)
			if res.Outcome != want || res.Version != 2 {
				t.Errorf("add: %+v, want %v", res, want)
			}
		}
		for _, transition := range []string{"next", "add"} {
			args := map[string]engine.Args{"add": {"by": 6}}[transition]
			if _, err := m.Fire(t.Context(), transition, "1", args, engine.WithKey("k")); !errors.Is(err, engine.ErrKeyReused) {
				t.Errorf("%s under the same key: %v", transition, err)
			}
		}
		usableTx(t, tx)
		check(t, tx.Commit())
		row, err := r.m.Get(t.Context(), "1")
		check(t, err)
		if row.Row()["n"] != int64(5) || row.Version != 2 {
			t.Errorf("%+v", row)
		}
		r.whole(t)
	})
}

// The row was changed and committed after the transaction's snapshot was taken.
func TestOldSnapshot(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		name, opts := "generated key", []engine.CallOption(nil)
		if keyed {
			name, opts = "caller's key", []engine.CallOption{engine.WithKey("mine")}
		}
		t.Run(name, func(t *testing.T) {
			forLevels(t, func(t *testing.T, level sql.IsolationLevel) {
				r, log := recorded(t, order)
				r.create(t, "1", nil)
				r.create(t, "2", nil)
				tx := r.begin(t, level)
				usableTx(t, tx) // takes the snapshot
				_, err := r.m.Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
				check(t, err)
				log.Reset()
				res, err := r.m.In(tx).Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"}, opts...)
				if level == sql.LevelReadCommitted {
					if err != nil || res.Outcome != engine.AlreadyReached {
						t.Errorf("%v, %v; want AlreadyReached", res.Outcome, err)
					}
					usableTx(t, tx)
					return
				}
				wantBusyLast(t, log, err)
				check(t, tx.Rollback())
				r.whole(t)
			})
		})
	}
}

// Two transactions bring the same key for one row; the second waits for the first.
func TestKeyRaceBetweenTransactions(t *testing.T) {
	for _, commit := range []bool{true, false} {
		forLevels(t, func(t *testing.T, level sql.IsolationLevel) {
			r, log := recorded(t, counter)
			r.create(t, "1", nil)
			first, second := r.begin(t, level), r.begin(t, level)
			add := func(tx *sqlx.Tx) (engine.Result, error) {
				return r.m.In(tx).Fire(t.Context(), "add", "1", engine.Args{"by": 5}, engine.WithKey("k"))
			}
			_, err := add(first)
			check(t, err)
			log.Reset()
			type answer struct {
				res engine.Result
				err error
			}
			got := make(chan answer)
			go func() {
				res, err := add(second)
				got <- answer{res, err}
			}()
			waitForLock(t, r)
			if commit {
				// through the driver, so that the log keeps the second's statements only
				check(t, first.Commit())
			} else {
				check(t, first.Rollback())
			}
			a := <-got
			switch {
			case !commit:
				if a.err != nil || a.res.Outcome != engine.Applied {
					t.Errorf("after a rollback: %v, %v", a.res.Outcome, a.err)
				}
			case level == sql.LevelReadCommitted:
				if a.err != nil || a.res.Outcome != engine.Replayed || a.res.Version != 2 {
					t.Errorf("%+v, %v; want Replayed", a.res, a.err)
				}
				usableTx(t, second)
			default:
				if !errors.Is(a.err, engine.ErrBusy) {
					t.Errorf("%v, want ErrBusy", a.err)
				}
			}
			if a.err == nil {
				check(t, second.Commit())
			} else {
				check(t, second.Rollback())
			}
			row, err := r.m.Get(t.Context(), "1")
			check(t, err)
			if row.Row()["n"] != int64(5) {
				t.Errorf("added %v", row.Row()["n"])
			}
			r.whole(t)
		})
	}
}

// waitForLock returns when a session of the rig waits for a lock.
func waitForLock(t testing.TB, r *rig) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var n int
		check(t, r.store.DB().GetContext(t.Context(), &n, `SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE NOT l.granted AND a.application_name = current_setting('application_name')`))
		if n > 0 {
			return
		}
	}
	t.Fatal("nobody waits for a lock")
}

// Two transactions create the same row.
func TestCreateRaceBetweenTransactions(t *testing.T) {
	forLevels(t, func(t *testing.T, level sql.IsolationLevel) {
		r := open(t, order)
		first, second := r.begin(t, level), r.begin(t, level)
		usableTx(t, second)
		_, err := r.m.In(first).Create(t.Context(), engine.Row{"id": "1"}, engine.WithKey("k"))
		check(t, err)
		got := make(chan error)
		var res engine.Result
		go func() {
			var err error
			res, err = r.m.In(second).Create(t.Context(), engine.Row{"id": "1"}, engine.WithKey("k"))
			got <- err
		}()
		waitForLock(t, r)
		check(t, first.Commit())
		err = <-got
		if level == sql.LevelReadCommitted {
			if err != nil || res.Outcome != engine.Replayed {
				t.Errorf("%v, %v; want Replayed", res.Outcome, err)
			}
			usableTx(t, second)
		} else if !errors.Is(err, engine.ErrBusy) {
			t.Errorf("%v, want ErrBusy", err)
		}
		check(t, second.Rollback())
		r.whole(t)
	})
}

// TestTriggerSkipsTheUpdate: a BEFORE trigger that returns NULL, as one may that archives
// rows, is named as what could be in the way.
func TestTriggerSkipsTheUpdate(t *testing.T) {
	r := open(t, order)
	r.create(t, "o-1", nil)
	r.exec(t, `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
	r.exec(t, `CREATE TRIGGER skip BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION skip()`)
	_, err := r.m.Fire(t.Context(), "cancel", "o-1", nil)
	if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "a trigger") {
		t.Errorf("%v, want it fatal and to name the trigger", err)
	}
	tx, err := r.store.DB().Beginx()
	check(t, err)
	defer tx.Rollback() //nolint:errcheck // it only ends
	_, err = r.m.In(tx).Fire(t.Context(), "cancel", "o-1", nil)
	if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "a trigger") {
		t.Errorf("in a transaction: %v, want it fatal and to name the trigger", err)
	}
}
