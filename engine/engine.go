package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
)

// Engine runs machines against one store. It is safe for concurrent use.
type Engine struct {
	store     Store
	now       func() time.Time
	retry     Retry
	settle    time.Duration
	observers []Observer
}

// New returns an engine over a store. Options that contradict or are nil are errors.
func New(store Store, opts ...Option) (*Engine, error) {
	if store == nil {
		return nil, errors.New("engine: New(nil): open a store first, for example sqlite.Open")
	}
	e := &Engine{store: store, now: wallClock, retry: Retry{Attempts: 12, Base: time.Millisecond, Cap: 50 * time.Millisecond}, settle: settleWithin}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("engine: New: an option is nil")
		}
		if err := opt(e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// Machine verifies the definition's table and returns the machine over it.
// Generated packages call it in their New; without generated code it is the way in.
// Where the definition names Go code, code gives it.
func (e *Engine) Machine(ctx context.Context, def *definitions.Machine, code ...Code) (*Machine, error) {
	if e == nil {
		return nil, errors.New("engine: the engine is nil; make one with engine.New(store)")
	}
	rules, err := NewRules(def)
	if err != nil {
		return nil, err
	}
	all := Code{}
	for _, c := range code {
		maps.Copy(all, c)
	}
	if err := all.check(rules); err != nil {
		return nil, fmt.Errorf("engine: machine %s: %w", def.Name, err)
	}
	table, err := e.store.Bind(ctx, rules)
	if err != nil {
		return nil, fmt.Errorf("engine: machine %s: %w", def.Name, err)
	}
	return &Machine{eng: e, rules: rules, table: table, code: all}, nil
}

// clock is the time of one call: UTC, whole microseconds, as every database keeps it.
func (e *Engine) clock() time.Time { return e.now().UTC().Truncate(time.Microsecond) }

// errOpenTx is why a call, or another transaction, is refused while one is open.
var errOpenTx = errors.New("the context belongs to an open transaction of this store")

// InTx runs fn in one transaction of the store and commits it. It runs fn again, in a
// new transaction, within the engine's bounds on retries: after ErrBusy of a call, an
// error by which the database has ended the transaction, and where its connection broke
// before COMMIT. Other errors, those of a network that fn uses among them, are fn's own.
// Calls of fn go through In(tx), with the context fn is given.
//
// After COMMIT the `after` hooks of the calls run, in the order of the calls; those of a
// call In another transaction are handed back by AfterCommit, as outside of InTx. A wrapper
// of the caller's around tx must embed it to count as tx. A ROLLBACK
// TO a savepoint that fn sends by itself is not seen: the hooks of what it undid run all
// the same.
//
// An error of fn is returned as it is, after ROLLBACK. If the outcome of COMMIT is
// unknown the error is ErrUnknownOutcome and fn is not run again.
func (e *Engine) InTx(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.store.Marked(ctx) {
		return newError(ErrBusy, Error{op: opInTx, cause: errOpenTx, Detail: "use the transaction that is open: a second one would wait for it for ever"})
	}
	for attempt := 1; ; attempt++ {
		queue := &afterQueue{}
		err := e.store.Transact(ctx, func(ctx context.Context, tx Tx) error { return fn(queue.within(ctx, tx), tx) })
		if err == nil {
			e.after(ctx, queue)
			return nil
		}
		var f *Fault
		if direct, ok := err.(*Fault); ok { //nolint:errorlint // only the store's own begin and commit come unwrapped
			f = direct
		}
		switch {
		case f != nil && f.Class == ClassUnsent:
			return newError(ErrBusy, Error{op: opInTx, Detail: f.Hint, cause: f})
		case f != nil && f.Class == ClassUnknown:
			why := cmp.Or(f.Hint, "COMMIT was sent and its answer was lost")
			return newError(ErrUnknownOutcome, Error{op: opInTx, Detail: why + ": read what it wrote, or repeat calls under their keys", cause: f})
		case f != nil && f.Class != ClassRetryable:
			return newError(nil, Error{op: opInTx, Detail: f.Hint, cause: f})
		case f == nil && !again(err):
			return err
		}
		if attempt >= e.retry.Attempts || !e.retry.wait(ctx, attempt) {
			return busyInTx(ctx, err)
		}
	}
}

// after runs the hooks of a committed transaction. The transaction is done, so what
// they return goes to the observers and not to the caller of InTx.
func (e *Engine) after(ctx context.Context, queue *afterQueue) {
	if err := queue.run(context.WithoutCancel(ctx)); err != nil {
		for _, o := range e.observers {
			o.Observe(ctx, Observation{Result: Result{AfterErr: err}})
		}
	}
}

// again reports whether an error of fn is worth another run: that of a call which was
// kept from being applied, and not by the caller's own doing.
func again(err error) bool {
	var f *Fault
	if errors.As(err, &f) && f.Class == ClassUnsent { // it has waited for as long as it may
		return false
	}
	return errors.Is(err, ErrBusy) && !errors.Is(err, ErrUnknownOutcome) && !errors.Is(err, errOpenTx) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func busyInTx(ctx context.Context, err error) error {
	if errors.Is(err, ErrBusy) {
		return err
	}
	return newError(ErrBusy, Error{op: opInTx, Detail: "given up after repeated tries", cause: errors.Join(err, ctx.Err())})
}
