package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// lost notes a write whose answer never came.
func (a *attempt) lost(f *Fault) {
	if a.unknown = f; a.since.IsZero() {
		a.since = time.Now()
	}
}

// failed decides what an error of the write means: done with an error for the
// caller, or a repeated write (done false, err not nil), or a look at the row.
func (m *Machine) failed(ctx context.Context, a *attempt, err error) (done bool, _ error) {
	var f *Fault
	if !errors.As(err, &f) {
		f = &Fault{Class: ClassFatal, Err: err}
	}
	switch f.Class {
	case ClassDuplicateKey:
		return false, nil
	case ClassUnsent:
		if a.unknown == nil {
			return true, m.callError(ErrBusy, a, f.Hint, f)
		}
	case ClassRetryable:
		return m.repeat(ctx, a, f)
	case ClassUnknown:
		if m.tx != nil { // never committed: the caller's transaction is gone
			return m.repeat(ctx, a, f)
		}
		a.lost(f)
		if !m.settles(a) {
			return true, m.unknownOutcome(a, ctx.Err())
		}
		return m.repeat(ctx, a, f)
	case ClassStray:
		return true, m.callError(ErrUnknownOutcome, a, f.Hint, f)
	case ClassVersionTaken, ClassConstraint, ClassFatal:
		if m.keySeen(ctx, a) { // a row that was put back by hand, a constraint that the first run has used up, a trigger that refuses
			return false, nil
		}
		if f.Class == ClassVersionTaken && a.creates() && a.unknown == nil { // it starts behind the journal, which has grown since it was read
			return m.repeat(ctx, a, &Fault{Class: ClassRetryable, Err: f.Err, Hint: "rows of this id come and go under the call"})
		}
	}
	switch {
	case a.unknown != nil: // an earlier write may have been applied all the same, or may be yet
		return true, m.unknownOutcome(a, f)
	case f.Class == ClassVersionTaken:
		return true, m.versionTaken(a, f)
	case f.Class == ClassConstraint:
		detail := "a constraint of the table refused the change; nothing was applied"
		if a.creates() {
			detail = "a constraint of the table refused the row; nothing was created"
		}
		return true, m.callError(nil, a, detail, f)
	}
	return true, m.callError(nil, a, f.Hint, f)
}

// settles reports whether running the call again can tell what happened: the key does, or
// the id of a creation, and for a bare transition a named version or a graph without way
// back.
func (m *Machine) settles(a *attempt) bool {
	return m.rules.def.Journal.Enabled || a.creates() || a.asks.Version != AnyVersion || m.rules.transitions[a.asks.Transition].rerunnable()
}

func (m *Machine) repeat(ctx context.Context, a *attempt, f *Fault) (bool, error) {
	if err := m.again(ctx, a, f); err != nil {
		return true, err
	}
	return false, f
}

// again waits before the next try, or says why there is none.
func (m *Machine) again(ctx context.Context, a *attempt, cause *Fault) error {
	if m.tx != nil {
		return m.againInTx(ctx, a, cause)
	}
	if cause == nil && a.dropped() {
		return m.droppedWrite(a)
	}
	more := a.sends < m.eng.retry.Attempts || (a.unknown != nil && m.eng.patient(ctx, a.since))
	if ctx.Err() == nil && more && m.eng.retry.wait(ctx, a.sends) {
		return nil
	}
	if a.unknown != nil {
		return m.unknownOutcome(a, ctx.Err())
	}
	detail := fmt.Sprintf("given up after %d tries; repeat the call", a.sends)
	if cause != nil {
		if cause.Hint != "" {
			detail = cause.Hint + "; " + detail
		}
		return m.callError(ErrBusy, a, detail, errors.Join(error(cause), ctx.Err()))
	}
	return m.callError(ErrBusy, a, "the row kept changing under the call; "+detail, ctx.Err())
}

// againInTx: inside the caller's transaction an error of the database ends the
// call; a row that fits now is tried once more under the lock just taken. Where the
// context has ended the error says so too: drivers report a broken connection instead.
func (m *Machine) againInTx(ctx context.Context, a *attempt, cause *Fault) error {
	if cause != nil {
		detail := "roll back and repeat the whole transaction"
		if cause.Hint != "" {
			detail = cause.Hint + "; " + detail
		}
		return m.callError(ErrBusy, a, detail, errors.Join(error(cause), ctx.Err()))
	}
	if a.misses++; a.misses == 1 {
		return nil
	}
	if a.creates() { // where there is no row there is nothing to lock
		return m.callError(ErrBusy, a, "rows of this id come and go under the call; roll back and repeat the whole transaction", ctx.Err())
	}
	return m.droppedWrite(a)
}

// droppedWrite: the call fits the row, which nobody has changed, and so did its write not.
func (m *Machine) droppedWrite(a *attempt) error {
	why := "a trigger, a rule or a row policy of the table that drops the UPDATE does this"
	if guard := m.rules.def.Transitions[a.asks.Transition].Guard; guard != "" {
		why = "guard " + guard + " may have written to it, or " + why
	}
	return m.callError(nil, a, "the call fits the row, and the UPDATE changed nothing: "+why+"; if it is not that, it is a BUG: please report the definition and the row", nil)
}

const unknownHint = "the write was sent and its answer was lost; repeat the call with engine.WithKey(err.Key) (a derived key: as it was) to learn the outcome"

func (m *Machine) unknownOutcome(a *attempt, why error) *Error {
	hint := unknownHint
	if !m.rules.def.Journal.Enabled {
		hint = "the write was sent and its answer was lost; the machine has no journal to settle it: read the row"
	}
	return m.callError(ErrUnknownOutcome, a, hint, errors.Join(a.unknown, why))
}

func (m *Machine) inspectError(ctx context.Context, a *attempt, err error) error {
	if a.unknown != nil {
		return m.unknownOutcome(a, errors.Join(err, ctx.Err()))
	}
	detail, kind := unread(err, "nothing was applied, and reading the reason failed")
	return m.callError(kind, a, detail, errors.Join(err, ctx.Err()))
}

// unread says what an error means that kept a miss from being diagnosed: nothing
// was applied, so the call can be repeated unless the error is fatal.
func unread(err error, detail string) (_ string, kind error) {
	var f *Fault
	if errors.As(err, &f) {
		if f.Class != ClassFatal {
			kind = ErrBusy
		}
		if f.Hint != "" {
			detail = f.Hint
		}
	}
	return detail, kind
}

// keySeen reports whether the journal holds the call's key: what refused the write was
// then met by a duplicate. Where a write runs into several indexes, or into a trigger,
// which of them is reported, and before the key was looked for or after it, differs between
// databases.
func (m *Machine) keySeen(ctx context.Context, a *attempt) bool {
	in := a.inquiry()
	if in.Key == "" {
		return false
	}
	s, err := m.table.Inspect(ctx, m.tx, in)
	return err == nil && s.ByKey != nil
}

func (m *Machine) versionTaken(a *attempt, f *Fault) error {
	return m.callError(nil, a, "the journal already holds the version this call would reach; "+f.Hint, f)
}

func (m *Machine) callError(kind error, a *attempt, detail string, cause error) *Error {
	e := m.rules.errorOf(a)
	e.Detail, e.cause = detail, cause
	return newError(kind, e)
}

// errorOf says which call an error is of.
func (r *Rules) errorOf(a *attempt) Error {
	e := Error{Machine: r.def.Name, ID: a.asks.ID, Key: a.asks.Key}
	if a.creates() {
		e.op = opCreate
	} else {
		e.Transition = r.def.Transitions[a.asks.Transition].Name
	}
	return e
}
