package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/mattn/go-sqlite3"
)

// connector opens connections for the store's writing pool.
type connector struct{ dsn string }

// Connect opens a connection.
func (c connector) Connect(context.Context) (driver.Conn, error) {
	dc, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	sc, ok := dc.(*sqlite3.SQLiteConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("sqlite: the driver's connection is a %T", dc), dc.Close())
	}
	// What a savepoint may have to take back is kept in a buffer of 64 KiB that could go
	// to a file, made anew for each; in memory it is as large as it needs to be. That
	// saves a tenth or more of a journaled call in a batch.
	if _, err := sc.Exec("PRAGMA temp_store = MEMORY", nil); err != nil {
		return nil, errors.Join(err, sc.Close())
	}
	return &conn{SQLiteConn: sc, session: &session{prepare: sc.Prepare, autoCommit: sc.AutoCommit, keep: true, stmts: map[string]stmt{}}}, nil
}

// Driver returns mattn's driver.
func (connector) Driver() driver.Driver { return &sqlite3.SQLiteDriver{} }

// conn is a driver connection that owns prepared statements. They end with it: a
// statement that outlives its connection would keep the file open for ever.
type conn struct {
	*sqlite3.SQLiteConn
	session *session
	hooked  bool // the hook of hold is there
}

// Close closes the statements, then the connection.
func (c *conn) Close() error { return errors.Join(c.session.close(), c.SQLiteConn.Close()) }

func (s *session) close() error {
	var errs []error
	for text, st := range s.stmts {
		errs = append(errs, st.Close())
		delete(s.stmts, text)
	}
	return errors.Join(errs...)
}
