package recorder

import (
	"context"
	"database/sql/driver"
	"errors"
)

// conn records what reaches one connection.
type conn struct {
	driver.Conn
	log *Log
	n   int
}

// Unwrap gives the driver's own connection, for code that looks for its type in
// (*sql.Conn).Raw.
func (c *conn) Unwrap() driver.Conn { return c.Conn }

func (c *conn) run(op, text string, do func() error) error {
	return c.log.run(Event{Op: op, Text: text, Conn: c.n}, do)
}

// ExecContext records and runs a statement.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (res driver.Result, err error) {
	inner, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	err = c.run("exec", text, func() error {
		res, err = inner.ExecContext(ctx, text, args)
		return err
	})
	return res, err
}

// QueryContext records and runs a query.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	inner, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	err = c.run("query", text, func() error {
		rows, err = inner.QueryContext(ctx, text, args)
		return err
	})
	return rows, err
}

// PrepareContext records the preparation and wraps the statement.
func (c *conn) PrepareContext(ctx context.Context, text string) (st driver.Stmt, err error) {
	err = c.run("prepare", text, func() error {
		if inner, ok := c.Conn.(driver.ConnPrepareContext); ok {
			st, err = inner.PrepareContext(ctx, text)
		} else {
			st, err = c.Conn.Prepare(text)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &stmt{Stmt: st, c: c, text: text}, nil
}

// BeginTx records the beginning of a transaction and wraps it.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (t driver.Tx, err error) {
	inner, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, missing(c.Conn, "BeginTx")
	}
	err = c.run("begin", "", func() error {
		t, err = inner.BeginTx(ctx, opts)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &tx{t, c}, nil
}

// Ping, ResetSession, IsValid and CheckNamedValue are passed on unrecorded.
func (c *conn) Ping(ctx context.Context) error {
	if inner, ok := c.Conn.(driver.Pinger); ok {
		return inner.Ping(ctx)
	}
	return nil
}

// ResetSession is passed on.
func (c *conn) ResetSession(ctx context.Context) error {
	if inner, ok := c.Conn.(driver.SessionResetter); ok {
		return inner.ResetSession(ctx)
	}
	return nil
}

// IsValid is passed on.
func (c *conn) IsValid() bool {
	if inner, ok := c.Conn.(driver.Validator); ok {
		return inner.IsValid()
	}
	return true
}

// CheckNamedValue is passed on.
func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if inner, ok := c.Conn.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// tx records the end of a transaction.
type tx struct {
	driver.Tx
	c *conn
}

func (t *tx) Commit() error   { return t.c.run("commit", "", t.Tx.Commit) }
func (t *tx) Rollback() error { return t.c.run("rollback", "", t.Tx.Rollback) }

// stmt records the executions of a prepared statement.
type stmt struct {
	driver.Stmt
	c    *conn
	text string
}

// ExecContext records and runs the statement.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (res driver.Result, err error) {
	inner, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, missing(s.Stmt, "ExecContext")
	}
	err = s.c.run("exec", s.text, func() error {
		res, err = inner.ExecContext(ctx, args)
		return err
	})
	return res, err
}

// QueryContext records and runs the statement.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	inner, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, missing(s.Stmt, "QueryContext")
	}
	err = s.c.run("query", s.text, func() error {
		rows, err = inner.QueryContext(ctx, args)
		return err
	})
	return rows, err
}

// CheckNamedValue is passed on: to the statement, else to the connection.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if inner, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(v)
	}
	return s.c.CheckNamedValue(v)
}

var errNoContext = errors.New("recorder: use the methods with a context")

// Exec is never called: database/sql prefers ExecContext.
func (s *stmt) Exec([]driver.Value) (driver.Result, error) { return nil, errNoContext }

// Query is never called: database/sql prefers QueryContext.
func (s *stmt) Query([]driver.Value) (driver.Rows, error) { return nil, errNoContext }
