// Package mysql keeps machines in MariaDB 10.6 or later, or in MySQL 8.0.17 or later,
// through go-sql-driver/mysql. It asks the server which of the two it is. MySQL is
// kept working by design; only MariaDB is tested.
//
// The CAS comes first, then the journal row. On MariaDB both, and the commit, are one
// prepared compound statement, so an applied call is one round trip; on MySQL, and
// where a compound cannot say it, they are a transaction of prepared statements. The
// engine's own transactions run at READ COMMITTED: a reader of REPEATABLE READ would
// be told the state before the one that made its CAS miss.
package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence"
)

// Option configures Open and New.
type Option func(*options) error

type options struct {
	wait      time.Duration // for a connection
	lockWait  time.Duration // for a row
	statement time.Duration // for one statement, on MariaDB
	conns     int
	single    bool
}

// WithoutGroupCommit gives every call a commit of its own. The results are the
// same; many callers at once are slower.
func WithoutGroupCommit() Option {
	return func(o *options) error {
		o.single = true
		return nil
	}
}

// WithWait bounds how long a call waits for a connection of the pool; default 5 s.
func WithWait(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("mysql: WithWait(%v): want a positive duration", d)
		}
		o.wait = d
		return nil
	}
}

// WithLockWait bounds how long a statement waits for a row that another transaction
// holds; default 2 s. The server counts whole seconds, so it is rounded up. Open only.
func WithLockWait(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("mysql: WithLockWait(%v): want a positive duration", d)
		}
		o.lockWait = d
		return nil
	}
}

// WithStatementTimeout bounds every statement of the pool on MariaDB, those of your
// own transactions on Store.DB too; default 4 s. A statement that the caller gave up
// lives no longer than this on the server. MySQL has no such limit for writes: there
// the wait for a row is what is bounded. Open only.
func WithStatementTimeout(d time.Duration) Option {
	return func(o *options) error {
		if d <= 0 {
			return fmt.Errorf("mysql: WithStatementTimeout(%v): want a positive duration", d)
		}
		o.statement = d
		return nil
	}
}

// WithConnections sets how many connections the pool may have, all of which it keeps;
// default 32. Open only.
func WithConnections(n int) Option {
	return func(o *options) error {
		if n < 1 {
			return fmt.Errorf("mysql: WithConnections(%d): want at least 1", n)
		}
		o.conns = n
		return nil
	}
}

func apply(opts []Option) (options, error) {
	o := options{wait: 5 * time.Second, lockWait: 2 * time.Second, statement: 4 * time.Second, conns: 32}
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("mysql: an option is nil")
		}
		if err := opt(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}

// Open opens a pool for a DSN of go-sql-driver/mysql, as in
// "user:password@tcp(host:3306)/database". What the engine needs of a session is set
// by Open: autocommit, UTC, times as time.Time, strict SQL mode, bounded waits. A system
// variable that the DSN sets itself is left as it is; one that would break results is
// refused.
func Open(ctx context.Context, dsn string, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql: open: %w; want user:password@tcp(host:3306)/database", err)
	}
	if cfg.DBName == "" {
		return nil, errors.New("mysql: open: the DSN names no database; want user:password@tcp(host:3306)/database")
	}
	complete(cfg, o)
	server, err := detect(ctx, cfg, o.wait)
	if err != nil {
		return nil, fmt.Errorf("mysql: open %s: %w", cfg.Addr, err)
	}
	if server.maria {
		preset(cfg, "max_statement_time", strconv.FormatFloat(o.statement.Seconds(), 'f', -1, 64))
	}
	db, err := pool(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql: open %s: %w", cfg.Addr, err)
	}
	db.SetMaxOpenConns(o.conns)
	db.SetMaxIdleConns(o.conns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	if err := verifySession(ctx, db, o.wait); err != nil {
		return nil, errors.Join(fmt.Errorf("mysql: open %s: %w", cfg.Addr, err), db.Close())
	}
	return store(db, server, o, true), nil
}

// New uses a pool of the caller's own, opened with driver "mysql". Its DSN should say
// parseTime=true&loc=UTC&interpolateParams=true and bound the waits, as
// innodb_lock_wait_timeout=2 and on MariaDB max_statement_time=4 do: a statement whose
// caller gave up lives on the server until then. It stays open when the store closes.
func New(db *sqlx.DB, opts ...Option) (*persistence.Store, error) {
	o, err := apply(opts)
	if err != nil {
		return nil, err
	}
	if db == nil {
		return nil, errors.New("mysql: New(nil): give an open pool")
	}
	ctx, cancel := context.WithTimeout(context.Background(), o.wait) //nolint:forbidigo // New has no caller's context
	defer cancel()
	server, err := versionOf(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("mysql: New: %w", err)
	}
	if err := verifySession(ctx, db, o.wait); err != nil {
		return nil, fmt.Errorf("mysql: New: %w", err)
	}
	return store(db, server, o, false), nil
}

func store(db *sqlx.DB, server server, o options, owned bool) *persistence.Store {
	d := dialect{server}
	return persistence.New(persistence.Config{
		DB: db, Dialect: d, Runner: &runner{db: db, begin: d.begin(), noWait: server.compound(), wait: o.wait}, Wait: o.wait, Owned: owned, Judge: !o.single,
	})
}

// complete gives a DSN with what the engine needs.
func complete(cfg *driver.Config, o options) {
	cfg.ParseTime, cfg.Loc, cfg.InterpolateParams = true, time.UTC, true
	if cfg.Timeout == 0 {
		cfg.Timeout = o.wait
	}
	if cfg.ReadTimeout == 0 { // a network that swallows packets never tells
		cfg.ReadTimeout = max(o.statement, o.lockWait) + o.wait
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = o.wait
	}
	preset(cfg, "autocommit", "1")
	preset(cfg, "time_zone", "'+00:00'")
	preset(cfg, "sql_mode", "CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')")
	preset(cfg, "innodb_lock_wait_timeout", strconv.Itoa(int(math.Ceil(o.lockWait.Seconds()))))
}

// preset sets a system variable unless the DSN does, whose spelling of a name may differ
// in case: of two settings for one the server takes whichever comes last.
func preset(cfg *driver.Config, name, value string) {
	for set := range cfg.Params {
		if strings.EqualFold(set, name) {
			return
		}
	}
	if cfg.Params == nil {
		cfg.Params = map[string]string{}
	}
	cfg.Params[name] = value
}

func pool(cfg *driver.Config) (*sqlx.DB, error) {
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sqlx.NewDb(sql.OpenDB(connector), "mysql"), nil
}
