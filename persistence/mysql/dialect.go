package mysql

import (
	"database/sql"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// dialect is how MariaDB and MySQL read and fail.
type dialect struct{ server }

func (dialect) Name() string { return "mysql" }

func (d dialect) Features() persistence.Features {
	return persistence.Features{
		LockRead: " FOR UPDATE", ShareRead: " LOCK IN SHARE MODE", VersionByInsertID: true,
		StaleSnapshots: true, SilentLoss: true, SlimUnions: true, SetInOrder: true, Compound: d.compound(),
	}
}

// Isolation of the engine's own transactions: each statement sees what is committed.
func (dialect) Isolation() sql.IsolationLevel { return sql.LevelReadCommitted }

// begin opens a transaction of the engine's own. The level holds for the one
// transaction, so a connection goes back as it came.
func (d dialect) begin() []string {
	const level, start = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"
	if d.compound() {
		return []string{"BEGIN NOT ATOMIC " + level + "; " + start + "; END"}
	}
	return []string{level, start}
}

func (dialect) Expressions() sqlexpr.Dialect { return sqlexpr.MySQL }

// Held reports whether err says that another transaction holds the row.
func (dialect) Held(err error) bool { return held(err) }

// Committing says what an error of a statement means that carries the COMMIT.
func (dialect) Committing(err error) engine.Class { return committing(err) }

// NoWait comes before a statement that must not wait for a row.
func (dialect) NoWait() string { return noWait }

// NoWaitTable comes before a statement that must not wait for a table that is being altered,
// or was locked as a whole.
func (dialect) NoWaitTable() string { return noWaitTable }

func (dialect) Quote(ident string) string {
	return "`" + strings.ReplaceAll(ident, "`", "``") + "`"
}

// Literal means the same under every sql_mode and client character set: a backslash,
// which some modes take for itself, and what is beyond ASCII are written in hex. That is
// converted, not introduced by _utf8mb4: MariaDB keeps a CHECK as text, and writes a
// string so introduced in a form that it reads as another one.
func (dialect) Literal(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r == '\\' || r >= utf8.RuneSelf }) {
		return "(CONVERT(X'" + hex.EncodeToString([]byte(s)) + "' USING utf8mb4))"
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

func (dialect) Param(int) string { return "?" }

// TextEqual needs no more than the column's own collation: Verify has seen to it that
// it compares by bytes.
func (dialect) TextEqual(column, param string) string { return column + " = " + param }

func (dialect) JournalTime(t time.Time) any { return t.UTC().Truncate(time.Microsecond) }

// bytewise is the collation that compares by bytes, trailing spaces included.
func (s server) bytewise() string {
	switch {
	case s.either: // comments that only one of the two executes
		return "CHARACTER SET utf8mb4 COLLATE /*M! utf8mb4_nopad_bin */ /*!80017 utf8mb4_0900_bin */"
	case s.maria:
		return "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	}
	return "CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"
}

// ColumnType: JSON is text, since both databases' own type would rewrite numbers.
func (d dialect) ColumnType(c persistence.ColumnSpec) string {
	switch c.Type {
	case expr.Int:
		return "BIGINT"
	case expr.Float:
		return "DOUBLE"
	case expr.Bool:
		return "BOOLEAN"
	case expr.Time:
		return "DATETIME(6)"
	case expr.Bytes:
		return "LONGBLOB"
	case expr.Decimal:
		return "DECIMAL(18,6)"
	case expr.JSON:
		return "LONGTEXT CHARACTER SET utf8mb4"
	}
	return "VARCHAR(255) " + d.bytewise()
}

func (dialect) TableDDL(table string, lines []string) string {
	return "CREATE TABLE IF NOT EXISTS " + persistence.QuoteTable(dialect{}, table) + " (\n  " + strings.Join(lines, ",\n  ") + "\n) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4"
}

// The journal's unique indexes; what they refuse is told from the user's own by name.
const (
	indexPrefix  = "fsmgen_"
	versionIndex = indexPrefix + "version"
	keyIndex     = indexPrefix + "key"
)

// JournalColumns compare by bytes.
func (d dialect) JournalColumns() []string {
	text := func(n string) string { return "VARCHAR(" + n + ") " + d.bytewise() }
	return []string{
		"`seq` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
		"`machine` " + text("64") + " NOT NULL",
		"`entity_id` " + text("255") + " NOT NULL",
		"`version` BIGINT NOT NULL",
		"`transition` " + text("64") + " NOT NULL",
		"`from_state` " + text("64") + " NULL",
		"`to_state` " + text("64") + " NOT NULL",
		"`args` LONGTEXT CHARACTER SET utf8mb4 NULL",
		"`key` VARBINARY(255) NOT NULL",
		"`fingerprint` VARBINARY(64) NOT NULL",
		"`attempt` VARBINARY(64) NOT NULL",
		"`actor` " + text("255") + " NULL",
		"`meta` LONGTEXT CHARACTER SET utf8mb4 NULL",
		"`topic` " + text("255") + " NULL",
		"`published_at` DATETIME(6) NULL",
		"`at` DATETIME(6) NOT NULL",
	}
}

func (d dialect) JournalDDL(table string) []string {
	return []string{d.TableDDL(table, append(d.JournalColumns(), journalIndex("version"), journalIndex("key")))}
}

// journalIndex describes an index of the journal.
func journalIndex(third string) string {
	return "UNIQUE KEY `" + indexPrefix + third + "` (`machine`, `entity_id`, `" + third + "`)"
}

// DDL gives the statements that create the business table and the journal of
// definitions, where they are missing, in text that MariaDB and MySQL both execute.
func DDL(defs ...*definitions.Machine) string {
	return strings.Join(persistence.DDL(dialect{server{either: true}}, defs...), ";\n\n") + ";\n"
}
