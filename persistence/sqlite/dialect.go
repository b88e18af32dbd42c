package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// dialect is how SQLite reads and fails.
type dialect struct{}

func (dialect) Name() string { return "sqlite" }

// compared keeps the planner from looking at a bound value. Where it did, SQLite
// prepares the statement again at every call, which costs more than running it.
const compared = " COLLATE BINARY"

func (dialect) Features() persistence.Features {
	return persistence.Features{Compared: compared, ReadFirst: true, TakeLock: true, DetachWrites: true}
}

// Isolation: SQLite knows one level only.
func (dialect) Isolation() sql.IsolationLevel { return sql.LevelDefault }

func (dialect) Expressions() sqlexpr.Dialect { return sqlexpr.SQLite }

// Quote uses backticks: a double-quoted unknown column would be a string literal.
func (dialect) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

func (dialect) Literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func (dialect) Param(int) string { return "?" }

// TextEqual overrides the collation a column may have been declared with.
func (dialect) TextEqual(column, param string) string {
	return column + " = " + param + " COLLATE BINARY"
}

// journalTime is fixed in width, so that text order is time order.
const journalTime = "2006-01-02T15:04:05.000000Z"

func (dialect) JournalTime(t time.Time) any { return t.UTC().Format(journalTime) }

// ColumnType: the driver needs the names BOOLEAN and TIMESTAMP to give bool and
// time.Time back; decimals are text, since NUMERIC would round them.
func (dialect) ColumnType(c persistence.ColumnSpec) string {
	switch c.Type {
	case expr.Int:
		return "INTEGER"
	case expr.Float:
		return "REAL"
	case expr.Bool:
		return "BOOLEAN"
	case expr.Time:
		return "TIMESTAMP"
	case expr.Bytes:
		return "BLOB"
	}
	return "TEXT"
}

func (dialect) TableDDL(table string, lines []string) string {
	return "CREATE TABLE IF NOT EXISTS " + persistence.QuoteTable(dialect{}, table) + " (\n  " + strings.Join(lines, ",\n  ") + "\n)"
}

// JournalColumns are text wherever SQLite would rewrite a value.
func (dialect) JournalColumns() []string {
	return []string{
		"`seq` INTEGER PRIMARY KEY AUTOINCREMENT",
		"`machine` TEXT NOT NULL",
		"`entity_id` TEXT NOT NULL",
		"`version` INTEGER NOT NULL",
		"`transition` TEXT NOT NULL",
		"`from_state` TEXT",
		"`to_state` TEXT NOT NULL",
		"`args` TEXT",
		"`key` TEXT NOT NULL",
		"`fingerprint` TEXT NOT NULL",
		"`attempt` TEXT NOT NULL",
		"`actor` TEXT",
		"`meta` TEXT",
		"`topic` TEXT",
		"`published_at` TEXT",
		"`at` TEXT NOT NULL",
	}
}

func (d dialect) JournalDDL(table string) []string {
	return []string{
		d.TableDDL(table, d.JournalColumns()),
		"CREATE UNIQUE INDEX IF NOT EXISTS " + journalIndex(table, "version", nil),
		"CREATE UNIQUE INDEX IF NOT EXISTS " + journalIndex(table, "key", nil),
	}
}

// journalIndex names and describes an index of the journal. SQLite wants the schema
// before the index's name, and not before the table's.
func journalIndex(table, third string, others []persistence.Index) string {
	schema, name, qualified := strings.Cut(table, ".")
	before := dialect{}.Quote(schema) + "."
	if !qualified {
		before, name = "", table
	}
	q := dialect{}.Quote
	return before + q(persistence.FreeName(name+"_"+third, others)) + " ON " + q(name) + " (`machine`, `entity_id`, " + q(third) + ")"
}

// Columns reads the table's columns and which of them is unique by itself.
func (d dialect) Columns(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Column, error) {
	schema, name := inSchema(table)
	rows, err := db.QueryxContext(ctx, `SELECT c.name, c.type, c."notnull" OR (c.pk = 1 AND upper(c.type) = 'INTEGER'), c.pk,
  (SELECT count(*) FROM pragma_table_info(?1, ?2) AS p WHERE p.pk > 0), c.dflt_value IS NOT NULL,
  (SELECT min(x.coll) FROM pragma_index_list(?1, ?2) AS i, pragma_index_xinfo(i.name, ?2) AS x
    WHERE i."unique" = 1 AND i.partial = 0 AND x.key = 1 AND x.name = c.name
      AND (SELECT count(*) FROM pragma_index_xinfo(i.name, ?2) AS y WHERE y.key = 1) = 1),
  EXISTS (SELECT 1 FROM `+d.Quote(schema)+`.sqlite_schema AS s WHERE s.type = 'trigger' AND lower(s.tbl_name) = lower(?1))
FROM pragma_table_info(?1, ?2) AS c`, name, schema)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var out []persistence.Column
	for rows.Next() {
		var c persistence.Column
		var notNull bool
		var pk, pkColumns int
		var collation sql.NullString
		if err := rows.Scan(&c.Name, &c.Type, &notNull, &pk, &pkColumns, &c.Defaulted, &collation, &c.Triggered); err != nil {
			return nil, err
		}
		c.Nullable, c.Collation = !notNull, collation.String
		c.UniqueAlone = collation.Valid || (pk == 1 && pkColumns == 1)
		c.Defaulted = c.Defaulted || (pk == 1 && pkColumns == 1 && strings.EqualFold(c.Type, "INTEGER"))
		out = append(out, c)
	}
	return out, rows.Err()
}

// inSchema splits a table's name, which is in the file that was opened where it says nothing.
func inSchema(table string) (schema, name string) {
	if schema, name, qualified := strings.Cut(table, "."); qualified {
		return schema, name
	}
	return "main", table
}

// affinity is the rule of https://www.sqlite.org/datatype3.html, section 3.1.
func affinity(declared string) string {
	d := strings.ToUpper(declared)
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(d, p) {
				return true
			}
		}
		return false
	}
	switch {
	case has("INT"):
		return "INTEGER"
	case has("CHAR", "CLOB", "TEXT"):
		return "TEXT"
	case d == "" || has("BLOB"):
		return "BLOB"
	case has("REAL", "FLOA", "DOUB"):
		return "REAL"
	}
	return "NUMERIC"
}

// Verify refuses columns whose affinity would rewrite values, and ids that do not
// compare by bytes.
func (d dialect) Verify(want persistence.ColumnSpec, c persistence.Column) error {
	have := affinity(c.Type)
	ok := map[expr.Type][]string{
		expr.String: {"TEXT", "BLOB"}, expr.JSON: {"TEXT", "BLOB"}, expr.Decimal: {"TEXT", "BLOB"}, expr.Bytes: {"BLOB"},
		expr.Int: {"INTEGER", "NUMERIC", "BLOB"}, expr.Float: {"REAL", "BLOB"},
		expr.Bool: {"INTEGER", "NUMERIC", "BLOB"}, expr.Time: {"TEXT", "NUMERIC", "BLOB"},
	}[want.Type]
	fits := false
	for _, a := range ok {
		fits = fits || a == have
	}
	if !fits {
		return fmt.Errorf("declared %q, whose %s affinity would rewrite %s values; declare it %s", c.Type, have, want.Type, d.ColumnType(want))
	}
	if want.Use == persistence.UseID && want.Type == expr.String && c.Collation != "" && !strings.EqualFold(c.Collation, "BINARY") {
		return fmt.Errorf("its unique index compares by %s, so two ids could be taken for one; declare it %s COLLATE BINARY", c.Collation, d.ColumnType(want))
	}
	return nil
}

// Classify reads SQLite's result codes (https://www.sqlite.org/rescode.html).
func (dialect) Classify(err error, journal string) engine.Class {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sql.ErrTxDone) || errors.Is(err, sql.ErrConnDone) {
			return engine.ClassRetryable // writes never see a context: these come from waiting
		}
		return engine.ClassFatal
	}
	switch e.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrInterrupt:
		return engine.ClassRetryable
	case sqlite3.ErrConstraint:
		return classifyConstraint(e, journal)
	case sqlite3.ErrIoErr:
		return engine.ClassUnknown
	}
	return engine.ClassFatal
}

// Told reports whether SQLite said it.
func (dialect) Told(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e)
}

// LockWait is never so inside of a transaction, which has the lock from its beginning.
func (dialect) LockWait(error) bool { return false }

// Lost reports whether a savepoint is gone, or ended as a transaction of its own that may
// not commit.
func (dialect) Lost(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.ExtendedCode == sqlite3.ErrConstraintCommitHook ||
		e.Code == sqlite3.ErrError && strings.HasPrefix(e.Error(), "no such savepoint"))
}

func classifyConstraint(e sqlite3.Error, journal string) engine.Class {
	if _, name, ok := strings.Cut(journal, "."); ok {
		journal = name
	}
	if e.ExtendedCode == sqlite3.ErrConstraintUnique && strings.Contains(e.Error(), " "+journal+".machine, ") {
		if strings.HasSuffix(e.Error(), "."+"key") {
			return engine.ClassDuplicateKey
		}
		return engine.ClassVersionTaken
	}
	if e.ExtendedCode == sqlite3.ErrConstraintCommitHook { // no constraint at all
		return engine.ClassFatal
	}
	return engine.ClassConstraint
}
