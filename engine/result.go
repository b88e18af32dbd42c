package engine

import (
	"context"
	"encoding/json"
	"time"
)

// Outcome is what a successful call means.
type Outcome uint8

// The outcomes. Only Applied changed anything.
const (
	// Applied: this call moved the row.
	Applied Outcome = iota + 1
	// AlreadyReached: the row is in the target; an earlier request brought it there.
	AlreadyReached
	// AlreadyPassed: the row was in the target and has moved on since.
	AlreadyPassed
	// Replayed: a request with this key was applied before; the result is its.
	Replayed
)

// String returns the outcome's name.
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "Applied"
	case AlreadyReached:
		return "AlreadyReached"
	case AlreadyPassed:
		return "AlreadyPassed"
	case Replayed:
		return "Replayed"
	}
	return "none"
}

// Duplicate reports whether the call changed nothing because an earlier one had.
func (o Outcome) Duplicate() bool { return o > Applied }

// Result is the answer to a call that succeeded. It is a value and stays what it was.
type Result struct {
	ID string
	// From and To are the edge that was taken: by this call when Applied, by the
	// first run when Replayed. For the other duplicates they are the edge that
	// entered the current state, where the journal knows it.
	From, To string
	// State and Version are where the row is now; Version is the first run's when
	// Replayed.
	State   string
	Version int64
	Outcome Outcome
	// Key is the idempotency key in force, generated or not.
	Key string
	// First is the journal entry that entered the state (for Replayed: the entry
	// of the first run), where the journal knows; nil otherwise.
	First *Entry
	// AfterErr is what the Go code under `after` returned, or its panic. The
	// transition is committed all the same.
	AfterErr error

	after func(ctx context.Context) error
}

// Entry is one row of the journal: one applied transition.
type Entry struct {
	Seq        int64
	Version    int64  // the row's version after the transition
	Transition string // "" for creation
	From       string // "" for creation
	To         string
	Key        string
	Actor      string
	Args       json.RawMessage // JSON object, without secret arguments
	Meta       json.RawMessage // as given with WithMeta; nil where none
	At         time.Time

	// Fingerprint and Attempt let the engine judge a repeated key.
	Fingerprint string
	Attempt     string
}

// Args are the arguments of a transition, by name.
type Args map[string]any

// Row is a row to create: "id", optionally "status" (a state name), and the fields.
type Row map[string]any

// AfterCommit runs the Go code that the definition names under `after` for this
// result. Inside a caller's transaction call it once COMMIT has succeeded; where
// there is nothing to run, and outside of one, it does nothing. A ROLLBACK TO a savepoint
// of the caller's own is not seen here: do not call it for what that undid.
func (r Result) AfterCommit(ctx context.Context) error {
	if r.after == nil {
		return nil
	}
	return r.after(ctx)
}
