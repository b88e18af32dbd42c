package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fsmgen/fsmgen/persistence"
)

// session runs statements of one connection. It is used only while that connection
// is taken. The store's own connections keep their statements prepared; on others,
// whatever driver wraps SQLite there, the driver may: _stmt_cache_size in its DSN.
type session struct {
	prepare func(text string) (driver.Stmt, error)
	// autoCommit reports whether no transaction is open; nil where the driver hides it.
	autoCommit func() bool
	keep       bool
	held       bool // nothing may commit, see hold
	stmts      map[string]stmt
	args       []driver.NamedValue
	row        []driver.Value
}

// stmt is what a prepared statement must be able to do.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// sessionOf gives the session of a driver connection.
func sessionOf(dc any) (*session, error) {
	if own, ok := dc.(*conn); ok {
		return own.session, nil
	}
	c, ok := dc.(driver.Conn)
	if !ok {
		return nil, fmt.Errorf("sqlite: the pool's driver connection is a %T, which is no driver.Conn", dc)
	}
	s := &session{prepare: c.Prepare}
	if p, ok := c.(driver.ConnPrepareContext); ok {
		s.prepare = func(text string) (driver.Stmt, error) {
			return p.PrepareContext(context.Background(), text) //nolint:forbidigo // the driver must not see a context that ends
		}
	}
	if a, ok := unwrapped(c).(interface{ AutoCommit() bool }); ok {
		s.autoCommit = a.AutoCommit
	}
	return s, nil
}

// unwrapped looks for the driver's own connection behind those of instrumentation.
func unwrapped(c driver.Conn) driver.Conn {
	for {
		switch w := c.(type) {
		case interface{ Unwrap() driver.Conn }:
			c = w.Unwrap()
		case interface{ Raw() driver.Conn }:
			c = w.Raw()
		default:
			return c
		}
	}
}

// ended reports whether the open transaction is known to be gone.
func (s *session) ended() bool { return s.autoCommit != nil && s.autoCommit() }

// silence makes a connection that is not the store's own answer at once when the
// database is locked: the driver's wait knows no context, the store's does. It
// returns what puts the caller's setting back.
func (s *session) silence() (restore func(), err error) {
	if s.keep {
		return func() {}, nil
	}
	var timeout any
	if _, err := s.Query("PRAGMA busy_timeout", nil, []any{&timeout}); err != nil {
		return nil, err
	}
	if timeout == int64(0) {
		return func() {}, nil
	}
	if err := s.pragma(0); err != nil {
		return nil, err
	}
	return func() { _ = s.pragma(timeout) }, nil
}

func (s *session) pragma(timeout any) error {
	var now any
	_, err := s.Query(fmt.Sprintf("PRAGMA busy_timeout = %d", timeout), nil, []any{&now})
	return err
}

func (s *session) begin() error { return s.exec("BEGIN IMMEDIATE") }

// transaction runs fn and commits; after an error, or a panic, only ROLLBACK is sent. Where
// the journal is one for rollback, readers hold up the COMMIT, which leaves the transaction
// open and can be sent again.
func (s *session) transaction(ctx context.Context, wait time.Duration, fn func() error) (err error) {
	committed := false
	defer func() {
		if !committed && !s.ended() {
			_ = s.exec("ROLLBACK")
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if err := persistence.Patiently(ctx, wait, locked, func() error { return s.exec("COMMIT") }); err != nil {
		return err
	}
	committed = true
	return nil
}

// savepoint runs one unit of a batch, so that what it did can be taken back alone. A
// plain unit is one statement, which SQLite takes back by itself.
func (s *session) savepoint(u unit) error {
	if u.plain {
		return u.fn(s)
	}
	if err := s.exec("SAVEPOINT fsmgen_unit"); err != nil {
		return err
	}
	err := u.fn(s)
	if err == nil {
		return s.exec("RELEASE fsmgen_unit")
	}
	if !s.ended() {
		err = errors.Join(err, s.exec("ROLLBACK TO fsmgen_unit"), s.exec("RELEASE fsmgen_unit"))
	}
	return err
}

func (s *session) exec(text string) error {
	_, _, err := s.Exec(text, nil)
	return err
}

// prepared returns the statement for text, and what to do with it after use.
func (s *session) prepared(text string) (st stmt, done func() error, err error) {
	if st, ok := s.stmts[text]; ok {
		return st, nothing, nil
	}
	raw, err := s.prepare(text)
	if err != nil {
		return nil, nil, err
	}
	st, ok := raw.(stmt)
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("sqlite: the driver's statement is a %T, which takes no context", raw), raw.Close())
	}
	if !s.keep {
		return st, st.Close, nil
	}
	s.stmts[text] = st
	return st, nothing, nil
}

func nothing() error { return nil }

// after closes something at the end of a function, whose own error comes first.
func after(done func() error, err *error) {
	if failed := done(); *err == nil {
		*err = failed
	}
}

// named gives args the driver's form; the slice is reused.
func (s *session) named(args []any) []driver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// Exec runs a statement. The last insert id is not asked for: no unit on SQLite uses it.
func (s *session) Exec(text string, args []any) (affected, lastID int64, err error) {
	st, done, err := s.prepared(text)
	if err != nil {
		return 0, 0, err
	}
	defer after(done, &err)
	res, err := st.ExecContext(context.Background(), s.named(args)) //nolint:forbidigo // the driver must not see a context that ends
	if err != nil {
		return 0, 0, err
	}
	affected, err = res.RowsAffected()
	return affected, 0, err
}

// Query reads the first row.
func (s *session) Query(text string, args []any, dest []any) (found bool, err error) {
	st, done, err := s.prepared(text)
	if err != nil {
		return false, err
	}
	defer after(done, &err)
	rows, err := st.QueryContext(context.Background(), s.named(args)) //nolint:forbidigo // as above
	if err != nil {
		return false, err
	}
	defer after(rows.Close, &err)
	if cap(s.row) < len(dest) {
		s.row = make([]driver.Value, len(dest))
	}
	row := s.row[:len(dest)]
	switch err := rows.Next(row); {
	case errors.Is(err, io.EOF):
		return false, nil
	case err != nil:
		return false, err
	}
	for i, d := range dest {
		to, ok := d.(*any)
		if !ok {
			return false, fmt.Errorf("sqlite: a value is to be read into a %T, want *any", d)
		}
		*to = row[i]
	}
	return true, nil
}
