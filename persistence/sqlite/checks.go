package sqlite

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Checks reads the text the table was made with: SQLite keeps constraints nowhere else.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "main", table
	}
	var texts []string
	err := db.SelectContext(ctx, &texts, "SELECT sql FROM "+persistence.QuoteTable(d, schema+".sqlite_schema")+" WHERE type = 'table' AND lower(name) = lower(?)", name)
	var out []string
	for _, text := range texts {
		if _, after, ok := strings.Cut(text, "CHECK ("); ok {
			out = append(out, strings.Split("CHECK ("+after, "CHECK ")[1:]...)
		}
	}
	return out, err
}
