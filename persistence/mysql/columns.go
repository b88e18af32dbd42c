package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence"
)

// The catalogue is asked one table at a time: a statement that looked into one of its
// tables for every row of another has crashed MariaDB 10.11 on a busy machine.
const (
	tableText = "SELECT TABLE_TYPE, COALESCE(ENGINE, '') FROM information_schema.TABLES WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ?"

	columnsText = "SELECT COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE, COALESCE(COLLATION_NAME, ''), COALESCE(CHARACTER_MAXIMUM_LENGTH, 0), " +
		"COALESCE(NUMERIC_PRECISION, 0), COALESCE(NUMERIC_SCALE, 0), " +
		"COLUMN_DEFAULT IS NOT NULL OR EXTRA LIKE '%auto_increment%' OR EXTRA LIKE '%GENERATED%' FROM information_schema.COLUMNS " +
		"WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION"

	indexesText = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS " +
		"WHERE TABLE_SCHEMA = COALESCE(?, DATABASE()) AND TABLE_NAME = ? AND NON_UNIQUE = 0"

	triggersText = "SELECT COUNT(*) FROM information_schema.TRIGGERS " +
		"WHERE EVENT_OBJECT_SCHEMA = COALESCE(?, DATABASE()) AND EVENT_OBJECT_TABLE = ? AND EVENT_MANIPULATION <> 'DELETE'"
)

// Columns reads the table's columns.
func (dialect) Columns(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Column, error) {
	schema, name, qualified := strings.Cut(table, ".")
	where := []any{schema, name}
	if !qualified {
		where = []any{nil, table}
	}
	var kind, engine string
	switch err := db.QueryRowContext(ctx, tableText, where...).Scan(&kind, &engine); {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case kind == "BASE TABLE" && !strings.EqualFold(engine, "InnoDB"):
		return nil, fmt.Errorf("its engine is %s, which has no transactions: ALTER TABLE … ENGINE=InnoDB", engine)
	}
	alone, err := uniqueAlone(ctx, db, where)
	if err != nil {
		return nil, err
	}
	var triggers int
	if err := db.GetContext(ctx, &triggers, triggersText, where...); err != nil {
		return nil, err
	}
	var out []persistence.Column
	err = each(ctx, db, columnsText, where, func(rows *sql.Rows) error {
		c, err := scanColumn(rows)
		c.UniqueAlone, c.Triggered = alone[c.Name], triggers > 0
		out = append(out, c)
		return err
	})
	return out, err
}

// uniqueAlone tells the columns that have a unique index of their own: one that holds
// the whole column, and nothing else.
func uniqueAlone(ctx context.Context, db *sqlx.DB, where []any) (map[string]bool, error) {
	type index struct {
		column string
		parts  int
		whole  bool
	}
	indexes := map[string]index{}
	err := each(ctx, db, indexesText, where, func(rows *sql.Rows) error {
		var name string
		var column sql.NullString // none where an expression is indexed
		var part sql.NullInt64
		if err := rows.Scan(&name, &column, &part); err != nil {
			return err
		}
		indexes[name] = index{column.String, indexes[name].parts + 1, column.Valid && !part.Valid}
		return nil
	})
	alone := map[string]bool{}
	for _, x := range indexes {
		if x.parts == 1 && x.whole {
			alone[x.column] = true
		}
	}
	return alone, err
}

func each(ctx context.Context, db *sqlx.DB, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanColumn(rows *sql.Rows) (persistence.Column, error) {
	var c persistence.Column
	var nullable string
	err := rows.Scan(&c.Name, &c.Type, &nullable, &c.Collation, &c.Length, &c.Precision, &c.Scale, &c.Defaulted)
	c.Nullable = nullable == "YES"
	c.Folds = c.Collation != "" && !byBytes(c.Collation)
	if bits, ok := intBits[baseType(c.Type)]; ok {
		c.Precision = bits
	}
	return c, err
}

// byBytes reports whether a collation compares by bytes without padding.
func byBytes(collation string) bool {
	return strings.HasSuffix(collation, "_nopad_bin") || strings.HasSuffix(collation, "_0900_bin")
}

var intBits = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// baseType is a column's type without its width: "varchar" of "varchar(32)".
func baseType(declared string) string {
	base, _, _ := strings.Cut(strings.ToLower(declared), "(")
	base, _, _ = strings.Cut(base, " ")
	return base
}

// fitting are the types in which values of a type come back as they were written.
var fitting = map[expr.Type][]string{
	expr.String:  {"varchar", "varbinary", "tinytext", "text", "mediumtext", "longtext"},
	expr.JSON:    {"varchar", "tinytext", "text", "mediumtext", "longtext"},
	expr.Int:     {"tinyint", "smallint", "mediumint", "int", "bigint"},
	expr.Bool:    {"tinyint", "smallint", "mediumint", "int", "bigint"},
	expr.Float:   {"double"},
	expr.Time:    {"datetime"},
	expr.Bytes:   {"varbinary", "tinyblob", "blob", "mediumblob", "longblob"},
	expr.Decimal: {"decimal"},
}

// Verify refuses columns that rewrite values, or that take two texts for one where
// the CAS compares them.
func (d dialect) Verify(want persistence.ColumnSpec, c persistence.Column) error {
	base := baseType(c.Type)
	if want.Use == persistence.UseID && want.Type == expr.String && base == "uuid" {
		return nil
	}
	mend := "; declare it " + d.Quote(c.Name) + " " + d.ColumnType(want)
	if !want.Nullable {
		mend += " NOT NULL"
	}
	if why := unfit(base, c.Type, want); why != "" {
		return fmt.Errorf("declared %s, %s%s", c.Type, why, mend)
	}
	if want.Use != persistence.UseField && want.Type == expr.String && base != "varbinary" {
		if c.Folds {
			return fmt.Errorf("its collation %s takes different texts for equal, such as 'Paid' and 'Paid '%s", c.Collation, mend)
		}
		if !strings.HasPrefix(c.Collation, "utf8mb4_") {
			return fmt.Errorf("its collation %s cannot hold, or be compared with, every text%s", c.Collation, mend)
		}
	}
	return d.verifyWidth(want, c, mend)
}

// unfit says what a declared type would do to values, or nothing.
func unfit(base, declared string, want persistence.ColumnSpec) string {
	switch {
	case strings.Contains(declared, "unsigned") && want.Use != persistence.UseJournal: // there nothing is calculated
		return "whose arithmetic raises errors below zero"
	case base == "char" || base == "binary":
		return "which pads or trims values to its length"
	case base == "enum" || base == "set":
		return "which compares by its collation and holds numbers"
	case base == "timestamp":
		return "which is converted between time zones and ends in 2038"
	case base == "datetime" && want.Type == expr.Time && !strings.Contains(declared, "(6)"):
		return "which does not keep microseconds"
	case base == "float":
		return "which keeps seven digits only"
	case base == "json":
		return "which rewrites numbers and the order of keys"
	case !slices.Contains(fitting[want.Type], base):
		return fmt.Sprintf("which does not hold %s values as they are", want.Type)
	}
	return ""
}

// verifyWidth: every state must fit, or the day it is reached would be the day it fails.
func (dialect) verifyWidth(want persistence.ColumnSpec, c persistence.Column, mend string) error {
	for _, v := range want.Values {
		if s, ok := v.(string); ok && c.Length > 0 && len([]rune(s)) > c.Length {
			return fmt.Errorf("declared %s, too short for the state %q%s", c.Type, s, mend)
		}
		if n, ok := v.(int64); ok && c.Precision > 0 && c.Precision < 64 && (n >= 1<<(c.Precision-1) || n < -1<<(c.Precision-1)) {
			return fmt.Errorf("declared %s, too narrow for the state's value %d%s", c.Type, n, mend)
		}
	}
	return nil
}

// SpellID gives the one spelling of a uuid: the column takes several for the same,
// and the journal compares text.
func (dialect) SpellID(c persistence.Column, id string) (string, error) {
	if baseType(c.Type) != "uuid" {
		return id, nil
	}
	hex := strings.ToLower(id)
	if len(hex) == 38 && hex[0] == '{' && hex[37] == '}' {
		hex = hex[1:37]
	}
	if len(hex) == 36 && hex[8] == '-' && hex[13] == '-' && hex[18] == '-' && hex[23] == '-' {
		hex = hex[:8] + hex[9:13] + hex[14:18] + hex[19:23] + hex[24:]
	}
	if len(hex) != 32 || strings.Trim(hex, "0123456789abcdef") != "" {
		return "", fmt.Errorf("the id %q is no uuid, and the column is one", id)
	}
	return hex[:8] + "-" + hex[8:12] + "-" + hex[12:16] + "-" + hex[16:20] + "-" + hex[20:], nil
}
