package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// connection is what the engine needs of a driver's connection.
type connection interface {
	sqldriver.Conn
	sqldriver.ConnPrepareContext
	sqldriver.ExecerContext
}

func asConn(dc any) (connection, error) {
	conn, ok := dc.(connection)
	if !ok {
		return nil, fmt.Errorf("mysql: the pool's driver connection %T lacks PrepareContext or ExecContext: use go-sql-driver/mysql, or a wrapper that passes them on", dc)
	}
	return conn, nil
}

// maxStatements bounds what one connection keeps prepared: the server's limit counts
// those of all connections together.
const maxStatements = 256

// session holds one connection's prepared statements. It is used only while that
// connection is taken.
type session struct {
	conn   connection
	stmts  map[string]sqldriver.Stmt
	args   []sqldriver.NamedValue
	broken bool  // not to be used again
	used   int64 // when it was last given out, by the runner's clock

	caller context.Context //nolint:containedctx // it lives for one unit
	ctx    context.Context //nolint:containedctx // it lives for one unit
	open   bool            // a transaction is open, so nothing is committed yet
	midway bool            // a statement was stopped in its middle
	prefix string          // of statements that are executed
	since  time.Time       // when the statement was sent
}

// use begins a unit. The driver closes the connection when its context ends, so it is
// given one that ends a little later than the caller's.
func (s *session) use(ctx context.Context) (done func()) {
	s.caller, s.ctx, s.open, s.midway = ctx, ctx, false, false
	if ctx.Done() == nil {
		return func() { s.caller, s.ctx = nil, nil }
	}
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.ctx = late
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return func() {
		stop()
		cancel()
		s.caller, s.ctx = nil, nil
	}
}

// single runs fn's statements each on its own. A compound rolls back by itself; where it
// was stopped from outside that is not relied on.
func (s *session) single(fn func(x persistence.Execer) error) error {
	err := fn(s)
	if s.midway {
		s.rollback()
	}
	return err
}

// transaction runs fn and commits; after an error, or a panic, only ROLLBACK is sent.
func (s *session) transaction(begin []string, fn func(x persistence.Execer) error) error {
	s.open = true
	committed := false
	defer func() {
		if !committed {
			s.rollback()
		}
	}()
	for _, text := range begin {
		if _, _, err := s.Exec(text, nil); err != nil {
			return err
		}
	}
	if err := fn(s); err != nil {
		return err
	}
	if err := s.ended(); err != nil {
		return err
	}
	s.open = false
	if _, err := s.conn.ExecContext(s.ctx, "COMMIT", nil); err != nil {
		return s.fault(err)
	}
	committed = true
	return nil
}

// rollback ends what may be open. A connection that cannot say that it did is closed.
func (s *session) rollback() {
	if v, ok := s.conn.(sqldriver.Validator); ok && !v.IsValid() {
		s.broken = true
	}
	if s.broken {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), time.Second)
	defer cancel()
	if _, err := s.conn.ExecContext(ctx, "ROLLBACK", nil); err != nil {
		s.broken = true
	}
}

// ended reports a context that is over before the next statement was sent.
func (s *session) ended() error {
	if err := s.caller.Err(); err != nil {
		return &engine.Fault{Class: engine.ClassRetryable, Err: context.Cause(s.caller), Hint: "the context ended before the commit"}
	}
	return nil
}

// cause names the caller's context where it was what stopped the driver.
func (s *session) cause(err error) error {
	if s.caller.Err() != nil && errors.Is(err, context.Canceled) {
		return context.Cause(s.caller)
	}
	return err
}

// fault classifies an error of a statement. While a transaction is open a broken
// connection means that the server rolls back.
func (s *session) fault(err error) error {
	err = s.cause(err)
	s.broken = s.broken || severed(err)
	class := committing(err)
	s.midway = s.midway || class == engine.ClassUnknown
	if s.open {
		if class = classify(err); class == engine.ClassUnknown {
			class = engine.ClassRetryable
		}
	}
	if held(err) && time.Since(s.since) > longWait { // as long again would not be better
		return persistence.Waited(err, persistence.RowHeld)
	}
	return &engine.Fault{Class: class, Err: err}
}

// longWait tells a wait for a row that ran into its limit from one that was refused.
const longWait = 500 * time.Millisecond

// prepared returns the statement for text. What fails here was not executed.
func (s *session) prepared(text string) (sqldriver.Stmt, error) {
	if st, ok := s.stmts[text]; ok {
		return st, nil
	}
	if len(s.stmts) >= maxStatements {
		for text, st := range s.stmts {
			_ = st.Close()
			delete(s.stmts, text)
		}
	}
	st, err := s.conn.PrepareContext(s.ctx, text)
	if err != nil {
		s.broken = s.broken || severed(err)
		return nil, notSent(s.cause(err))
	}
	s.stmts[text] = st
	return st, nil
}

// named gives args the driver's form; the slice is reused.
func (s *session) named(args []any) []sqldriver.NamedValue {
	s.args = s.args[:0]
	for i, v := range args {
		s.args = append(s.args, sqldriver.NamedValue{Ordinal: i + 1, Value: v})
	}
	return s.args
}

// Exec runs a statement; one without arguments is not worth preparing.
func (s *session) Exec(text string, args []any) (affected, lastID int64, err error) {
	if err := s.ended(); err != nil {
		return 0, 0, err
	}
	var res sqldriver.Result
	s.since = time.Now()
	if len(args) == 0 {
		res, err = s.conn.ExecContext(s.ctx, text, nil)
	} else {
		if s.prefix != "" {
			text = s.prefix + text
		}
		var st sqldriver.Stmt
		if st, err = s.prepared(text); err != nil {
			return 0, 0, err
		}
		res, err = execStmt(s.ctx, st, s.named(args))
	}
	if err != nil {
		return 0, 0, s.fault(err)
	}
	if affected, err = res.RowsAffected(); err != nil {
		return 0, 0, s.fault(err)
	}
	if lastID, err = res.LastInsertId(); err != nil {
		return 0, 0, s.fault(err)
	}
	return affected, lastID, nil
}

// Query reads the first row. What follows it is read too: the answer of a compound
// counts only when the whole of it came without an error.
func (s *session) Query(text string, args []any, dest []any) (found bool, err error) {
	if err := s.ended(); err != nil {
		return false, err
	}
	st, err := s.prepared(text)
	if err != nil {
		return false, err
	}
	s.since = time.Now()
	rows, err := queryStmt(s.ctx, st, s.named(args))
	if err != nil {
		return false, s.fault(err)
	}
	row := make([]sqldriver.Value, len(dest))
	err = rows.Next(row)
	found = err == nil
	for i, v := range row {
		if b, ok := v.([]byte); ok {
			v = slices.Clone(b) // the driver reuses its buffer
		}
		*dest[i].(*any) = v //nolint:errcheck // destinations are the store's own, all of this type
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		return false, s.fault(err)
	}
	return found, nil
}

func execStmt(ctx context.Context, st sqldriver.Stmt, args []sqldriver.NamedValue) (sqldriver.Result, error) {
	x, ok := st.(sqldriver.StmtExecContext)
	if !ok {
		return nil, fmt.Errorf("mysql: the driver's statement %T lacks ExecContext", st)
	}
	return x.ExecContext(ctx, args)
}

func queryStmt(ctx context.Context, st sqldriver.Stmt, args []sqldriver.NamedValue) (sqldriver.Rows, error) {
	x, ok := st.(sqldriver.StmtQueryContext)
	if !ok {
		return nil, fmt.Errorf("mysql: the driver's statement %T lacks QueryContext", st)
	}
	return x.QueryContext(ctx, args)
}
