package persistence

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// Dialect is what differs between databases. It gives SQL text and facts; only a
// [Runner] executes.
type Dialect interface {
	// Name is "sqlite", "postgres" or "mysql".
	Name() string
	Features() Features
	// Expressions is the SQL its expressions are compiled to.
	Expressions() sqlexpr.Dialect
	// Quote quotes one identifier.
	Quote(ident string) string
	// Literal writes a string as an SQL literal, for DDL only.
	Literal(s string) string
	// Param is the placeholder of the n-th parameter, counted from 1.
	Param(n int) string
	// TextEqual compares a text column with a placeholder, by bytes.
	TextEqual(column, param string) string
	// JournalTime is what the journal's time column is bound to.
	JournalTime(t time.Time) any
	// ColumnType is the type of a business column in DDL.
	ColumnType(c ColumnSpec) string
	// JournalColumns are the journal's columns in DDL, each a line.
	JournalColumns() []string
	// JournalDDL creates the journal with its two unique indexes where missing.
	JournalDDL(table string) []string
	// TableDDL wraps column and constraint lines into CREATE TABLE IF NOT EXISTS.
	TableDDL(table string, lines []string) string
	// Columns reads the facts of a table; none if there is no such table.
	Columns(ctx context.Context, db *sqlx.DB, table string) ([]Column, error)
	// Verify checks what only this database can get wrong about a column.
	Verify(use ColumnSpec, c Column) error
	// Isolation is the level of the engine's own transactions.
	Isolation() sql.IsolationLevel
	// Lost reports whether an error says that a savepoint is gone, and so the transaction
	// in which it was made.
	Lost(err error) bool
	// Classify says what an error means; journal is the journal table's name.
	Classify(err error, journal string) engine.Class
	// Told reports whether it was the database itself that said it, on a connection
	// that stood: any network looks alike when it breaks.
	Told(err error) bool
	// LockWait reports whether a statement has given up waiting for what another
	// transaction holds.
	LockWait(err error) bool
}

// Features are the capabilities and habits the shared code asks about.
type Features struct {
	// ReadFirst: a unit begins by reading status and version under the write
	// lock, unless one state and one version are named.
	ReadFirst bool
	// Compared is appended to a placeholder that a journal column is compared with.
	Compared string
	// LockRead is appended to a SELECT that must lock its row.
	LockRead string
	// TakeLock: inside a caller's transaction an UPDATE of no row comes first, so
	// that the write lock is held before anything is read (SQLite).
	TakeLock bool
	// ShareRead is appended to a SELECT that looks for the row an INSERT ran into; ""
	// where an INSERT cannot run into one that the unit did not see before.
	ShareRead string
	// VersionByInsertID: the UPDATE reports the new version as LastInsertId.
	VersionByInsertID bool
	// OneStatement: CAS and journal are one data-modifying CTE.
	OneStatement bool
	// SlimUnions: a union that holds long text is written to disk, however short it is.
	SlimUnions bool
	// SetInOrder: SET runs from left to right and reads what it has just written.
	SetInOrder bool
	// Compound: transaction, CAS, journal and COMMIT can be one prepared statement.
	Compound bool
	// DetachWrites: the driver must not see a context that can be cancelled while
	// it writes.
	DetachWrites bool
	// CancelEndsWait: a cancelled context ends a commit's wait for its standby, and
	// the server then reports success.
	CancelEndsWait bool
	// SilentLoss: an error can end the transaction on the server, and statements after it
	// commit by themselves: COMMIT says nothing of it.
	SilentLoss bool
	// StaleSnapshots: a plain read inside a caller's transaction can be older than
	// the row, and no error tells (MySQL at REPEATABLE READ).
	StaleSnapshots bool
}

// ColumnUse is what a column is for.
type ColumnUse uint8

// The uses of a column.
const (
	UseID ColumnUse = iota
	UseStatus
	UseVersion
	UseField
	UseJournal // of the journal; text is what entries are found by
)

// ColumnSpec is a column as the definition wants it.
type ColumnSpec struct {
	Use      ColumnUse
	Name     string
	Type     expr.Type
	Scale    int
	Nullable bool
	// Values are what a status column must be able to hold.
	Values []any
}

// IDSpeller is a Dialect under which one id can be written in several ways, or whose
// id columns cannot hold every text.
type IDSpeller interface {
	// SpellID gives the one spelling of id in this column, or an error that says why
	// no row can have it.
	SpellID(c Column, id string) (string, error)
}

// Watcher is a Dialect that sees on the driver's connection how a transaction fares.
type Watcher interface {
	// Watch begins when a transaction of the store's own was opened on the connection.
	Watch(dc any) Watch
}

// Watch is over one transaction. Its functions are called while nobody else uses the
// connection, and none of them where a database/sql driver hides it.
type Watch struct {
	// Failed says, before COMMIT, that the transaction has ended or failed, which whoever
	// ran in it has ignored.
	Failed func() error
	// Done ends the watch.
	Done func()
}

// Insider is a Dialect under which an error means something else inside of a caller's
// transaction.
type Insider interface {
	// Inside is nil where it does not.
	Inside(err error) *engine.Fault
}

// Migrator is a Dialect whose CREATE … IF NOT EXISTS fails where somebody else creates
// the same at the same moment.
type Migrator interface {
	Collided(err error) bool
}

// Column is a column as the database has it.
type Column struct {
	Name      string
	Type      string // as declared
	Nullable  bool
	Collation string
	// UniqueAlone: the column is by itself a primary or unique key.
	UniqueAlone bool
	// Defaulted: a row that does not name the column has a value there all the same.
	Defaulted bool
	// Triggered: a row that is inserted or updated runs a trigger. That can write to the row,
	// drop it, or fail and leave it changed (SQLite), and it hides the id that
	// Features.VersionByInsertID rests on.
	Triggered bool
	// Folds: the column's collation takes different bytes for equal.
	Folds     bool
	Length    int // in characters, of text types; 0 where unbounded
	Precision int // digits of decimals, bits of integers; 0 where unbounded
	Scale     int
}

// Unit is what a runner must know of one call's work.
type Unit struct {
	// Table and ID name the row it writes: batches of several processes that lock rows
	// in one order cannot wait for each other in a circle.
	Table, ID string
	// Plain: it is a single statement, which needs no transaction.
	Plain bool
}

// Runner executes one unit on a connection of the store's own, where a dialect
// has a faster way than a database/sql transaction.
type Runner interface {
	// Unit runs fn in one transaction of the writer, or without one where the unit is
	// plain. fn gets the connection's own prepared statements.
	Unit(ctx context.Context, u Unit, fn func(x Execer) error) error
}

// Execer runs statements by text; implementations keep them prepared.
type Execer interface {
	// Exec returns the rows affected and the last insert id.
	Exec(text string, args []any) (affected, lastID int64, err error)
	// Query reads the first row into dest; found is false if there is none.
	Query(text string, args []any, dest []any) (found bool, err error)
}

// columnsOf lists the columns of a definition: id, status, version, fields.
func columnsOf(def *definitions.Machine) []ColumnSpec {
	out := []ColumnSpec{
		{Use: UseID, Name: def.Table.ID.Name, Type: def.Table.ID.Type, Scale: -1},
		{Use: UseStatus, Name: def.Table.Status.Name, Type: def.Table.Status.Type, Scale: -1, Values: valuesOf(def)},
		{Use: UseVersion, Name: def.Table.Version, Type: expr.Int, Scale: -1},
	}
	for _, f := range def.Fields {
		out = append(out, ColumnSpec{Use: UseField, Name: f.Column, Type: f.Type, Scale: f.Scale, Nullable: f.Nullable})
	}
	return out
}

// valuesOf lists what the status column may hold, aliases included.
func valuesOf(def *definitions.Machine) []any {
	var out []any
	for _, s := range def.States {
		out = append(append(out, s.Value), s.Aliases...)
	}
	return out
}
