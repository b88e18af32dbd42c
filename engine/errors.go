package engine

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Answers: the call was understood and the row is as it was. Inside a caller's
// transaction the transaction stays usable.
var (
	// ErrNotFound: there is no row with this id.
	ErrNotFound = errors.New("no such row")
	// ErrNotAllowed: the row's state has no such transition, and the call is not
	// a duplicate of one that was applied. Error.Allowed says what is possible.
	ErrNotAllowed = errors.New("transition not allowed")
	// ErrConflict: the version the caller named is not the row's.
	ErrConflict = errors.New("version conflict")
	// ErrRejected: a condition is false, a guard said no, or an operation
	// overflowed or divided by zero.
	ErrRejected = errors.New("rejected")
	// ErrMismatch: the target is reached, but by a request with other identity.
	ErrMismatch = errors.New("reached by a different request")
	// ErrKeyReused: the idempotency key was used for something else.
	ErrKeyReused = errors.New("idempotency key reused for another request")
	// ErrUnknownState: the status column holds a value the definition does not know.
	ErrUnknownState = errors.New("unknown state")
	// ErrInvalidArgs: the call does not fit the definition; nothing was sent.
	ErrInvalidArgs = errors.New("invalid arguments")
)

// Not answers: what to do next depends on who owns the transaction.
var (
	// ErrBusy: nothing was applied; repeat the call, or inside a transaction of
	// your own roll back and repeat the whole.
	ErrBusy = errors.New("busy, nothing was applied")
	// ErrUnknownOutcome: the connection or the deadline broke at or after the
	// write. Repeat with WithKey(e.Key): the journal's unique index settles it.
	// Inside a transaction of your own it says that this was gone, or never begun: the
	// text says what has committed by itself, or may have.
	ErrUnknownOutcome = errors.New("unknown outcome")
)

// Error is the error of one call. Its text is fixed when it is made: it keeps
// saying what was true then, whatever happens to the row later.
type Error struct {
	Machine    string // "" for InTx
	Transition string // "" for Create, Get, Journal and InTx
	ID         string
	State      string // the row's state when the call was judged; "" where the row was not read
	Version    int64  // the row's version then; it says something only where State does
	Key        string // the key in force, generated or not; "" where none was
	Allowed    []string
	// Detail says in words what happened, and what to do.
	Detail string

	op    string // what the call is where it is no transition
	kind  error  // one of the sentinels, or nil for a fatal error
	cause error
	text  string
}

// The calls that are no transitions. No transition can have one of these names.
const (
	opCreate  = "create"
	opGet     = "get"
	opJournal = "journal"
	opInTx    = "InTx"
)

// newError fixes the text of e and returns it.
func newError(kind error, e Error) *Error {
	e.kind = kind
	var b strings.Builder
	b.WriteString("fsmgen: ")
	b.WriteString(e.Machine)
	call := cmp.Or(e.Transition, e.op)
	if e.Machine != "" && call != "" {
		b.WriteByte('.')
	}
	b.WriteString(call)
	if e.ID != "" {
		b.WriteString(" " + strconv.Quote(e.ID))
	}
	b.WriteString(": ")
	switch {
	case kind != nil && e.Detail != "":
		fmt.Fprintf(&b, "%v: %s", kind, e.Detail)
	case kind != nil:
		b.WriteString(kind.Error())
	case e.Detail != "":
		b.WriteString(e.Detail)
	default:
		b.WriteString("the database refused the call; nothing was applied")
	}
	if e.cause != nil {
		fmt.Fprintf(&b, ": %v", e.cause)
	}
	e.text = b.String()
	return &e
}

// Error returns the text that was fixed when the error was made.
func (e *Error) Error() string { return e.text }

// Unwrap gives the sentinel and the cause, so errors.Is matches both.
func (e *Error) Unwrap() []error {
	out := make([]error, 0, 2)
	if e.kind != nil {
		out = append(out, e.kind)
	}
	if e.cause != nil {
		out = append(out, e.cause)
	}
	return out
}
