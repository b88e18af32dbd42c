package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// runner executes units with the driver's own prepared statements: what database/sql
// adds per statement costs more than SQLite itself.
type runner struct {
	db   *sqlx.DB
	wait time.Duration

	mu    sync.Mutex
	conns map[*sqlite3.SQLiteConn]*session
}

// maxSessions bounds how many connections' statements are remembered. A pool of the
// store's own has one; statements of a forgotten connection are closed with it.
const maxSessions = 16

// session holds one connection's prepared statements. It is used only while that
// connection is taken.
type session struct {
	conn  *sqlite3.SQLiteConn
	stmts map[string]*sqlite3.SQLiteStmt
	args  []driver.NamedValue
}

// Unit runs fn in one transaction, or plain: as single statements.
func (r *runner) Unit(ctx context.Context, plain bool, fn func(x persistence.Execer) error) error {
	conn, err := r.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	return conn.Raw(func(dc any) error {
		s, err := r.session(dc)
		if err != nil {
			return err
		}
		if plain {
			return persistence.Patiently(ctx, r.wait, locked, func() error { return fn(s) })
		}
		if err := persistence.Patiently(ctx, r.wait, locked, s.begin); err != nil {
			return err
		}
		return s.transaction(fn)
	})
}

func (s *session) begin() error {
	_, _, err := s.Exec("BEGIN IMMEDIATE", nil)
	return err
}

// transaction runs fn and commits; after an error, or a panic, only ROLLBACK is sent.
func (s *session) transaction(fn func(x persistence.Execer) error) (err error) {
	committed := false
	defer func() {
		if !committed {
			_, _, _ = s.Exec("ROLLBACK", nil) // SQLite may have rolled back already
		}
	}()
	if err := fn(s); err != nil {
		return err
	}
	if _, _, err := s.Exec("COMMIT", nil); err != nil {
		return err
	}
	committed = true
	return nil
}

// conn takes the writing connection. Waiting is bounded; where nobody holds it there
// is nothing to wait for, and the timer is saved.
func (r *runner) conn(ctx context.Context) (*sql.Conn, error) {
	if stats := r.db.Stats(); stats.MaxOpenConnections == 0 || stats.InUse < stats.MaxOpenConnections {
		conn, err := r.db.Conn(ctx)
		return conn, r.connError(ctx, err)
	}
	wait, cancel := context.WithTimeout(ctx, r.wait)
	defer cancel()
	conn, err := r.db.Conn(wait)
	return conn, r.connError(ctx, err)
}

func (r *runner) connError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return &engine.Fault{Class: engine.ClassUnsent, Err: ctx.Err(), Hint: "the context ended while waiting for the writer"}
	case errors.Is(err, context.DeadlineExceeded):
		return &engine.Fault{Class: engine.ClassRetryable, Err: err,
			Hint: "another transaction holds the writer; a call made while a transaction is open must go through In(tx)"}
	}
	return err
}

// session finds the statements of a driver connection.
func (r *runner) session(dc any) (*session, error) {
	conn, ok := dc.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, fmt.Errorf("sqlite: the pool's driver connection is a %T, want mattn/go-sqlite3", dc)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.conns[conn]; ok {
		return s, nil
	}
	if r.conns == nil || len(r.conns) >= maxSessions {
		r.conns = map[*sqlite3.SQLiteConn]*session{}
	}
	s := &session{conn: conn, stmts: map[string]*sqlite3.SQLiteStmt{}}
	r.conns[conn] = s
	return s, nil
}

// prepared returns the statement for text.
func (s *session) prepared(text string) (*sqlite3.SQLiteStmt, error) {
	if st, ok := s.stmts[text]; ok {
		return st, nil
	}
	st, err := s.conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	stmt := st.(*sqlite3.SQLiteStmt)
	s.stmts[text] = stmt
	return stmt, nil
}

// named gives args the driver's form; the slice is reused.
func (s *session) named(args []any) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// Exec runs a statement.
func (s *session) Exec(text string, args []any) (affected, lastID int64, err error) {
	st, err := s.prepared(text)
	if err != nil {
		return 0, 0, err
	}
	res, err := st.ExecContext(context.Background(), s.named(args))
	if err != nil {
		return 0, 0, err
	}
	affected, err = res.RowsAffected()
	return affected, 0, err
}

// Query reads the first row.
func (s *session) Query(text string, args []any, dest []any) (found bool, err error) {
	st, err := s.prepared(text)
	if err != nil {
		return false, err
	}
	rows, err := st.QueryContext(context.Background(), s.named(args))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	switch err := rows.Next(row); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	for i, v := range row {
		*dest[i].(*any) = v
	}
	return true, nil
}
