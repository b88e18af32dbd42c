package persistence

import (
	"context"
	"errors"
	"fmt"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/combine"
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
	class := s.d.Classify(err, journal)
	if errors.Is(err, combine.ErrPanicked) { // it may have been after the commit
		class = engine.ClassUnknown
	}
	return &engine.Fault{Class: class, Err: err}
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

// ofCode judges an error of code that ran in a transaction: fn of InTx, or an effect. It is
// a fault of the transaction where the database said so, or where the connection no longer
// stands; all else is the code's own, and stays as it is.
func (s *Store) ofCode(err error, stands bool) error {
	var f *engine.Fault
	var answer *engine.Error
	if errors.As(err, &f) || errors.As(err, &answer) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	class := s.classify(err)
	if (class == engine.ClassRetryable || class == engine.ClassUnknown) && (!stands || s.d.Told(err)) {
		return &engine.Fault{Class: engine.ClassRetryable, Err: err} // no COMMIT was sent
	}
	return err
}

// classify says what an error of this store's driver means.
func (s *Store) classify(err error) engine.Class {
	var f *engine.Fault
	if errors.As(err, &f) {
		return f.Class
	}
	return s.d.Classify(err, DefaultJournal)
}

// For what a call may have waited too long: hints of [Waited].
const (
	queued       = "the calls ahead of it took too long" + throughTx
	NoConnection = "no connection was to be had: those of the pool are taken, or the server does not answer" + throughTx
	Locked       = "another transaction, or too many at once, kept it waiting" + throughTx
	RowHeld      = "another transaction holds the row, or its table" + throughTx

	throughTx = "; a call made while a transaction is open must go through In(tx)"
)

// Waited is the fault of a call that has waited for as long as it may. It is not
// repeated: the wait was bounded on purpose.
func Waited(err error, hint string) error {
	return &engine.Fault{Class: engine.ClassUnsent, Err: err, Hint: hint}
}

// Unsent is the fault of a call whose wait, which failed with err, ended with its context
// or, where that goes on, by itself.
func Unsent(ctx context.Context, err error, hint string) error {
	ended := ctx.Err()
	if ended == nil {
		return Waited(err, hint)
	}
	if cause := context.Cause(ctx); !errors.Is(cause, ended) {
		ended = errors.Join(ended, cause) // the caller may look for either
	}
	return Waited(ended, "the context ended while the call waited for its turn")
}

// Share runs a job in a batch of c. What the job has to say may be read only where there
// is no error: where the context ends while the batch is under way, the batch goes on.
func Share[J any](ctx context.Context, c *combine.Combiner[J], job J) error {
	left, err := c.Do(ctx, job)
	switch {
	case left:
		return Unsent(ctx, err, queued)
	case errors.Is(err, combine.ErrUntold):
		return &engine.Fault{Class: engine.ClassUnknown, Err: fmt.Errorf("%w: %w", err, context.Cause(ctx))}
	}
	return err
}
