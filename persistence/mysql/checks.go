package mysql

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// UniqueIndexes reads the table's unique indexes.
func (d dialect) UniqueIndexes(ctx context.Context, db *sqlx.DB, table string) ([][]string, error) {
	schema, name, qualified := strings.Cut(table, ".")
	where, args := "TABLE_SCHEMA = ? AND TABLE_NAME = ?", []any{schema, name}
	if !qualified {
		where, args = "TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ?", []any{table}
	}
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, "SELECT INDEX_NAME AS index_name, COLUMN_NAME AS column_name FROM information_schema.STATISTICS WHERE NON_UNIQUE = 0 AND "+
		where+" ORDER BY INDEX_NAME, SEQ_IN_INDEX", args...)
	return persistence.GroupColumns(rows), err
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
