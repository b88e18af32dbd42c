package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

// What a deliberate attack on the stores found, each as the answer it must have been.

const attacked = `
machine: ord
table: {name: ords}
fields: {balance: {type: int, default: 100}}
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  pay:      {from: a, to: b}
  ship:     {from: b, to: c}
  withdraw: {from: a, to: a, args: {n: int}, key: required, set: {balance: balance - args.n}}
  add:      {from: a, to: a, key: required}
`

// TestOneAppliedBesideAHeldRow: a batch in which a row is held is undone and runs again
// in parts. What a member was told in the undone round is not its answer.
func TestOneAppliedBesideAHeldRow(t *testing.T) {
	onEach(t, databases()[1:], func(s *site) {
		for round := range 4 {
			hot, held := fmt.Sprint("hot-", round), fmt.Sprint("held-", round)
			s.create(s.t, s.m, engine.Row{"id": hot})
			s.create(s.t, s.m, engine.Row{"id": held})
			tx, err := s.Begin(s.t.Context(), storetest.SqlxTx, 0)
			check(s.t, err)
			_, err = s.m.In(tx.Tx).Fire(s.t.Context(), "pay", held, nil)
			check(s.t, err)
			var applied [2]atomic.Int32
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Go(func() {
					at, id := 0, hot
					if i%4 == 3 {
						at, id = 1, held
					}
					res, err := s.m.Fire(s.t.Context(), "pay", id, nil)
					if err != nil {
						s.t.Error(err)
					}
					if res.Outcome == engine.Applied {
						applied[at].Add(1)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			check(s.t, tx.Rollback())
			wg.Wait()
			if applied[0].Load() != 1 || applied[1].Load() != 1 {
				s.t.Fatalf("round %d: %d and %d calls were told Applied", round, applied[0].Load(), applied[1].Load())
			}
		}
	}, parse(t, attacked))
}

// TestDuplicateThatMeetsAConstraint: the second run of a call finds the constraint that
// the first one has used up, and is a duplicate all the same.
func TestDuplicateThatMeetsAConstraint(t *testing.T) {
	onEach(t, databases()[1:], func(s *site) {
		_, err := s.db.ExecContext(s.t.Context(), "ALTER TABLE ords ADD CHECK (balance >= 0)")
		check(s.t, err)
		s.create(s.t, s.m, engine.Row{"id": "x"})
		for i, want := range []engine.Outcome{engine.Applied, engine.Replayed} {
			res, err := s.m.Fire(s.t.Context(), "withdraw", "x", engine.Args{"n": 100}, engine.WithKey("k"))
			if err != nil || res.Outcome != want {
				s.t.Errorf("call %d: %v %v, want %v", i, res.Outcome, err, want)
			}
		}
		_, err = s.m.Fire(s.t.Context(), "withdraw", "x", engine.Args{"n": 1}, engine.WithKey("other"))
		if err == nil || errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "constraint") {
			s.t.Errorf("another call: %v, want the constraint", err)
		}
	}, parse(t, attacked))
}

// TestLostTransaction: a deadlock ends the transaction on MariaDB, and fn goes on as if
// nothing had happened. Nothing of it may be committed. The database does not tell that
// from a statement that has committed the transaction, so fn does not run again by itself.
func TestLostTransaction(t *testing.T) {
	onEach(t, databases()[2:], func(s *site) {
		for _, id := range []string{"x", "y", "z"} {
			s.create(s.t, s.m, engine.Row{"id": id})
		}
		runs, lost := 0, 0
		pay := func(ctx context.Context, tx engine.Tx) error {
			runs++
			_, err := s.m.In(tx).Fire(ctx, "pay", "x", nil)
			check(s.t, err)
			if runs == 1 {
				lost += s.deadlock(tx, "x", "y")
			}
			if _, err := s.m.In(tx).Fire(ctx, "pay", "z", nil); err != nil && runs > 1 {
				return err
			}
			return nil // whatever happened above
		}
		at := func(version int64) {
			s.t.Helper()
			for _, id := range []string{"x", "z"} {
				entries, err := s.m.Journal(s.t.Context(), id)
				check(s.t, err)
				if e, err := s.m.Get(s.t.Context(), id); err != nil || e.Version != version || int64(len(entries)) != version {
					s.t.Errorf("%s: %+v %v, %d entries, want version %d", id, e, err, len(entries), version)
				}
			}
		}
		err := s.eng.InTx(s.t.Context(), pay)
		if !errors.Is(err, engine.ErrUnknownOutcome) || !strings.Contains(err.Error(), "deadlock") || lost != 1 || runs != 1 {
			s.t.Fatalf("%v after %d runs, lost %d", err, runs, lost)
		}
		at(1)
		check(s.t, s.eng.InTx(s.t.Context(), pay))
		at(2)
	}, parse(t, attacked))
}

// deadlock makes the transaction, which holds the first row, the victim of a deadlock
// over the second, and ignores the error. It returns 1 if that came about.
func (s *site) deadlock(tx engine.Tx, first, second string) int {
	other, err := s.db.BeginTxx(s.t.Context(), nil)
	check(s.t, err)
	// The server takes back the transaction that has written less.
	_, err = other.Exec("UPDATE ords SET balance = balance + 1 WHERE id = ?", second)
	check(s.t, err)
	for n := range 200 {
		_, err = other.Exec("INSERT INTO ords (id, status, version, balance) VALUES (?, 'a', 1, 0)", fmt.Sprint("filler-", n))
		check(s.t, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := other.Exec("UPDATE ords SET balance = balance + 1 WHERE id = ?", first)
		done <- err
	}()
	time.Sleep(100 * time.Millisecond)
	_, err = tx.ExecContext(s.t.Context(), "UPDATE ords SET balance = balance + 1 WHERE id = ?", second)
	check(s.t, errors.Join(<-done, other.Rollback()))
	if err != nil {
		return 1
	}
	return 0
}

// TestOwnWriteDoesNotHideAnOldSnapshot: at REPEATABLE READ on MariaDB the journal that a
// transaction reads can lack what others committed, and its own write makes row and
// snapshot look alike.
func TestOwnWriteDoesNotHideAnOldSnapshot(t *testing.T) {
	onEach(t, databases()[2:], func(s *site) {
		s.create(s.t, s.m, engine.Row{"id": "x"})
		tx, err := s.Begin(s.t.Context(), storetest.SqlxTx, 0)
		check(s.t, err)
		_, err = s.m.In(tx.Tx).Get(s.t.Context(), "x") // the snapshot is of now
		check(s.t, err)
		_, err = s.m.Fire(s.t.Context(), "add", "x", nil, engine.WithKey("p"))
		check(s.t, err)
		for _, key := range []string{"q", "p"} {
			if res, err := s.m.In(tx.Tx).Fire(s.t.Context(), "add", "x", nil, engine.WithKey(key)); !errors.Is(err, engine.ErrBusy) {
				s.t.Errorf("key %s: %v %v, want ErrBusy: the snapshot is older than the row", key, res.Outcome, err)
			}
		}
		check(s.t, tx.Rollback())
	}, parse(t, attacked))
}

// TestRowAtVersionZero: rows made elsewhere may stand at any version.
func TestRowAtVersionZero(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		for i := range 2 { // by itself, and in a transaction
			id := fmt.Sprint("zero-", i)
			check(s.t, s.Insert(s.t.Context(), s.m.Definition(), engine.Row{"id": id, "status": "a", "version": int64(0), "balance": int64(1)}))
			m := s.m
			var tx *storetest.Tx
			if i == 1 {
				var err error
				tx, err = s.Begin(s.t.Context(), s.txForm(), 0)
				check(s.t, err)
				m = s.m.In(tx.Tx)
			}
			res, err := m.Fire(s.t.Context(), "pay", id, nil)
			if err != nil || res.Version != 1 {
				s.t.Errorf("%+v %v, want version 1", res, err)
			}
			if tx != nil {
				check(s.t, tx.Commit())
			}
		}
	}, parse(t, attacked))
}
