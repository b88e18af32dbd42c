package mysql

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Comparisons: an index compares as its columns do, but a text that the column's character
// set does not hold can only be compared with it once it is converted, and is then another.
func (d dialect) Comparisons(_ context.Context, _ *sqlx.DB, _ string, columns []persistence.Column) ([]persistence.Comparison, error) {
	out := make([]persistence.Comparison, len(columns))
	for i, c := range columns {
		charset, _, _ := strings.Cut(c.Collation, "_")
		if charset == "" || charset == "utf8mb4" {
			continue
		}
		out[i] = func(column string, param func() string) string {
			converted := func() string { return "CONVERT(" + param() + " USING " + d.Quote(charset) + ")" }
			return "(" + column + " = " + converted() + " COLLATE " + d.Quote(c.Collation) +
				" AND CAST(CONVERT(" + converted() + " USING utf8mb4) AS BINARY) = CAST(CONVERT(" + param() + " USING utf8mb4) AS BINARY))"
		}
	}
	return out, nil
}

// Indexes reads the table's indexes. A part of one that is an expression has no name.
func (dialect) Indexes(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Index, error) {
	schema, name, qualified := strings.Cut(table, ".")
	where, args := "TABLE_SCHEMA = ? AND TABLE_NAME = ?", []any{schema, name}
	if !qualified {
		where, args = "TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", []any{table}
	}
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, "SELECT INDEX_NAME AS index_name, CASE WHEN SUB_PART IS NULL THEN COALESCE(COLUMN_NAME, '') ELSE '' END AS column_name, NON_UNIQUE = 0 AS is_unique "+
		"FROM information_schema.STATISTICS WHERE "+where+" ORDER BY INDEX_NAME, SEQ_IN_INDEX", args...)
	return persistence.GroupColumns(rows), err
}

// MendIndex sees to it that one index, of the one name by which an error is told from one
// of the table's own, keeps what must be unique.
func (d dialect) MendIndex(table, third string, indexes []persistence.Index) string {
	var steps []string
	missing := true
	for _, x := range indexes {
		switch named := strings.EqualFold(x.Name, indexPrefix+third); {
		case named && x.Keeps(third):
			missing = false
		case named || x.Keeps(third):
			steps = append(steps, "DROP INDEX "+d.Quote(x.Name))
		}
	}
	if missing {
		steps = append(steps, "ADD "+journalIndex(third))
	}
	if len(steps) == 0 {
		return ""
	}
	return "ALTER TABLE " + persistence.QuoteTable(d, table) + " " + strings.Join(steps, ", ")
}

// DropIndex drops a constraint as well: they are one here.
func (d dialect) DropIndex(table, name string) string {
	return "ALTER TABLE " + persistence.QuoteTable(d, table) + " DROP INDEX " + d.Quote(name)
}

// Checks reads the constraints out of SHOW CREATE TABLE, a line each.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	var name, text string
	row := db.QueryRowxContext(ctx, "SHOW CREATE TABLE "+persistence.QuoteTable(d, table))
	if err := row.Scan(&name, &text); err != nil {
		return nil, err
	}
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if _, check, ok := strings.Cut(line, " CHECK "); ok {
			out = append(out, check)
		}
	}
	return out, nil
}
