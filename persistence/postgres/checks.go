package postgres

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Indexes reads the table's indexes.
func (d dialect) Indexes(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Index, error) {
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, `SELECT c.relname AS index_name,
  COALESCE(a.attname, '') AS column_name,
  i.indisunique AND i.indimmediate AND i.indisvalid AND i.indpred IS NULL AS is_unique,
  NOT i.indimmediate AS is_deferrable,
  i.indcollation[k.n - 1] IS DISTINCT FROM a.attcollation AND EXISTS (SELECT 1 FROM pg_collation AS l WHERE l.oid = i.indcollation[k.n - 1] AND NOT l.collisdeterministic) AS folds
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k (attnum, n)
  LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
WHERE i.indrelid = to_regclass($1) AND k.n <= i.indnkeyatts ORDER BY i.indexrelid, k.n`, persistence.QuoteTable(d, table))
	return persistence.GroupColumns(rows), err
}

// MendIndex makes the index where there is none. An error of it tells its columns, so any
// name will do, and PostgreSQL finds one that is free.
func (dialect) MendIndex(table, third string, indexes []persistence.Index) string {
	if slices.ContainsFunc(indexes, func(x persistence.Index) bool { return x.Keeps(third) }) {
		return ""
	}
	return "CREATE UNIQUE INDEX " + journalIndex(table, third)
}

// DropIndex is asked for indexes that no constraint owns: those compare as their columns do.
func (d dialect) DropIndex(table, name string) string {
	if schema, _ := splitTable(table); schema != "" {
		return "DROP INDEX " + d.Quote(schema) + "." + d.Quote(name)
	}
	return "DROP INDEX " + d.Quote(name)
}

// Checks reads the table's CHECK constraints.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	var out []string
	err := db.SelectContext(ctx, &out, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass($1) AND contype = 'c'", persistence.QuoteTable(d, table))
	return out, err
}
