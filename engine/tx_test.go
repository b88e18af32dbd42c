package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"
)

// In a caller's transaction nothing is retried: the whole must be repeated.
func TestInTxNoRetry(t *testing.T) {
	for _, class := range []Class{ClassRetryable, ClassUnknown} {
		s := &fakeStore{apply: []reply{{err: &Fault{Class: class, Err: errDriver, Hint: "somebody holds it"}}}, create: []reply{{err: &Fault{Class: class, Err: errDriver}}}}
		m := machineOver(t, s, orderWith("")).In(fakeTx{})
		_, err := m.ship(context.Background())
		if !errors.Is(err, ErrBusy) || !errors.Is(err, errDriver) {
			t.Errorf("class %d: error %v, want ErrBusy", class, err)
		}
		wantText(t, err, "roll back and repeat the whole transaction", "somebody holds it")
		_, err = m.Create(context.Background(), Row{"id": "o-1"})
		if !errors.Is(err, ErrBusy) || !errors.Is(err, errDriver) {
			t.Errorf("class %d: Create: error %v, want ErrBusy", class, err)
		}
		wantSent(t, s, "apply in tx", "create in tx")
	}
}

// A row that fits now is tried once more at once; a second miss under the lock means
// that SQL and Go disagree.
func TestInTxSecondMissIsBug(t *testing.T) {
	s := &fakeStore{apply: []reply{{}}}
	m := machineOver(t, s, orderWith(""))
	s.inspect = []sight{{snapshot: m.rowIn("paid", 2)}}
	_, err := m.In(fakeTx{}).ship(context.Background())
	wantText(t, err, "BUG", "report")
	for _, kind := range []error{ErrBusy, ErrNotAllowed, ErrConflict, ErrRejected} {
		if errors.Is(err, kind) {
			t.Errorf("error %v also matches %v", err, kind)
		}
	}
	wantSent(t, s, "apply in tx", "inspect in tx", "apply in tx", "inspect in tx")

	s.sent, s.apply = nil, []reply{{}, {change: m.change("paid", "shipped", 3)}}
	if res, err := m.In(fakeTx{}).ship(context.Background()); err != nil || res.Outcome != Applied {
		t.Errorf("result %+v, error %v, want Applied at the second try", res, err)
	}
}

func TestInRefusesPools(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	for _, tx := range []Tx{nil, &sql.DB{}, &sqlx.DB{}} {
		bound := m.In(tx)
		_, fire := bound.ship(context.Background())
		_, create := bound.Create(context.Background(), Row{"id": "o-1"})
		_, get := bound.Get(context.Background(), "o-1")
		_, journal := bound.Journal(context.Background(), "o-1")
		can := bound.Can(context.Background(), "o-1", "ship", nil)
		for _, err := range []error{fire, create, get, journal, can} {
			if !errors.Is(err, ErrInvalidArgs) {
				t.Errorf("In(%T): error %v, want ErrInvalidArgs", tx, err)
			}
			wantText(t, err, "In(")
		}
	}
	for _, tx := range []Tx{&sql.Tx{}, &sqlx.Tx{}, &sql.Conn{}} {
		if err := checkTx(tx); err != nil {
			t.Errorf("In(%T): %v", tx, err)
		}
	}
	wantSent(t, s)
}

// A call with a transaction's context, but not in it, would wait for itself.
func TestMarkedContextIsRefused(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	tries := 0
	err := m.eng.InTx(context.Background(), func(ctx context.Context, tx Tx) error {
		tries++
		if err := m.eng.InTx(ctx, func(context.Context, Tx) error { return nil }); !errors.Is(err, ErrBusy) {
			t.Errorf("a second InTx: %v, want ErrBusy", err)
		}
		_, err := m.ship(ctx)
		return fmt.Errorf("my transaction: %w", err)
	})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("error %v, want ErrBusy", err)
	}
	wantText(t, err, "my transaction", "use In(tx)", "open transaction of this store")
	if tries != 1 {
		t.Errorf("fn ran %d times; it makes the same mistake every time", tries)
	}
	wantSent(t, s, "begin", "rollback")
}

func TestInTx(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	s.apply = []reply{{change: m.change("paid", "shipped", 3)}}
	err := m.eng.InTx(context.Background(), func(ctx context.Context, tx Tx) error {
		_, err := m.In(tx).ship(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSent(t, s, "begin", "apply in tx", "commit")
}

func TestInTxRepeatsWhole(t *testing.T) {
	deadlock := errors.New("deadlock")
	for name, failing := range map[string]error{
		"a call of the engine":      ErrBusy,
		"a statement of the caller": deadlock,
	} {
		s := &fakeStore{ends: deadlock}
		m := machineOver(t, s, orderWith(""))
		tries := 0
		err := m.eng.InTx(context.Background(), func(context.Context, Tx) error {
			if tries++; tries < 3 {
				return fmt.Errorf("wrapped: %w", failing)
			}
			return nil
		})
		if err != nil || tries != 3 {
			t.Errorf("%s: error %v after %d tries, want success at the third", name, err, tries)
		}
		wantSent(t, s, "begin", "rollback", "begin", "rollback", "begin", "commit")

		err = m.eng.InTx(context.Background(), func(context.Context, Tx) error { return failing })
		if !errors.Is(err, ErrBusy) || !errors.Is(err, failing) {
			t.Errorf("%s, for ever: error %v, want ErrBusy that wraps it", name, err)
		}
	}
}

// Everything else of fn is returned as it is, after one run.
func TestInTxReturnsErrorsAsTheyAre(t *testing.T) {
	mine := errors.New("mine")
	unknown := newError(ErrUnknownOutcome, Error{Machine: "another", cause: &Fault{Class: ClassUnknown, Err: ErrBusy}})
	for _, failing := range []error{mine, ErrNotAllowed, context.DeadlineExceeded, context.Canceled, fmt.Errorf("http: %w", context.DeadlineExceeded), unknown} {
		s := &fakeStore{}
		tries := 0
		err := machineOver(t, s, orderWith("")).eng.InTx(context.Background(), func(context.Context, Tx) error { tries++; return failing })
		if err != failing || tries != 1 { //nolint:errorlint // as it is
			t.Errorf("error %v after %d runs, want %v after one", err, tries, failing)
		}
		wantSent(t, s, "begin", "rollback")
	}
}

func TestInTxUnknownCommit(t *testing.T) {
	s := &fakeStore{transact: []error{&Fault{Class: ClassUnknown, Err: errDriver}}}
	tries := 0
	err := machineOver(t, s, orderWith("")).eng.InTx(context.Background(), func(context.Context, Tx) error { tries++; return nil })
	if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, errDriver) || tries != 1 {
		t.Errorf("error %v after %d runs, want ErrUnknownOutcome after one", err, tries)
	}
	s = &fakeStore{transact: []error{&Fault{Class: ClassRetryable, Err: errDriver}, nil}}
	tries = 0
	if err := machineOver(t, s, orderWith("")).eng.InTx(context.Background(), func(context.Context, Tx) error { tries++; return nil }); err != nil || tries != 2 {
		t.Errorf("COMMIT that certainly failed: error %v after %d runs, want success at the second", err, tries)
	}
	s = &fakeStore{transact: []error{&Fault{Class: ClassFatal, Err: errDriver}}}
	if err := machineOver(t, s, orderWith("")).eng.InTx(context.Background(), func(context.Context, Tx) error { return nil }); !errors.Is(err, errDriver) || errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("COMMIT that failed for good: error %v", err)
	}
}

// A context that is dead before anything was sent returns its own error alone.
func TestDeadContext(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, fire := m.ship(ctx)
	_, create := m.Create(ctx, Row{"id": "o-1"})
	_, get := m.Get(ctx, "o-1")
	_, journal := m.Journal(ctx, "o-1")
	inTx := m.eng.InTx(ctx, func(context.Context, Tx) error { return nil })
	for _, err := range []error{fire, create, get, journal, m.Can(ctx, "o-1", "ship", nil), inTx} {
		if err != context.Canceled { //nolint:errorlint // alone
			t.Errorf("error %v, want context.Canceled alone", err)
		}
	}
	wantSent(t, s)
}
