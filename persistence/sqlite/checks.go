package sqlite

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Indexes reads the table's indexes.
func (d dialect) Indexes(ctx context.Context, db *sqlx.DB, table string) ([]persistence.Index, error) {
	schema, name := inSchema(table)
	var rows []persistence.IndexColumn
	err := db.SelectContext(ctx, &rows, `SELECT i.name AS index_name, COALESCE(x.name, '') AS column_name, i."unique" = 1 AND i.partial = 0 AS is_unique, upper(x.coll) <> 'BINARY' AS folds
FROM pragma_index_list(?1, ?2) AS i, pragma_index_xinfo(i.name, ?2) AS x WHERE x.key = 1 ORDER BY i.seq, x.seqno`, name, schema)
	return persistence.GroupColumns(rows), err
}

// Comparisons are the collations of the unique index over just these columns.
func (d dialect) Comparisons(ctx context.Context, db *sqlx.DB, table string, columns []persistence.Column) ([]persistence.Comparison, error) {
	schema, name := inSchema(table)
	var parts []struct{ Index, Column, Collation string }
	err := db.SelectContext(ctx, &parts, `SELECT i.name AS "index", COALESCE(x.name, '') AS "column", x.coll AS collation
FROM pragma_index_list(?1, ?2) AS i, pragma_index_xinfo(i.name, ?2) AS x WHERE x.key = 1 AND i."unique" = 1 AND i.partial = 0 ORDER BY i.seq`, name, schema)
	collations := map[string]map[string]string{} // by index and column
	var indexes []string
	for _, p := range parts {
		if collations[p.Index] == nil {
			collations[p.Index] = map[string]string{}
			indexes = append(indexes, p.Index)
		}
		collations[p.Index][strings.ToLower(p.Column)] = p.Collation
	}
	out := make([]persistence.Comparison, len(columns))
	for _, name := range indexes {
		index := collations[name]
		over := len(index) == len(columns)
		for _, c := range columns {
			_, has := index[strings.ToLower(c.Name)]
			over = over && has
		}
		for i, c := range columns {
			if collation := index[strings.ToLower(c.Name)]; over && !strings.EqualFold(collation, "BINARY") {
				out[i] = func(column string, param func() string) string {
					return column + " = " + param() + " COLLATE " + d.Quote(collation)
				}
			}
		}
	}
	return out, err
}

// MendIndex makes the index where there is none: an error of it names its columns, so any
// name will do.
func (dialect) MendIndex(table, third string, indexes []persistence.Index) string {
	if slices.ContainsFunc(indexes, func(x persistence.Index) bool { return x.Keeps(third) }) {
		return ""
	}
	return "CREATE UNIQUE INDEX " + journalIndex(table, third, indexes)
}

// DropIndex: what stands in the table's own text cannot be dropped.
func (d dialect) DropIndex(table, name string) string {
	schema, _, qualified := strings.Cut(table, ".")
	if strings.HasPrefix(name, "sqlite_autoindex_") {
		return ""
	}
	if qualified {
		return "DROP INDEX " + d.Quote(schema) + "." + d.Quote(name)
	}
	return "DROP INDEX " + d.Quote(name)
}

// Checks reads the text the table was made with: SQLite keeps constraints nowhere else.
func (d dialect) Checks(ctx context.Context, db *sqlx.DB, table string) ([]string, error) {
	schema, name := inSchema(table)
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
