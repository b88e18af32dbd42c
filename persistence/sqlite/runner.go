package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/combine"
)

// runner executes units on the writing connection, with the driver's own prepared
// statements: what database/sql adds per statement costs more than SQLite itself.
// Units that come in together share one transaction and one commit.
type runner struct {
	db       *sqlx.DB
	wait     time.Duration
	combiner *combine.Combiner[unit]
	turn     turn
}

// turn is one batch on the writing connection.
type turn struct {
	*runner
	conn *sql.Conn
}

// unit is one call's work.
type unit struct {
	plain bool // single statements that need no transaction
	fn    func(x persistence.Execer) error
}

type member = combine.Member[unit]

// batchLimit is where larger batches stop paying.
const batchLimit = 64

func newRunner(db *sqlx.DB, o options) *runner {
	r := &runner{db: db, wait: o.wait}
	limit := batchLimit
	if o.single {
		limit = 1
	}
	r.combiner = combine.New(r, limit, r.wait, 0)
	return r
}

// Unit runs fn in one transaction, or plain, as single statements.
func (r *runner) Unit(ctx context.Context, u persistence.Unit, fn func(x persistence.Execer) error) error {
	return persistence.Share(ctx, r.combiner, unit{u.Plain, fn})
}

// Open takes the writing connection. One batch runs at a time, and so there is one turn.
func (r *runner) Open(ctx context.Context) (combine.Session[unit], error) {
	conn, err := persistence.Connect(ctx, dialect{}, r.wait, r.db.Conn)
	if err != nil {
		return nil, err
	}
	r.turn = turn{runner: r, conn: conn}
	return &r.turn, nil
}

// Close gives the connection back.
func (r *turn) Close() { _ = r.conn.Close() }

// Run executes a batch.
func (r *turn) Run(batch []*member) {
	err := r.conn.Raw(func(dc any) error {
		s, err := sessionOf(dc)
		if err != nil {
			return err
		}
		restore, err := s.silence()
		if err != nil {
			return err
		}
		defer restore()
		switch {
		case len(batch) == 1:
			m := batch[0]
			m.Err = r.alone(m.Ctx, s, m.Job)
		case s.autoCommit == nil: // whether a unit's error took the transaction with it cannot be told
			r.apart(s, batch)
		default:
			r.together(s, batch)
		}
		return nil
	})
	if err != nil {
		answerAll(batch, err)
	}
}

// apart runs the units one after the other, and answers each.
func (r *turn) apart(s *session, batch []*member) {
	for i, m := range batch {
		combine.Leave(batch, i, r.alone(m.Ctx, s, m.Job))
	}
}

func answerAll(batch []*member, err error) {
	for _, m := range batch {
		if m != nil {
			m.Err = err
		}
	}
}

// alone runs one unit: plain, or in a transaction without savepoint.
func (r *runner) alone(ctx context.Context, s *session, u unit) error {
	if u.plain {
		return persistence.Patiently(ctx, r.wait, locked, func() error { return u.fn(s) })
	}
	if err := persistence.Patiently(ctx, r.wait, locked, s.begin); err != nil {
		return err
	}
	return s.transaction(ctx, r.wait, func() error { return u.fn(s) })
}

// together runs a batch in one transaction with one commit. Each unit stands in a
// savepoint, so that its error is its own. An error that took SQLite's whole
// transaction with it is its unit's; the others run again, alone.
func (r *turn) together(s *session, batch []*member) {
	if !r.beginFor(s, batch) {
		return
	}
	lost := false
	err := s.transaction(context.Background(), r.wait, func() error { //nolint:forbidigo // no member's context may end the others' batch
		for _, m := range batch {
			if m == nil {
				continue
			}
			if m.Err = s.savepoint(m.Job); m.Err != nil && s.ended() {
				lost = true
				return m.Err
			}
		}
		return nil
	})
	switch {
	case lost:
		r.redo(s, batch, err)
	case deferred(err): // a constraint that is checked at COMMIT does not say whose it is
		r.redo(s, batch, nil)
	case err != nil: // COMMIT failed: nothing of the batch was applied
		answerAll(batch, err)
	}
}

// redo runs each unit but the culprit, if it is known, alone: the transaction was lost.
func (r *runner) redo(s *session, batch []*member, culprit error) {
	for _, m := range batch {
		if m != nil && (culprit == nil || m.Err == nil || !errors.Is(m.Err, culprit)) {
			m.Err = r.alone(context.WithoutCancel(m.Ctx), s, m.Job)
		}
	}
}

// deferred reports whether COMMIT met a constraint.
func deferred(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.Code == sqlite3.ErrConstraint
}

// beginFor begins the batch's transaction. While another process holds the lock, members
// whose context ends leave.
func (r *turn) beginFor(s *session, batch []*member) bool {
	until := time.Now().Add(r.wait)
	for {
		err := s.begin()
		if err == nil {
			return true
		}
		switch left := dismiss(batch); {
		case !left:
			return false
		case !locked(err):
			answerAll(batch, err)
			return false
		case time.Now().After(until):
			answerAll(batch, persistence.Waited(err, persistence.Locked))
			return false
		}
		time.Sleep(10*time.Microsecond + rand.N(490*time.Microsecond)) //nolint:gosec // jitter needs no secrecy
	}
}

// dismiss lets members go whose context has ended, and reports whether any is left.
func dismiss(batch []*member) (left bool) {
	for i, m := range batch {
		switch {
		case m == nil:
		case m.Ctx.Err() != nil:
			combine.Leave(batch, i, persistence.Unsent(m.Ctx, nil, ""))
		default:
			left = true
		}
	}
	return left
}
