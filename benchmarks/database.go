package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// connections is the pool of every variant on a server.
const connections = 32

// database is where everything is measured.
type database struct {
	name  string
	store *persistence.Store
	dsn   string
	clean func() error
}

func open(ctx context.Context, s settings) (*database, error) {
	db := &database{name: s.db, dsn: s.dsn, clean: func() error { return nil }}
	var err error
	switch s.db {
	case "sqlite":
		if db.dsn == "" {
			dir, err := os.MkdirTemp("", "fsmgen-bench-")
			if err != nil {
				return nil, err
			}
			db.dsn, db.clean = filepath.Join(dir, "bench.db"), func() error { return os.RemoveAll(dir) }
		}
		db.store, err = sqlite.Open(ctx, db.dsn)
	case "postgres":
		db.store, err = postgres.Open(ctx, db.dsn, postgres.WithConnections(connections))
	case "mysql":
		db.store, err = mysql.Open(ctx, db.dsn)
		if err == nil {
			db.store.DB().SetMaxOpenConns(connections)
			db.store.DB().SetMaxIdleConns(connections)
		}
	default:
		return nil, fmt.Errorf("-db %q: want sqlite, postgres or mysql", s.db)
	}
	if err != nil {
		return nil, errors.Join(err, db.clean())
	}
	return db, nil
}

func (db *database) close() error { return errors.Join(db.store.Close(), db.clean()) }

// sql writes a statement in the database's own placeholders and quotes.
func (db *database) sql(text string) string {
	switch db.name {
	case "postgres":
		text = strings.ReplaceAll(text, "`", `"`)
		for n := 1; strings.Contains(text, "?"); n++ {
			text = strings.Replace(text, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	return text
}

// exec runs a statement that must succeed.
func (db *database) exec(ctx context.Context, text string, args ...any) error {
	if _, err := db.store.DB().ExecContext(ctx, db.sql(text), args...); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// now is a time as the journal's column takes it.
func (db *database) now() any {
	if db.name == "sqlite" {
		return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	}
	return time.Now().UTC()
}
