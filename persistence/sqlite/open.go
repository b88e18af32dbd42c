// Package sqlite keeps machines in an SQLite file, through mattn/go-sqlite3.
//
// SQLite has one writer at a time. Open therefore uses one writing connection,
// whose callers queue in the process, and a pool that only reads. Transactions
// begin IMMEDIATE, commits are durable (synchronous=FULL), the wait for a lock
// that another process holds honours the context, and no context that could be
// cancelled reaches the driver while it writes.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence"
)

// Option configures Open and New.
type Option func(*options) error

type options struct {
	wait    time.Duration
	readers int
	single  bool
}

// WithoutGroupCommit gives every call a commit of its own. The results are the
// same; many callers at once are slower.
func WithoutGroupCommit() Option {
	return func(o *options) error {
		o.single = true
		return nil
	}
}

// WithWait bounds how long a call waits for the writer; default 5 s. A call that
// waited that long gets engine.ErrBusy: another transaction holds the writer.
func WithWait(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("sqlite: WithWait(%v): want a positive duration", d)
		}
		o.wait = d
		return nil
	}
}

func apply(opts []Option) (options, error) {
	o := options{wait: 5 * time.Second, readers: 4}
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("sqlite: an option is nil")
		}
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Open opens, and where missing creates, the database file at path. The directory
// must exist. ":memory:" gives a database that lives as long as the store.
func Open(ctx context.Context, path string, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("sqlite: open %q: give the path of a database file", path)
	}
	db := sql.OpenDB(connector{dsn(path, "_journal_mode=WAL&_synchronous=FULL&_txlock=immediate&_busy_timeout=0&_foreign_keys=1&_stmt_cache_size=64")})
	writer, err := pool(ctx, sqlx.NewDb(db, "sqlite3"), 1, o.wait)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, explain(err))
	}
	reader := writer
	if path != ":memory:" {
		if reader, err = sqlx.Open("sqlite3", dsn(path, "mode=ro&_query_only=1&_busy_timeout=5000&_stmt_cache_size=64")); err == nil {
			reader, err = pool(ctx, reader, o.readers, o.wait)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, explain(err)), writer.Close())
		}
	}
	return persistence.New(persistence.Config{
		DB: writer, Reader: reader, Dialect: dialect{}, Runner: newRunner(writer, o), Wait: o.wait, Owned: true,
	}), nil
}

// New uses a pool of the caller's own, opened with driver "sqlite3". Its DSN should
// say _txlock=immediate, and _busy_timeout=0: the store waits for locks itself, and
// a longer timeout is not cut short by a context. It stays open when the store closes.
func New(db *sqlx.DB, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, errors.New("sqlite: New(nil): give an open pool")
	}
	if err := oneDatabase(db, o.wait); err != nil {
		return nil, err
	}
	return persistence.New(persistence.Config{DB: db, Dialect: dialect{}, Runner: newRunner(db, o), Wait: o.wait}), nil
}

// oneDatabase refuses a pool over ":memory:", each of whose connections would be an empty
// database of its own. One connection is fine, and so is cache=shared.
func oneDatabase(db *sqlx.DB, wait time.Duration) error {
	if db.Stats().MaxOpenConnections == 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait) //nolint:forbidigo // New takes no context
	defer cancel()
	first, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("sqlite: New: %w", explain(err))
	}
	defer first.Close() //nolint:errcheck // gives the connection back
	var file string
	if err := first.GetContext(ctx, &file, "SELECT file FROM pragma_database_list WHERE name = 'main'"); err != nil || file != "" {
		return nil // a database in a file; whatever is wrong with it is told at its first use
	}
	second, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("sqlite: New: %w", explain(err))
	}
	defer second.Close() //nolint:errcheck // as above
	if _, err := first.ExecContext(ctx, "CREATE TABLE fsmgen_probe (n)"); err != nil {
		return fmt.Errorf("sqlite: New: %w", explain(err))
	}
	var n int
	seen := second.GetContext(ctx, &n, "SELECT count(*) FROM fsmgen_probe")
	if _, err := first.ExecContext(ctx, "DROP TABLE fsmgen_probe"); err != nil {
		return fmt.Errorf("sqlite: New: %w", explain(err))
	}
	if seen != nil {
		return errors.New("sqlite: New: every connection to \":memory:\" is a database of its own: call db.SetMaxOpenConns(1), or use sqlite.Open(ctx, \":memory:\")")
	}
	return nil
}

// dsn names the file at path for the driver.
func dsn(path, params string) string {
	if path == ":memory:" {
		return "file::memory:?" + params
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath()}).String() + "?" + params
}

// pool sizes a pool and proves that it works. Opening can meet a lock too.
func pool(ctx context.Context, db *sqlx.DB, conns int, wait time.Duration) (*sqlx.DB, error) {
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	db.SetConnMaxLifetime(0)
	err := persistence.Patiently(ctx, wait, locked, func() error {
		var n int
		return db.GetContext(context.WithoutCancel(ctx), &n, "SELECT count(*) FROM sqlite_schema")
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// locked reports whether somebody else holds the database.
func locked(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrBusy || e.Code == sqlite3.ErrLocked)
}

// explain adds what to do to the errors of opening.
func explain(err error) error {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case sqlite3.ErrCantOpen:
		return fmt.Errorf("%w: the directory must exist and be writable", err)
	case sqlite3.ErrReadonly:
		return fmt.Errorf("%w: the file and its directory must be writable", err)
	case sqlite3.ErrNotADB, sqlite3.ErrCorrupt:
		return fmt.Errorf("%w: the file is damaged or no SQLite database; restore it from a backup", err)
	}
	return err
}

// DDL gives the statements that create the business table and the journal of
// definitions, where they are missing.
func DDL(defs ...*definitions.Machine) string {
	return strings.Join(persistence.DDL(dialect{}, defs...), ";\n\n") + ";\n"
}
