// Package database opens the database an example is told to run on.
package database

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// Usage says what Open takes.
const Usage = "`database`: an SQLite file, postgres://…, or mysql://user@tcp(host:3306)/name; without it a fresh SQLite file that is removed afterwards"

// Open opens dsn. The returned function closes the store and leaves nothing behind that
// was not named.
func Open(ctx context.Context, dsn string) (*persistence.Store, func() error, error) {
	if dsn == "" {
		return openTemporary(ctx)
	}
	store, err := open(ctx, dsn)
	if err != nil {
		return nil, nil, err
	}
	return store, store.Close, nil
}

func open(ctx context.Context, dsn string) (*persistence.Store, error) {
	if rest, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		return mysql.Open(ctx, rest)
	}
	if strings.HasPrefix(dsn, "postgres://") || strings.HasPrefix(dsn, "postgresql://") {
		return postgres.Open(ctx, dsn)
	}
	return sqlite.Open(ctx, dsn)
}

func openTemporary(ctx context.Context) (*persistence.Store, func() error, error) {
	dir, err := os.MkdirTemp("", "fsmgen-example-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	store, err := sqlite.Open(ctx, filepath.Join(dir, "example.db"))
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return store, func() error { return errors.Join(store.Close(), remove()) }, nil
}
