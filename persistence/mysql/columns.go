package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence"
)

// columnsText: a unique index counts for a column only if it holds that column alone,
// and all of it. The aliases give both databases' answer one spelling.
const columnsText = `SELECT c.COLUMN_NAME AS name, c.COLUMN_TYPE AS type, c.IS_NULLABLE AS nullable, COALESCE(c.COLLATION_NAME, '') AS collation,
  COALESCE(c.CHARACTER_MAXIMUM_LENGTH, 0) AS length, COALESCE(c.NUMERIC_PRECISION, 0) AS digits, COALESCE(c.NUMERIC_SCALE, 0) AS scale,
  EXISTS (SELECT 1 FROM information_schema.STATISTICS s WHERE s.TABLE_SCHEMA = c.TABLE_SCHEMA AND s.TABLE_NAME = c.TABLE_NAME
    AND s.COLUMN_NAME = c.COLUMN_NAME AND s.NON_UNIQUE = 0 AND s.SUB_PART IS NULL
    AND 1 = (SELECT COUNT(*) FROM information_schema.STATISTICS o WHERE o.TABLE_SCHEMA = s.TABLE_SCHEMA AND o.TABLE_NAME = s.TABLE_NAME AND o.INDEX_NAME = s.INDEX_NAME)) AS alone,
  EXISTS (SELECT 1 FROM information_schema.TRIGGERS g WHERE g.EVENT_OBJECT_SCHEMA = c.TABLE_SCHEMA AND g.EVENT_OBJECT_TABLE = c.TABLE_NAME AND g.EVENT_MANIPULATION = 'UPDATE') AS triggered,
  t.TABLE_TYPE AS kind, COALESCE(t.ENGINE, '') AS engine
FROM information_schema.COLUMNS c JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME
WHERE c.TABLE_SCHEMA = COALESCE(?, DATABASE()) AND c.TABLE_NAME = ? ORDER BY c.ORDINAL_POSITION`

// Columns reads the table's columns.
func (dialect) Columns(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Column, error) {
	schema, name, qualified := strings.Cut(table, ".")
	var in any = schema
	if !qualified {
		in, name = nil, table
	}
	rows, err := db.QueryContext(ctx, columnsText, in, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	var out []persistence.Column
	for rows.Next() {
		c, err := scanColumn(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, rows.Err()
}

func scanColumn(rows *sql.Rows) (persistence.Column, error) {
	var c persistence.Column
	var nullable, kind, engine string
	err := rows.Scan(&c.Name, &c.Type, &nullable, &c.Collation, &c.Length, &c.Precision, &c.Scale, &c.UniqueAlone, &c.Triggered, &kind, &engine)
	if err != nil {
		return c, err
	}
	if kind == "BASE TABLE" && !strings.EqualFold(engine, "InnoDB") {
		return c, fmt.Errorf("its engine is %s, which has no transactions: ALTER TABLE … ENGINE=InnoDB", engine)
	}
	c.Nullable = nullable == "YES"
	c.Folds = c.Collation != "" && !byBytes(c.Collation)
	if bits, ok := intBits[baseType(c.Type)]; ok {
		c.Precision = bits
	}
	return c, nil
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
	if why := unfit(base, c.Type, want.Type); why != "" {
		return fmt.Errorf("declared %s, %s%s", c.Type, why, mend)
	}
	if (want.Use == persistence.UseID || want.Use == persistence.UseStatus) && want.Type == expr.String && base != "varbinary" {
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
func unfit(base, declared string, want expr.Type) string {
	switch {
	case strings.Contains(declared, "unsigned"):
		return "whose arithmetic raises errors below zero"
	case base == "char" || base == "binary":
		return "which pads or trims values to its length"
	case base == "enum" || base == "set":
		return "which compares by its collation and holds numbers"
	case base == "timestamp":
		return "which is converted between time zones and ends in 2038"
	case base == "datetime" && want == expr.Time && !strings.Contains(declared, "(6)"):
		return "which does not keep microseconds"
	case base == "float":
		return "which keeps seven digits only"
	case base == "json":
		return "which rewrites numbers and the order of keys"
	case !slices.Contains(fitting[want], base):
		return fmt.Sprintf("which does not hold %s values as they are", want)
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
