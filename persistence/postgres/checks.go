package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// UniqueIndexes reads the table's unique indexes.
func (d dialect) UniqueIndexes(ctx context.Context, db *sqlx.DB, table string) ([][]string, error) {
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, `SELECT i.indexrelid::text AS index_name, a.attname AS column_name
FROM pg_index AS i CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, n) JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = to_regclass($1) AND i.indisunique AND i.indisvalid AND i.indpred IS NULL ORDER BY i.indexrelid, k.n`, persistence.QuoteTable(d, table))
	return persistence.GroupColumns(rows), err
}

// Checks reads the table's CHECK constraints.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	var out []string
	err := db.SelectContext(ctx, &out, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass($1) AND contype = 'c'", persistence.QuoteTable(d, table))
	return out, err
}
