// Package postgres keeps machines in PostgreSQL 15 or newer, through
// jackc/pgx/v5/stdlib.
//
// A transition and its journal entry are one statement, and so one round trip. Inside
// a caller's transaction nothing is sent that could end it on the way to an answer.
// When a connection breaks the call runs again under its key on another one, and the
// journal's unique index settles what had happened.
package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence"
)

// Option configures Open and New.
type Option func(*options) error

type options struct {
	wait             time.Duration
	conns            int
	statement, locks time.Duration
	single           bool
}

// WithoutGroupCommit gives every call a commit of its own. The results are the
// same; many callers at once are slower.
func WithoutGroupCommit() Option {
	return func(o *options) error {
		o.single = true
		return nil
	}
}

// store makes the store over a pool.
func (o *options) store(db *sqlx.DB, owned bool) *persistence.Store {
	return persistence.New(persistence.Config{DB: db, Dialect: dialect{}, Runner: newGroup(db, o), Pipelined: !o.single, Wait: o.wait, Owned: owned})
}

// WithWait bounds how long a call waits for a connection of the pool; default 5 s. A
// call that waited that long gets engine.ErrBusy.
func WithWait(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("postgres: WithWait(%v): want a positive duration", d)
		}
		o.wait = d
		return nil
	}
}

// WithConnections bounds the pool that Open makes; default 20. All of them stay open
// when idle. All pools of all processes together must fit into the server's
// max_connections.
func WithConnections(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("postgres: WithConnections(%d): want at least 1", n)
		}
		o.conns = n
		return nil
	}
}

// WithStatementTimeout is the statement_timeout of the connections that Open makes,
// unless the DSN names one; default 30 s. It is how long a statement can live on that
// the network has cut off from its caller. 0 leaves the server's setting, as poolers
// that refuse startup parameters need it.
//
// It also says when a connection counts as dead: where the server says nothing for that
// long and the time of WithWait, in transactions of your own on Store.DB too. LISTEN on a
// pool of your own. With 0 only a context with a deadline ends such a wait.
func WithStatementTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 || (d > 0 && d < time.Millisecond) {
			return fmt.Errorf("postgres: WithStatementTimeout(%v): want 0 or at least 1ms", d)
		}
		o.statement = d
		return nil
	}
}

// WithLockTimeout is the lock_timeout of the connections that Open makes, unless the
// DSN names one; default 5 s. It bounds how long a call waits for a row that another
// transaction holds, and ends the wait of a caller whose own open transaction holds
// it. 0 leaves the server's setting.
func WithLockTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d < 0 || (d > 0 && d < time.Millisecond) {
			return fmt.Errorf("postgres: WithLockTimeout(%v): want 0 or at least 1ms", d)
		}
		o.locks = d
		return nil
	}
}

func apply(opts []Option) (options, error) {
	o := options{wait: 5 * time.Second, conns: 20, statement: 30 * time.Second, locks: 5 * time.Second}
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("postgres: an option is nil")
		}
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Open connects to the database that dsn names, as a URL or as key=value pairs
// (https://pkg.go.dev/github.com/jackc/pgx/v5/pgconn#ParseConfig), and proves that it
// answers.
func Open(ctx context.Context, dsn string, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(dsn) == "" {
		return nil, errors.New("postgres: open: the DSN is empty; want postgres://user:password@host:5432/database")
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	o.settings(config)
	config.BuildContextWatcherHandler = newCanceller
	config.OnPgError = note
	o.hearing(config)
	db := sqlx.NewDb(stdlib.OpenDB(*config, stdlib.OptionResetSession(usable)), "pgx")
	db.SetMaxOpenConns(o.conns)
	db.SetMaxIdleConns(o.conns)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("postgres: open: %w", err), db.Close())
	}
	return o.store(db, true), nil
}

// settings are the session's, where the DSN does not name them. In the modes that
// send values as text times and floats must be readable, whatever it says.
func (o *options) settings(config *pgx.ConnConfig) {
	set := func(name, value string) {
		if _, named := config.RuntimeParams[name]; !named && !strings.Contains(config.RuntimeParams["options"], name) {
			config.RuntimeParams[name] = value
		}
	}
	if o.statement > 0 {
		set("statement_timeout", strconv.FormatInt(o.statement.Milliseconds(), 10))
	}
	if o.locks > 0 {
		set("lock_timeout", strconv.FormatInt(o.locks.Milliseconds(), 10))
	}
	if config.DefaultQueryExecMode == pgx.QueryExecModeSimpleProtocol || config.DefaultQueryExecMode == pgx.QueryExecModeExec {
		for name := range config.RuntimeParams {
			if strings.EqualFold(name, "DateStyle") {
				delete(config.RuntimeParams, name)
			}
		}
		config.RuntimeParams["DateStyle"], config.RuntimeParams["extra_float_digits"] = "ISO", "1"
	}
}

// usable drops a pooled connection that was sent a cancel request, and one whose
// server says that it became a standby, so that the next one is opened anew, where the
// DSN names several servers to the one that took over.
func usable(_ context.Context, conn *pgx.Conn) error {
	c := conn.PgConn()
	if wasCancelled(c) || c.ParameterStatus("in_hot_standby") == "on" || c.ParameterStatus("default_transaction_read_only") == "on" {
		return driver.ErrBadConn
	}
	return nil
}

// New uses a pool of the caller's own, opened with driver "pgx". Give its DSN a
// statement_timeout: it is how long a statement can live on that the network has cut
// off from its caller. A cancelled call leaves its statement to the driver, which closes
// the connection; Open waits for the server to end the statement. Where an
// instrumentation wraps the driver's connections, every call has a commit of its own. The
// pool stays open when the store closes. Of the options [WithWait] and [WithoutGroupCommit]
// apply; the others are about the connections that Open makes.
func New(db *sqlx.DB, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, errors.New("postgres: New(nil): give an open pool")
	}
	return o.store(db, false), nil
}

// DDL gives the statements that create the business table and the journal of
// definitions, where they are missing.
func DDL(defs ...*definitions.Machine) string {
	return strings.Join(persistence.DDL(dialect{}, defs...), ";\n\n") + ";\n"
}
