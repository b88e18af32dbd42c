package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// session holds one connection's prepared statements. It is used only while that
// connection is taken.
type session struct {
	conn  *sqlite3.SQLiteConn
	stmts map[string]*sqlite3.SQLiteStmt
	args  []driver.NamedValue
}

// sessions finds the statements of a driver connection.
type sessions struct {
	mu    sync.Mutex
	conns map[*sqlite3.SQLiteConn]*session
}

// maxSessions bounds how many connections' statements are remembered. A pool of the
// store's own has one; statements of a forgotten connection are closed with it.
const maxSessions = 16

func (c *sessions) of(dc any) (*session, error) {
	if own, ok := dc.(*conn); ok {
		return own.session, nil
	}
	conn, ok := dc.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, fmt.Errorf("sqlite: the pool's driver connection is a %T, want mattn/go-sqlite3", dc)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.conns[conn]; ok {
		return s, nil
	}
	if c.conns == nil || len(c.conns) >= maxSessions {
		c.conns = map[*sqlite3.SQLiteConn]*session{}
	}
	s := &session{conn: conn, stmts: map[string]*sqlite3.SQLiteStmt{}}
	c.conns[conn] = s
	return s, nil
}

func (s *session) begin() error { return s.exec("BEGIN IMMEDIATE") }

// transaction runs fn and commits; after an error, or a panic, only ROLLBACK is sent.
func (s *session) transaction(fn func() error) (err error) {
	committed := false
	defer func() {
		if !committed && !s.conn.AutoCommit() {
			_ = s.exec("ROLLBACK")
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if err := s.exec("COMMIT"); err != nil {
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
	if !s.conn.AutoCommit() {
		err = errors.Join(err, s.exec("ROLLBACK TO fsmgen_unit"), s.exec("RELEASE fsmgen_unit"))
	}
	return err
}

func (s *session) exec(text string) error {
	_, _, err := s.Exec(text, nil)
	return err
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

// Exec runs a statement. The last insert id is not asked for: no unit on SQLite uses it.
func (s *session) Exec(text string, args []any) (affected, lastID int64, err error) {
	st, err := s.prepared(text)
	if err != nil {
		return 0, 0, err
	}
	res, err := st.ExecContext(context.Background(), s.named(args)) //nolint:forbidigo // the driver must not see a context that ends
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
	rows, err := st.QueryContext(context.Background(), s.named(args)) //nolint:forbidigo // as above
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
