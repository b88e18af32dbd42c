package storetest

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// Harness is what a store brings to the suite.
type Harness struct {
	// Open gives a fresh, empty store with the tables of the definitions. What it
	// opens it closes in t.Cleanup, which runs after the suite's own checks.
	Open     func(t testing.TB, defs ...*definitions.Machine) Backend
	Features Features
}

// Features says what a store can do. The zero value is the least.
type Features struct {
	// Forms are the transactions of a caller's own that [Backend.Begin] can open;
	// the first one is used where the form does not matter.
	Forms []TxForm
	// Levels are the isolation levels to run the transaction tests at beside the
	// store's default.
	Levels []sql.IsolationLevel
	// OneWriter: an open transaction keeps every other writer waiting, on any row.
	OneWriter bool
	// Deferred are the forms whose transaction holds nothing until it writes, although
	// there is one writer.
	Deferred []TxForm
	// Wait bounds how long a call waits for a writer or a row that somebody holds,
	// as the stores that Open gives are configured. Keep it short.
	Wait time.Duration
	// Reopen: [Backend.Reopen] closes the store and opens it over the same data.
	Reopen bool
	// Loose: [Backend.Loosen] makes tables that accept any status.
	Loose bool
	// Nulls: [Backend.Loosen] also lets status and version be NULL.
	Nulls bool
	// Text is how many characters a string column of the store's own DDL holds; 0: any
	// number.
	Text int
	// Locks: two rows can be written by two transactions at once.
	Locks bool
	// NoDDL: there are no tables that could be missing.
	NoDDL bool
}

// TxForm is the Go type of a transaction that a caller holds.
type TxForm string

// The forms of a caller's transaction.
const (
	StdTx  TxForm = "sql.Tx"
	SqlxTx TxForm = "sqlx.Tx"
	Conn   TxForm = "sql.Conn"
	OwnTx  TxForm = "own" // a store without database/sql has a type of its own
)

// Backend is one open store, and the way to its tables beside the engine: what
// another program, a migration or an operator would do.
type Backend interface {
	Store() engine.Store
	// Insert adds a row under the definition's names: "id", "status" (what the
	// column is to hold, not the state's name), "version", and fields.
	Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error
	// Update sets some columns of a row, named as for Insert.
	Update(ctx context.Context, def *definitions.Machine, id string, set engine.Row) error
	// Delete removes a row and leaves its journal.
	Delete(ctx context.Context, def *definitions.Machine, id string) error
	// Rows reads the table as it is.
	Rows(ctx context.Context, def *definitions.Machine) (map[string]RawRow, error)
	// Journal reads the machine's journal as it is, by entity and version.
	Journal(ctx context.Context, def *definitions.Machine) (map[string][]RawEntry, error)
	// Begin opens a transaction as a caller would.
	Begin(ctx context.Context, form TxForm, level sql.IsolationLevel) (*Tx, error)
	// InUse counts the connections that somebody holds.
	InUse() int
	// Reopen closes the store and opens it again over the same data. What it opens
	// is closed by a cleanup that [Harness.Open] registered: one of its own would run
	// before the suite's checks.
	Reopen(t testing.TB)
	// Loosen lets the status column of the table hold anything, and NULL where
	// [Features.Nulls] says so, after the machine was bound.
	Loosen(t testing.TB, def *definitions.Machine)
}

// Tx is a transaction that a test holds as a caller would.
type Tx struct {
	engine.Tx
	Commit   func() error
	Rollback func() error
}

// RawRow is a row of the business table as it is.
type RawRow struct {
	Status  any // string, int64 or nil
	Version any // int64 or nil
}

// RawEntry is a row of the journal as it is.
type RawEntry struct {
	Version              int64
	Transition, From, To string
	Key                  string
	Topic                string
}
