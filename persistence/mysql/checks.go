package mysql

import (
	"context"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

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
