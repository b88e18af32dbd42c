package mysql

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// runner executes units on connections of the pool, with statements that stay
// prepared on each. A connection is pinned for the unit: a statement given to the
// pool would be repeated by database/sql when its connection broke.
type runner struct {
	db     *sqlx.DB
	begin  []string // opens a transaction
	noWait bool     // a statement can be told not to wait
	wait   time.Duration

	mu       sync.Mutex
	sessions map[sqldriver.Conn]*session
	clock    int64 // counts uses
}

// grace is how long a statement that was sent may still answer when its context has
// ended: an answer is worth more than a connection closed and an outcome not known.
const grace = 50 * time.Millisecond

// Unit runs fn in one transaction, or plain, as single statements.
func (r *runner) Unit(ctx context.Context, u persistence.Unit, fn func(x persistence.Execer) error) error {
	conn, err := persistence.Connect(ctx, dialect{}, r.wait, r.db.Conn)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	var out error
	err = conn.Raw(func(dc any) error {
		s, err := r.session(dc)
		if err != nil {
			return err
		}
		done := s.use(ctx)
		defer done()
		out = r.run(ctx, s, u.Plain, fn)
		if s.broken {
			r.forget(s)
			return sqldriver.ErrBadConn // not given to anybody else
		}
		return nil
	})
	if out != nil || errors.Is(err, sqldriver.ErrBadConn) {
		return out
	}
	return notSent(err)
}

// run decides how. A single statement commits by itself: one that waits for a row would
// apply after its caller gave up. Where the caller can, the statement is told not to
// wait, or, where it cannot be told, stands in a transaction, which ends with its
// connection.
func (r *runner) run(ctx context.Context, s *session, plain bool, fn func(x persistence.Execer) error) error {
	s.prefix = ""
	switch {
	case !plain, ctx.Done() != nil && !r.noWait:
		return s.transaction(r.begin, fn)
	case ctx.Done() != nil:
		s.prefix = noWait
	}
	return s.single(fn)
}

// notSent classifies an error of something that writes nothing.
func notSent(err error) error {
	if err == nil {
		return nil
	}
	class := classify(err)
	if class == engine.ClassUnknown {
		class = engine.ClassRetryable
	}
	return &engine.Fault{Class: class, Err: err}
}

// session finds the statements of a driver connection.
func (r *runner) session(dc any) (*session, error) {
	conn, err := asConn(dc)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clock++
	s, ok := r.sessions[conn]
	if !ok {
		r.makeRoom()
		s = &session{conn: conn, stmts: map[string]sqldriver.Stmt{}}
		r.sessions[conn] = s
	}
	s.used = r.clock
	return s, nil
}

// makeRoom forgets the sessions that were not used for longest, before there are many
// more than the pool has connections: database/sql does not tell which it has closed,
// and to ask a connection that somebody else uses would be a race. One that is forgotten
// while it lives prepares its statements again.
func (r *runner) makeRoom() {
	if r.sessions == nil {
		r.sessions = map[sqldriver.Conn]*session{}
	}
	most := max(256, 4*r.db.Stats().MaxOpenConnections)
	if len(r.sessions) < most {
		return
	}
	for conn, s := range r.sessions {
		if r.clock-s.used > int64(most) {
			delete(r.sessions, conn)
		}
	}
}

// forget drops a session whose connection is about to be closed.
func (r *runner) forget(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.conn)
}
