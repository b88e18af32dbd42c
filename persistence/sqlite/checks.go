package sqlite

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// UniqueIndexes reads the table's unique indexes.
func (d dialect) UniqueIndexes(ctx context.Context, db *sqlx.DB, table string) ([][]string, error) {
	schema, name, qualified := strings.Cut(table, ".")
	if !qualified {
		schema, name = "main", table
	}
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, `SELECT i.name AS index_name, x.name AS column_name FROM pragma_index_list(?1, ?2) AS i, pragma_index_xinfo(i.name, ?2) AS x
WHERE i."unique" = 1 AND i.partial = 0 AND x.key = 1 AND x.name IS NOT NULL ORDER BY i.seq, x.seqno`, name, schema)
	return persistence.GroupColumns(rows), err
}

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
