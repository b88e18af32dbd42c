package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tries counts what one call has sent.
type tries struct {
	attempts int       // how often the write was sent
	unknown  error     // the last write whose outcome was never learnt
	since    time.Time // of the first such write
}

// lost notes a write whose answer never came.
func (t *tries) lost(f *Fault) {
	if t.unknown = f; t.since.IsZero() {
		t.since = time.Now()
	}
}

// failed decides what an error of the write means: done with an error for the
// caller, or a repeated write (done false, err not nil), or a look at the row.
func (m *Machine) failed(ctx context.Context, q *request, err error) (done bool, _ error) {
	var f *Fault
	if !errors.As(err, &f) {
		f = &Fault{Class: ClassFatal, Err: err}
	}
	switch f.Class {
	case ClassDuplicateKey:
		return false, nil
	case ClassUnsent:
		return true, m.unsent(q, f)
	case ClassRetryable:
		return m.repeat(ctx, q, f)
	case ClassUnknown:
		if m.tx != nil { // never committed: the caller's transaction is gone
			return m.repeat(ctx, q, f)
		}
		q.lost(f)
		if !m.settles(q) {
			return true, m.unknownOutcome(q, ctx.Err())
		}
		return m.repeat(ctx, q, f)
	case ClassVersionTaken, ClassConstraint:
		if m.keySeen(ctx, q) { // a row that was put back by hand, or a constraint that the first run has used up
			return false, nil
		}
	case ClassFatal:
	}
	switch {
	case q.unknown != nil: // an earlier write may have been applied all the same, or may be yet
		return true, m.unknownOutcome(q, f)
	case f.Class == ClassVersionTaken:
		return true, m.versionTaken(q, f)
	case f.Class == ClassConstraint:
		return true, m.callError(nil, q, "a constraint of the table refused the change; nothing was applied", f)
	}
	return true, m.callError(nil, q, f.Hint, f)
}

// settles reports whether running the call again can tell what happened: the key
// does, and for a bare machine a named version or a graph without way back.
func (m *Machine) settles(q *request) bool {
	return m.rules.def.Journal.Enabled || q.version != AnyVersion || m.rules.transitions[q.call.Transition].rerunnable()
}

func (m *Machine) repeat(ctx context.Context, q *request, f *Fault) (bool, error) {
	if err := m.again(ctx, q, f); err != nil {
		return true, err
	}
	return false, f
}

// again waits before the next try, or says why there is none.
func (m *Machine) again(ctx context.Context, q *request, cause *Fault) error {
	if m.tx != nil {
		return m.againInTx(ctx, q, cause)
	}
	more := q.attempts < m.eng.retry.Attempts || (q.unknown != nil && m.eng.patient(ctx, q.since))
	if ctx.Err() == nil && more && m.eng.retry.wait(ctx, q.attempts) {
		return nil
	}
	if q.unknown != nil {
		return m.unknownOutcome(q, ctx.Err())
	}
	detail := fmt.Sprintf("given up after %d tries; repeat the call", q.attempts)
	if cause != nil {
		if cause.Hint != "" {
			detail = cause.Hint
		}
		return m.callError(ErrBusy, q, detail, errors.Join(error(cause), ctx.Err()))
	}
	return m.callError(ErrBusy, q, "the row kept changing under the call; "+detail, ctx.Err())
}

// againInTx: inside the caller's transaction an error of the database ends the
// call; a row that fits now is tried once more under the lock just taken. Where the
// context has ended the error says so too: drivers report a broken connection instead.
func (m *Machine) againInTx(ctx context.Context, q *request, cause *Fault) error {
	if cause != nil {
		detail := "roll back and repeat the whole transaction"
		if cause.Hint != "" {
			detail = cause.Hint + "; " + detail
		}
		return m.callError(ErrBusy, q, detail, errors.Join(error(cause), ctx.Err()))
	}
	if q.misses++; q.misses == 1 {
		return nil
	}
	return m.callError(nil, q, "BUG: the database and the engine disagree on whether the call fits; please report the definition and the row", nil)
}

func (m *Machine) unsent(q *request, f *Fault) error {
	switch {
	case q.unknown != nil:
		return m.callError(ErrUnknownOutcome, q, unknownHint, errors.Join(f.Err, q.unknown))
	case q.attempts > 1 || f.Hint != "":
		return m.callError(ErrBusy, q, f.Hint, f.Err)
	}
	return f.Err
}

const unknownHint = "the write was sent and its answer was lost; repeat the call with engine.WithKey(err.Key) (a derived key: as it was) to learn the outcome"

func (m *Machine) unknownOutcome(q *request, why error) *Error {
	hint := unknownHint
	if !m.rules.def.Journal.Enabled {
		hint = "the write was sent and its answer was lost; the machine has no journal to settle it: read the row"
	}
	return m.callError(ErrUnknownOutcome, q, hint, errors.Join(q.unknown, why))
}

func (m *Machine) inspectError(ctx context.Context, q *request, err error) error {
	if q.unknown != nil {
		return m.unknownOutcome(q, errors.Join(err, ctx.Err()))
	}
	detail, kind := unread(err, "the change was not applied, and reading the reason failed")
	return m.callError(kind, q, detail, errors.Join(err, ctx.Err()))
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
// then met by a duplicate. Where a write runs into several indexes, which of them is
// reported differs between databases.
func (m *Machine) keySeen(ctx context.Context, q *request) bool {
	in := q.inquiry()
	if in.Key == "" {
		return false
	}
	s, err := m.table.Inspect(ctx, m.tx, in)
	return err == nil && s.ByKey != nil
}

func (m *Machine) versionTaken(q *request, f *Fault) error {
	return m.callError(nil, q, "the journal already holds the version this call would reach; "+f.Hint, f)
}

func (m *Machine) callError(kind error, q *request, detail string, cause error) *Error {
	return newError(kind, Error{
		Machine: m.rules.def.Name, Transition: m.rules.def.Transitions[q.call.Transition].Name,
		ID: q.call.ID, Key: q.call.Key, Detail: detail, cause: cause,
	})
}
