package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

var levels = []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}

// TestSameKeyTwiceInTx: applied once, one journal row, and the transaction goes on; on
// a transition that leaves the row where it is only the key can tell.
func TestSameKeyTwiceInTx(t *testing.T) {
	r := open(t, counter)
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			id := level.String()
			r.create(t, id, nil)
			tx, err := r.store.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			check(t, err)
			m := r.m.In(tx)
			for i, want := range []engine.Outcome{engine.Applied, engine.Replayed, engine.Replayed} {
				res, err := m.Fire(t.Context(), "add", id, engine.Args{"by": 5}, engine.WithKey("k"))
				check(t, err)
				if res.Outcome != want || res.Version != 2 {
					t.Errorf("call %d: %v at version %d", i, res.Outcome, res.Version)
				}
			}
			_, err = m.Fire(t.Context(), "add", id, engine.Args{"by": 6}, engine.WithKey("k"))
			if !errors.Is(err, engine.ErrKeyReused) {
				t.Errorf("%v, want ErrKeyReused", err)
			}
			res, err := m.Fire(t.Context(), "next", id, nil)
			check(t, err)
			if res.Version != 3 {
				t.Errorf("the transaction went on to version %d", res.Version)
			}
			check(t, tx.Commit())
			if n := r.entries(t, id); n != 3 {
				t.Errorf("%d entries, want 3", n)
			}
		})
	}
	r.whole(t)
}

// TestOldSnapshot: a caller's transaction that has seen an older row is told to begin
// again, never that the row is what it is not.
func TestOldSnapshot(t *testing.T) {
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
		t.Run(level.String(), func(t *testing.T) {
			r := open(t, order)
			r.create(t, "o-1", nil)
			tx, err := r.store.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
			check(t, err)
			defer tx.Rollback() //nolint:errcheck // it only ends
			var seen string
			check(t, tx.QueryRowContext(t.Context(), "SELECT status FROM orders WHERE id = 'o-1'").Scan(&seen))
			r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
			res, err := r.m.In(tx).Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"})
			if level == sql.LevelReadCommitted {
				if err != nil || res.Outcome != engine.AlreadyReached {
					t.Errorf("%v, %v; want AlreadyReached", res.Outcome, err)
				}
				return
			}
			if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "your snapshot is older than the row") {
				t.Errorf("%v, %v; want ErrBusy", res.Outcome, err)
			}
		})
	}
}

// TestSnapshotIsolation is CASES 24: MariaDB's innodb_snapshot_isolation, the default
// from 11.6 on, answers 1020 where REPEATABLE READ answered with the newer row.
func TestSnapshotIsolation(t *testing.T) {
	cfg := with(servertest.MariaDBDatabase(t), map[string]string{"innodb_snapshot_isolation": "ON"})
	r := openAt(t, cfg, order)
	r.create(t, "o-1", nil)
	r.create(t, "o-2", nil)
	tx, err := r.store.DB().BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	check(t, err)
	var n int
	check(t, tx.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM orders").Scan(&n))
	r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
	_, err = r.m.In(tx).Fire(t.Context(), "ship", "o-1", nil)
	if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "1020") {
		t.Errorf("in the caller's transaction: %v, want ErrBusy with 1020", err)
	}
	check(t, tx.Rollback())
	// In the engine's own: the other comes in between, and it is told at once.
	first, runs := true, 0
	err = r.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
			return err
		}
		if first {
			first = false
			r.fire(t, engine.Applied, "pay", "o-2", engine.Args{"payment_ref": "x"})
		}
		res, err := r.m.In(tx).Fire(ctx, "pay", "o-2", engine.Args{"payment_ref": "x"})
		if err == nil && res.Outcome != engine.AlreadyReached {
			t.Errorf("%v, want AlreadyReached", res.Outcome)
		}
		return err
	})
	check(t, err)
	if runs != 1 {
		t.Errorf("the transaction ran %d times", runs)
	}
	r.whole(t)
}

// TestNothingAfterDeadlock is DBFACTS H.11: after 1213 and 1020 the transaction is
// gone, and what would be sent next would commit by itself.
func TestNothingAfterDeadlock(t *testing.T) {
	for _, number := range []uint16{1213, 1020, 1205} {
		for _, statement := range []string{"UPDATE `orders`", "INSERT INTO `fsm_journal`"} {
			t.Run(fmt.Sprint(number, " ", statement), func(t *testing.T) {
				r, log := recorded(t, order)
				r.create(t, "o-1", nil)
				tx, err := r.store.DB().BeginTx(t.Context(), nil)
				check(t, err)
				defer tx.Rollback() //nolint:errcheck // it only ends
				log.Inject(recorder.Fault{Before: recorder.Once(isText(statement), func(recorder.Event) error { return serverError(number, "gone") })})
				log.Reset()
				_, err = r.m.In(tx).Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
				if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "roll back") {
					t.Errorf("%v, want ErrBusy that says what to do", err)
				}
				texts := log.Texts()
				if last := texts[len(texts)-1]; !strings.HasPrefix(last, statement) {
					t.Errorf("after the error was sent: %s", last)
				}
			})
		}
	}
}

// TestRealDeadlock: two transactions of callers take two rows in opposite order. One
// is told ErrBusy, InTx repeats it, and both are applied once.
func TestRealDeadlock(t *testing.T) {
	r := open(t, counter)
	r.create(t, "x", nil)
	r.create(t, "y", nil)
	for range rounds(5, 50) {
		var both, wg sync.WaitGroup
		both.Add(2)
		for _, ids := range [][]string{{"x", "y"}, {"y", "x"}} {
			wg.Go(func() {
				var once sync.Once
				err := r.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
					for i, id := range ids {
						if i == 1 {
							once.Do(func() { both.Done(); both.Wait() })
						}
						if _, err := r.m.In(tx).Fire(ctx, "add", id, engine.Args{"by": 1}, engine.WithKey(ids[0]+fmt.Sprint(time.Now().UnixNano()))); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	want := int64(1 + 2*rounds(5, 50))
	for _, id := range []string{"x", "y"} {
		if _, version := r.where(t, id); version != want {
			t.Errorf("%s is at version %d, want %d", id, version, want)
		}
	}
	r.whole(t)
}

// TestStrangers: calls on rows and keys that are not there lock nothing that strangers
// need, at any level: their transactions stay open beside each other.
func TestStrangers(t *testing.T) {
	r := open(t, order)
	for i := range 8 {
		r.create(t, fmt.Sprint("o-", 2*i), nil)
	}
	for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead} {
		t.Run(level.String(), func(t *testing.T) {
			var open []*sqlx.Tx
			for i := range 8 {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				tx, err := r.store.DB().BeginTxx(ctx, &sql.TxOptions{Isolation: level})
				check(t, err)
				open = append(open, tx)
				id, key := fmt.Sprint("o-", 2*i), fmt.Sprint(level, i)
				transition := map[bool]string{true: "pay", false: "ship"}[level == sql.LevelReadCommitted]
				args := map[bool]engine.Args{true: {"payment_ref": "x"}}[level == sql.LevelReadCommitted]
				if _, err := r.m.In(tx).Fire(ctx, transition, id, args, engine.WithKey(key)); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				cancel2 := cancel
				t.Cleanup(cancel2)
			}
			for _, tx := range open {
				check(t, tx.Commit())
			}
		})
	}
	r.whole(t)
}

// TestImplicitCommitInTx: a statement that commits by itself has committed what came before
// it, so fn is not run again, and the caller hears what may stand.
func TestImplicitCommitInTx(t *testing.T) {
	r := open(t, counter)
	r.create(t, "x", nil)
	runs := 0
	err := r.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		if _, err := r.m.In(tx).Fire(ctx, "add", "x", engine.Args{"by": 1}, engine.WithKey(fmt.Sprint("k-", runs))); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprint("CREATE TABLE made_", runs, " (n INT)")); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE counters SET n = 1000 WHERE id = 'x'")
		return err
	})
	if !errors.Is(err, engine.ErrUnknownOutcome) || runs != 1 {
		t.Errorf("%v after %d runs, want ErrUnknownOutcome after one", err, runs)
	}
	for _, part := range []string{"deadlock", "CREATE", "rolled back"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	var n int
	check(t, r.store.DB().GetContext(t.Context(), &n, "SELECT n FROM counters WHERE id = 'x'"))
	if n != 1 {
		t.Errorf("n = %d: what came before the statement stands, and what came after does not", n)
	}
	r.whole(t)
}

// TestImplicitCommitInAnEffect: the call's key tells what became of it.
func TestImplicitCommitInAnEffect(t *testing.T) {
	r := open(t, counter)
	r.create(t, "x", nil)
	def := *r.def
	def.Transitions = slices.Clone(def.Transitions)
	at := slices.IndexFunc(def.Transitions, func(tr definitions.Transition) bool { return tr.Name == "add" })
	def.Transitions[at].Effect = "post"
	runs := 0
	m, err := r.eng.Machine(t.Context(), &def, engine.Code{"post": {Effect: func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		runs++
		_, err := tx.ExecContext(ctx, fmt.Sprint("CREATE TABLE made_", runs, " (n INT)"))
		return err
	}}})
	check(t, err)
	res, err := m.Fire(t.Context(), "add", "x", engine.Args{"by": 1}, engine.WithKey("k"))
	check(t, err)
	if res.Outcome != engine.Applied || res.Version != 2 || runs != 1 {
		t.Errorf("%v at version %d after %d runs of the effect", res.Outcome, res.Version, runs)
	}
	r.whole(t)
}

// TestTransactionIsNotBegun: what keeps a transaction from ending unseen comes before fn,
// which does not run without it.
func TestTransactionIsNotBegun(t *testing.T) {
	r, log := recorded(t, order)
	for _, statement := range []string{"SET autocommit", "SAVEPOINT"} {
		log.Inject(recorder.Fault{Before: recorder.Once(isText(statement), func(recorder.Event) error { return serverError(1317, "interrupted") })})
		log.Reset()
		runs := 0
		check(t, r.eng.InTx(t.Context(), func(context.Context, engine.Tx) error { runs++; return nil }))
		if runs != 1 {
			t.Errorf("%s failed: fn ran %d times, want once, in the transaction after it", statement, runs)
		}
	}
	r.whole(t)
}

// A statement of an effect loses a deadlock, which ends the whole transaction. The way
// back to the call's savepoint is the only thing that is sent then, and begins nothing:
// without autocommit any other statement would open a transaction of its own.
func TestDeadlockInAnEffect(t *testing.T) {
	r, log := recorded(t, order)
	def := *r.def
	def.Transitions = slices.Clone(def.Transitions)
	at := slices.IndexFunc(def.Transitions, func(tr definitions.Transition) bool { return tr.Name == "pay" })
	def.Transitions[at].Effect = "post"
	m, err := r.eng.Machine(t.Context(), &def, engine.Code{"post": {Effect: func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		_, err := tx.ExecContext(ctx, "UPDATE orders SET payment_ref = 'effect' WHERE id = 'o-2'")
		return err
	}}})
	check(t, err)
	for _, id := range []string{"o-1", "o-2", "x-1", "x-2", "x-3", "x-4", "x-5", "x-6", "x-7", "x-8"} {
		r.create(t, id, nil)
	}
	conn, err := r.store.DB().Conn(t.Context())
	check(t, err)
	defer conn.Close() //nolint:errcheck // it goes back
	run := func(on engine.Tx, texts ...string) {
		t.Helper()
		for _, text := range texts {
			_, err := on.ExecContext(t.Context(), text)
			check(t, err)
		}
	}
	run(conn, "SET autocommit = 0", "START TRANSACTION")
	// The other has written more, so that the server ends this one. It comes back when the
	// effect waits for its row.
	other, err := r.store.DB().BeginTx(t.Context(), nil)
	check(t, err)
	run(other, "UPDATE orders SET payment_ref = 'x' WHERE id >= 'x'", "UPDATE orders SET payment_ref = 'x' WHERE id = 'o-2'")
	effect := func(e recorder.Event) bool { return strings.Contains(e.Text, "'effect'") }
	done := make(chan error, 1)
	log.Inject(recorder.Fault{Before: recorder.Once(effect, func(recorder.Event) error {
		go func() {
			_, err := other.ExecContext(context.WithoutCancel(t.Context()), "UPDATE orders SET payment_ref = 'x' WHERE id = 'o-1'")
			done <- errors.Join(err, other.Rollback())
		}()
		return nil
	})})
	log.Reset()
	_, err = m.In(conn).Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "p"})
	var server *driver.MySQLError
	if !errors.Is(err, engine.ErrBusy) || !errors.As(err, &server) || server.Number != errDeadlock {
		t.Fatalf("%v, want ErrBusy with the deadlock", err)
	}
	check(t, <-done)
	var sent []string
	events := log.Events()
	lost := slices.IndexFunc(events, effect)
	for _, e := range events[lost+1:] {
		if e.Conn == events[lost].Conn {
			sent = append(sent, e.String())
		}
	}
	if want := []string{"ROLLBACK TO SAVEPOINT fsmgen_call_0"}; !slices.Equal(sent, want) {
		t.Errorf("after the deadlock was sent %q, want %q", sent, want)
	}
	var open int
	check(t, conn.QueryRowContext(t.Context(), "SELECT @@in_transaction").Scan(&open))
	if open != 0 {
		t.Error("a transaction was begun")
	}
	run(conn, "ROLLBACK", "SET autocommit = 1")
	if status, version := r.where(t, "o-1"); status != "pending" || version != 1 || r.entries(t, "o-1") != 1 {
		t.Errorf("o-1 is %s at version %d", status, version)
	}
}
