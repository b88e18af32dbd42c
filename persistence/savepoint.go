package persistence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
)

// savepoint is the engine's own, inside a caller's transaction. A call without effect
// ends it before anything else can run in the transaction.
const savepoint = "fsmgen_call"

// savepoints gives names to the calls whose effect runs inside of them. The effect may
// make such calls itself, and on MySQL a savepoint of the same name replaces the one
// there was: no two that are open may share a name. A few names, used again and again,
// keep the statements preparable.
type savepoints struct {
	mu   sync.Mutex
	used []bool
}

// effectPoints names them for all stores of the process: an effect may call through
// another store, in its own transaction. Two processes never share one.
var effectPoints savepoints //nolint:gochecknoglobals // what stores share is a connection's names

// take returns a name that nobody holds, and what gives it back.
func (s *savepoints) take() (name string, give func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	for i < len(s.used) && s.used[i] {
		i++
	}
	if i == len(s.used) {
		s.used = append(s.used, false)
	}
	s.used[i] = true
	return savepoint + "_" + strconv.Itoa(i), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used[i] = false
	}
}

// rollbackTo takes back what the engine did in a caller's transaction, also past the
// call's deadline, and returns the error that ends the call. Where the way back fails,
// the whole is to be rolled back.
//
// It is tried after every error of an effect, whatever that wraps: it may be of another
// database. If it was this transaction that ended, its savepoints are gone, and the
// server says so.
func (t *table) rollbackTo(ctx context.Context, tx engine.Tx, name string, u *unit, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.s.wait)
	defer cancel()
	x := t.execer(ctx, tx)
	_, _, err := x.Exec("ROLLBACK TO SAVEPOINT "+name, nil)
	if err == nil {
		_, _, err = x.Exec("RELEASE SAVEPOINT "+name, nil)
	}
	switch {
	case err == nil && u.failed:
		return own(t.s.ofCode(cause, true))
	case err == nil || cause == nil: // without a cause it is a panic, which goes on
		return cause
	case errors.Is(cause, errMiss):
		return &engine.Fault{Class: engine.ClassRetryable, Err: fmt.Errorf("the call could not be taken back: %w", err)}
	case t.gone(cause):
		return &engine.Fault{Class: engine.ClassRetryable, Err: cause}
	}
	// The text of the cause alone: its chain would make an answer of this.
	err = fmt.Errorf("the call could not be taken back: %w, after: %v", err, cause) //nolint:errorlint // the cause is told, not matched: it was answered
	if t.d.Lost(err) {
		if f := t.ended(x, u, err); f.Class == engine.ClassStray {
			return f
		}
	}
	return &engine.Fault{Class: engine.ClassRetryable, Err: err}
}

const (
	hintCommitted = "the call was applied, and committed with everything before it: a statement inside of it did that (COMMIT, CREATE, ALTER, …), or no transaction is open on what In was given"
	hintIgnored   = "an error that ended the transaction was ignored inside of it: the call was not applied; in a transaction of your own, what ran after that error may have been committed by itself"
	hintStray     = "the transaction of the call is gone, or none was open on what In was given; what the call did may have been committed by itself: read the row and its journal"
)

// ended says what became of a call that finds its savepoint gone, and the transaction with
// it: that was rolled back, or committed, or there never was one.
func (t *table) ended(x Execer, u *unit, err error) *engine.Fault {
	var one any
	v := t.values(u.id)
	v.create = &engine.Creation{Record: engine.Record{Key: u.key}}
	applied, known := false, t.def.Journal.Enabled
	if known {
		seen, readErr := x.Query(t.keySeen.text, t.keySeen.args(v), []any{&one})
		applied, known = seen, readErr == nil
	}
	switch {
	case applied:
		return &engine.Fault{Class: engine.ClassStray, Err: err, Hint: hintCommitted}
	case !known, t.f.SilentLoss && u.effect == nil: // no error but the call's own, which did not end it
		return &engine.Fault{Class: engine.ClassStray, Err: err, Hint: hintStray}
	case t.f.SilentLoss: // a deadlock, most likely
		return &engine.Fault{Class: engine.ClassRetryable, Err: err, Hint: hintIgnored}
	}
	return &engine.Fault{Class: engine.ClassFatal, Err: err, Hint: hintIgnored}
}

// gone reports whether an error of a statement says that its transaction is no more. A
// context error does not: a statement that was not sent any more gives it too.
func (t *table) gone(err error) bool {
	if errors.Is(err, errMiss) {
		return false
	}
	var f *engine.Fault
	if !errors.As(err, &f) && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return false
	}
	class := t.s.classify(err)
	return class == engine.ClassRetryable || class == engine.ClassUnknown
}
