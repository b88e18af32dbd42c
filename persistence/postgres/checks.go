package postgres

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Checks reads the table's CHECK constraints.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	var out []string
	err := db.SelectContext(ctx, &out, "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = to_regclass($1) AND contype = 'c'", persistence.QuoteTable(d, table))
	return out, err
}
