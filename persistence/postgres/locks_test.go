package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

func TestDeadlockInCallersTransactions(t *testing.T) {
	r, log := recorded(t, order)
	r.create(t, "1", nil)
	r.create(t, "2", nil)
	pay := func(tx *sqlx.Tx, id string) error {
		_, err := r.m.In(tx).Fire(t.Context(), "pay", id, engine.Args{"payment_ref": id})
		return err
	}
	a, b := r.begin(t, 0), r.begin(t, 0)
	check(t, pay(a, "1"))
	check(t, pay(b, "2"))
	log.Reset()
	got := make(chan error, 2)
	go func() { got <- pay(a, "2") }()
	go func() { got <- pay(b, "1") }()
	one, other := <-got, <-got
	if one == nil {
		one, other = other, one
	}
	if !errors.Is(one, engine.ErrBusy) || other != nil {
		t.Errorf("%v and %v, want one ErrBusy", one, other)
	}
	if n := len(log.Events()); n != 2 {
		t.Errorf("%d statements, want the two that met", n)
	}
	_ = a.Rollback()
	_ = b.Rollback()
	r.whole(t)
}

func TestLockTimeoutInCallersTransaction(t *testing.T) {
	r, log := recorded(t, order)
	r.create(t, "1", nil)
	holder, waiter := r.begin(t, 0), r.begin(t, 0)
	_, err := r.m.In(holder).Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
	check(t, err)
	_, err = waiter.Exec("SET LOCAL lock_timeout = 50")
	check(t, err)
	log.Reset()
	_, err = r.m.In(waiter).Fire(t.Context(), "cancel", "1", nil)
	wantBusyLast(t, log, err)
}

// A caller whose own transaction holds the row calls outside of it: no database sees
// that deadlock. The wait ends.
func TestCallOutsideOfOnesOwnTransaction(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn, WithLockTimeout(50*time.Millisecond))
	check(t, err)
	r := bind(t, dsn, store, parse(t, order), engine.WithRetry(engine.Retry{Attempts: 2, Base: time.Millisecond, Cap: time.Millisecond}))
	r.create(t, "1", nil)
	tx := r.begin(t, 0)
	_, err = r.m.In(tx).Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
	check(t, err)
	begun := time.Now()
	if _, err := r.m.Fire(t.Context(), "cancel", "1", nil); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it took %v", took)
	}
	check(t, tx.Commit())
	r.whole(t)
}

// Two transactions each add a line to an order, which locks the order against being
// deleted, and then move it. A stronger lock than the UPDATE's own would make them
// wait for each other.
func TestForeignKeysDoNotDeadlock(t *testing.T) {
	r := open(t, order)
	r.exec(t, "CREATE TABLE lines (order_id text REFERENCES orders)")
	for _, opts := range [][]engine.CallOption{nil, {engine.WithKey("k")}} {
		id := "o"
		if opts != nil {
			id = "keyed"
		}
		r.create(t, id, nil)
		a, b := r.begin(t, 0), r.begin(t, 0)
		for _, tx := range []*sqlx.Tx{a, b} {
			_, err := tx.Exec("INSERT INTO lines VALUES ($1)", id)
			check(t, err)
		}
		pay := func(tx *sqlx.Tx) error {
			_, err := r.m.In(tx).Fire(t.Context(), "pay", id, engine.Args{"payment_ref": "x"}, opts...)
			return err
		}
		check(t, pay(a))
		got := make(chan error)
		go func() { got <- pay(b) }()
		waitForLock(t, r)
		check(t, a.Commit())
		check(t, <-got)
		check(t, b.Commit())
	}
	r.whole(t)
}

// What InTx runs is repeated as a whole after a serialization failure.
func TestInTxRepeats(t *testing.T) {
	r := open(t, counter)
	r.create(t, "1", nil)
	runs := 0
	err := r.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		if _, err := tx.ExecContext(ctx, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"); err != nil {
			return err
		}
		if runs == 1 {
			if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
				return err
			}
			if _, err := r.m.Fire(t.Context(), "add", "1", engine.Args{"by": 1}, engine.WithKey("other")); err != nil {
				return err
			}
		}
		_, err := r.m.In(tx).Fire(ctx, "add", "1", engine.Args{"by": 10}, engine.WithKey("mine"))
		return err
	})
	check(t, err)
	row, err := r.m.Get(t.Context(), "1")
	check(t, err)
	if runs != 2 || row.Row()["n"] != int64(11) {
		t.Errorf("%d runs, n = %v", runs, row.Row()["n"])
	}
	r.whole(t)
}
