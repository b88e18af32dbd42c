package engine

import (
	"context"
	"database/sql"
	"math"
	"time"
)

// Tx is a transaction the caller holds: *sql.Tx, *sqlx.Tx, or a *sql.Conn with an
// open transaction. Pools satisfy it too, and are refused by [Machine.In].
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Store is what the engine needs of a database. It is implemented by package
// persistence and its dialects; users only pass it on.
type Store interface {
	// Bind verifies the machine's table and journal and gives the port through
	// which its calls run. Each fault of the table is an error that names the
	// column and the DDL that mends it.
	Bind(ctx context.Context, rules *Rules) (Table, error)
	// Transact runs fn once in a new transaction and commits it. The context it
	// gives to fn is marked by the store, so that a call with it outside the
	// transaction can be refused instead of waiting for itself. An error of fn comes back
	// as it is, but where it says that the database has ended the transaction, or that its
	// connection broke: then it is a *[Fault], as are errors of begin and commit.
	Transact(ctx context.Context, fn func(ctx context.Context, tx Tx) error) error
	// Marked reports whether ctx comes from a transaction of this store.
	Marked(ctx context.Context) bool
}

// Table runs the calls of one machine. Methods with a Tx run inside it when it is
// not nil and then neither begin nor commit nor retry. Errors are *[Fault].
type Table interface {
	// CanonicalID gives the one spelling of id, or an error if no row can have it.
	CanonicalID(id string) (string, error)
	// Apply sends the CAS and, where it applied, the journal row and the effect,
	// as one atomic unit. A CAS that matched nothing is no error.
	Apply(ctx context.Context, tx Tx, call *Call) (Change, error)
	// Inspect reads the row and its journal together. Inside a transaction the
	// row is locked, unless the inquiry says otherwise.
	Inspect(ctx context.Context, tx Tx, q Inquiry) (Snapshot, error)
	// Create inserts the row and its journal entry as one atomic unit. An id or
	// declared unique key that exists is no error: Change.OK is false.
	Create(ctx context.Context, tx Tx, call *Creation) (Change, error)
	// Get reads the row without locking it; the flag says whether there is one.
	Get(ctx context.Context, tx Tx, id string) (RowState, bool, error)
	// Journal returns the entries of a row in version order.
	Journal(ctx context.Context, tx Tx, id string) ([]Entry, error)
}

// Class is what an error of the database means for the call.
type Class uint8

// The classes: what was applied, and what to do next.
const (
	// ClassFatal: not applied, and repeating it would not help.
	ClassFatal Class = iota
	// ClassRetryable: certainly not applied; repeat the whole unit.
	ClassRetryable
	// ClassConstraint: a constraint of the user's own table; not applied.
	ClassConstraint
	// ClassDuplicateKey: the journal already holds this key; not applied.
	ClassDuplicateKey
	// ClassVersionTaken: the journal already holds this version; not applied.
	ClassVersionTaken
	// ClassUnknown: it may have been applied.
	ClassUnknown
	// ClassUnsent: nothing was sent, because the context ended or a bounded wait did: the
	// hint says which. It is not repeated.
	ClassUnsent
	// ClassStray: a call inside a caller's transaction found none open at its end, and has
	// committed by itself, or a part of it may have. The hint says which.
	ClassStray
)

// Fault is an error of a store with its class.
type Fault struct {
	Class Class
	Err   error
	// Hint says what to do about it, if anything special.
	Hint string
}

// Error returns the driver's text.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the driver's error.
func (f *Fault) Unwrap() error { return f.Err }

// AnyVersion is the version of a call that names none. Rows made elsewhere may stand at
// any other.
const AnyVersion = math.MinInt64

// Call is one transition, checked and ready to be sent.
type Call struct {
	ID         string
	Transition int   // index into the definition's transitions
	Version    int64 // the CAS applies to this version only; AnyVersion: to any
	Args       []any // canonical values in the order of the transition's args
	Now        time.Time
	Record
	// Effect runs after the CAS and the journal row, in the same transaction; its
	// error undoes them.
	Effect func(ctx context.Context, tx Tx, change Change) error
}

// Record is what the journal row of a call says, beside the edge itself.
type Record struct {
	Key         string
	KeyOwn      bool // the engine made the key: nobody else can hold it
	Fingerprint string
	Attempt     string
	Args        []byte // JSON object
	Actor       string
	Meta        []byte // JSON, nil where none
	Topic       string
}

// Creation is one row to create.
type Creation struct {
	ID    string
	State int   // index into the definition's states
	Given []any // canonical values in field order; nil: not given
	// Values are Given with defaults filled in.
	Values []any
	Now    time.Time
	Record
}

// Change is what Apply or Create did.
type Change struct {
	OK       bool // it applied
	From, To int  // state indexes; From is -1 for creation
	Version  int64
}

// Inquiry says what Inspect is to read beside the row.
type Inquiry struct {
	ID         string
	Transition int    // -1 for creation
	Key        string // "" where the call has none that could be seen before
	Version    int64  // the version the caller named, or AnyVersion
	// Values are those of a creation, for declared unique keys.
	Values []any
	// Unlocked: the answer need not hold any longer than the read, so nothing is locked
	// inside a transaction, which may be one that only reads.
	Unlocked bool
}

// Snapshot is one consistent view of a row and of what its journal knows.
type Snapshot struct {
	Found bool
	Row   RowState
	// ByKey is the entry with the inquiry's key.
	ByKey *Entry
	// Own is the last entry of the inquiry's transition since the row's last creation.
	Own *Entry
	// Undone: a later entry than Own led back into a source of the transition.
	Undone bool
	// Entered is the last entry that came from another state, or created the row.
	Entered *Entry
	// Next is the machine's entry at Inquiry.Version+1.
	Next *Entry
	// Creation is the row's last creation.
	Creation *Entry
}

// RowState is the user's row.
type RowState struct {
	ID      string
	State   int // index into the definition's states; -1: the value is none of them
	Raw     any // the status column as read
	Version int64
	Values  []any // canonical values in field order; nil: NULL
}
