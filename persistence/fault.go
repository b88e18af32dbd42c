package persistence

import (
	"context"
	"errors"

	"github.com/fsmgen/fsmgen/engine"
)

// fault gives an error its class. One that wraps a fault has the class of that, and
// keeps what it says itself: it may be an effect's.
func (s *Store) fault(err error, journal string) error {
	if err == nil {
		return nil
	}
	if _, ok := err.(*engine.Fault); ok { //nolint:errorlint // as it is
		return err
	}
	var f *engine.Fault
	if errors.As(err, &f) {
		return &engine.Fault{Class: f.Class, Err: err, Hint: f.Hint}
	}
	return &engine.Fault{Class: s.d.Classify(err, journal), Err: err}
}

// uncommitted gives an error its class where no COMMIT was sent: whatever broke, the
// server rolls back.
func (s *Store) uncommitted(err error, journal string) error {
	if err == nil || errors.Is(err, errMiss) {
		return err
	}
	err = s.fault(err, journal)
	var f *engine.Fault
	if errors.As(err, &f) && f.Class == engine.ClassUnknown {
		return &engine.Fault{Class: engine.ClassRetryable, Err: f.Err, Hint: f.Hint}
	}
	return err
}

// Classify says what an error of this store's driver means.
func (s *Store) Classify(err error) engine.Class {
	var f *engine.Fault
	if errors.As(err, &f) {
		return f.Class
	}
	return s.d.Classify(err, DefaultJournal)
}

// Waited is the fault of a call that has waited for the writer, or for a connection,
// for as long as it may. It is not repeated: the wait was bounded on purpose.
func Waited(err error) error {
	return &engine.Fault{
		Class: engine.ClassUnsent, Err: err,
		Hint: "another transaction holds the writer; a call made while a transaction is open must go through In(tx)",
	}
}

// RowHeld is the fault of a call that has waited for its row for as long as it may. It is
// not repeated either.
func RowHeld(err error) error {
	return &engine.Fault{
		Class: engine.ClassUnsent, Err: err,
		Hint: "another transaction holds the row; a call made while that transaction is open must go through In(tx)",
	}
}

// unsent is the fault of a context that ended while the call still waited for its turn.
func unsent(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = errors.Join(err, cause) // the caller may look for either
	}
	return &engine.Fault{Class: engine.ClassUnsent, Err: err, Hint: "the context ended while waiting for the writer"}
}
