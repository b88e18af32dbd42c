package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// querier is a pool or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// source is where a read outside or inside a transaction goes. A pool that also
// writes can be held by an open transaction: waiting for it is bounded.
func (t *table) source(ctx context.Context, tx engine.Tx) (querier, context.Context, context.CancelFunc) {
	switch {
	case tx != nil:
		return tx, ctx, func() {}
	case t.s.reader == t.s.db:
		ctx, cancel := context.WithTimeout(ctx, t.s.wait)
		return t.s.reader, ctx, cancel
	}
	return t.s.reader, ctx, func() {}
}

// each runs a query and calls scan for every row.
func (t *table) each(ctx context.Context, tx engine.Tx, st *statement, v *values, scan func(rows *sql.Rows) error) error {
	since := time.Now()
	q, wait, cancel := t.source(ctx, tx)
	defer cancel()
	err := func() error {
		args := st.args(v)
		rows, err := q.QueryContext(wait, st.text, args...) //nolint:sqlclosecheck // closed below
		if err != nil && tx == nil && wait.Err() == nil {
			ask := func() error {
				rows, err = q.QueryContext(wait, st.text, args...) //nolint:sqlclosecheck,rowserrcheck // closed below
				return err
			}
			switch class := t.s.classify(err); {
			case class == engine.ClassRetryable && t.f.TakeLock: // whoever writes holds off readers, too
				err = Patiently(ctx, t.s.wait, func(err error) bool { return t.s.classify(err) == engine.ClassRetryable }, ask)
			case class == engine.ClassRetryable, class == engine.ClassUnknown:
				// once more: the table may have been altered under a prepared statement, or the
				// pool's connection was dead
				err = ask()
			}
		}
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // rows.Err says it
		for rows.Next() {
			if err := scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}()
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return Waited(err, NoConnection)
	}
	if tx != nil {
		err = t.waited(t.inside(err), since)
	}
	return t.s.fault(err, t.def.Journal.Table)
}

// Get reads the row without locking it.
func (t *table) Get(ctx context.Context, tx engine.Tx, id string) (row engine.RowState, found bool, err error) {
	return t.readRow(ctx, tx, &t.read, t.values(id))
}

func (t *table) readRow(ctx context.Context, tx engine.Tx, st *statement, v *values) (row engine.RowState, found bool, err error) {
	err = t.each(ctx, tx, st, v, func(rows *sql.Rows) error {
		dest := t.rowDest()
		if err := rows.Scan(dest...); err != nil {
			return err
		}
		var err error
		row, found, err = t.rowState(dest)
		return err
	})
	return row, found, err
}

// Journal returns the entries of a row in version order.
func (t *table) Journal(ctx context.Context, tx engine.Tx, id string) ([]engine.Entry, error) {
	var out []engine.Entry
	err := t.each(ctx, tx, &t.journal, t.values(id), func(rows *sql.Rows) error {
		var e entryRow
		if err := rows.Scan(e.dest()...); err != nil {
			return err
		}
		entry, err := e.entry()
		if err == nil {
			out = append(out, *entry)
		}
		return err
	})
	return out, err
}

// Inspect reads the row and its journal together. For a creation, a row that holds a
// declared unique key stands for the one under the id.
func (t *table) Inspect(ctx context.Context, tx engine.Tx, q engine.Inquiry) (engine.Snapshot, error) {
	s, err := t.inspect(ctx, tx, q)
	if err != nil || q.Transition >= 0 || s.Found || s.ByKey != nil || len(t.def.Unique) == 0 {
		return s, err
	}
	var id any
	err = t.each(ctx, tx, &t.twin, &values{q: &q}, func(rows *sql.Rows) error { return rows.Scan(&id) })
	if err != nil || id == nil {
		return s, err
	}
	if q.ID, err = t.textOfID(id); err != nil {
		return s, err
	}
	return t.inspect(ctx, tx, q)
}

func (t *table) inspect(ctx context.Context, tx engine.Tx, q engine.Inquiry) (engine.Snapshot, error) {
	v := t.values(q.ID)
	v.q = &q
	st := &t.inspectCreation
	if q.Transition >= 0 {
		st = &t.planOf(q.Transition).inspect
	}
	locks := tx != nil && !q.Unlocked
	if locks && t.f.LockRead != "" {
		return t.inspectLocked(ctx, tx, v)
	}
	if locks && t.f.TakeLock {
		if _, _, err := t.execer(ctx, tx).Exec(t.takeLock.text, nil); err != nil {
			return engine.Snapshot{}, t.s.fault(err, t.def.Journal.Table)
		}
	}
	if tx == nil && t.recent.text != "" && !t.s.machines.Shared(t.def.Table.Name) {
		if s, whole, err := t.inspectRecent(ctx, v); whole || err != nil {
			return s, err
		}
	}
	var s engine.Snapshot
	found := foundEntries{}
	err := t.each(ctx, tx, st, v, func(rows *sql.Rows) error { return t.scanInspected(rows, &s, found) })
	found.fill(&s)
	return s, err
}

func (t *table) scanInspected(rows *sql.Rows, s *engine.Snapshot, found foundEntries) error {
	dest := t.rowDest()
	if !t.def.Journal.Enabled {
		if err := rows.Scan(dest...); err != nil {
			return err
		}
	} else {
		var kind sql.NullString
		var e entryRow
		if err := rows.Scan(append(append(dest[:len(dest):len(dest)], &kind), e.dest()...)...); err != nil {
			return err
		}
		if err := found.add(kind.String, &e); err != nil {
			return err
		}
	}
	var err error
	if !s.Found {
		s.Row, s.Found, err = t.rowState(dest)
	}
	return err
}

// inspectLocked locks the row first, so that the answer still holds when the
// caller commits, and then reads the journal.
func (t *table) inspectLocked(ctx context.Context, tx engine.Tx, v *values) (s engine.Snapshot, err error) {
	if s.Row, s.Found, err = t.lockFresh(ctx, tx, v, false); err != nil {
		return s, err
	}
	if !t.def.Journal.Enabled {
		return s, nil
	}
	st := &t.entries
	if v.q.Transition >= 0 {
		st = &t.planOf(v.q.Transition).entries
	}
	found := foundEntries{}
	err = t.each(ctx, tx, st, v, func(rows *sql.Rows) error {
		var kind string
		var e entryRow
		if err := rows.Scan(append([]any{&kind}, e.dest()...)...); err != nil {
			return err
		}
		return found.add(kind, &e)
	})
	found.fill(&s)
	return s, err
}

// lockFresh locks the row and holds its version against the one that the caller's
// snapshot shows: where they differ, nothing else that is read in the transaction can be
// trusted. present locks only what the snapshot shows, since a locking read of a row that
// is absent would lock the gap.
func (t *table) lockFresh(ctx context.Context, tx engine.Tx, v *values, present bool) (row engine.RowState, found bool, err error) {
	var seen engine.RowState
	hadRow := false
	if t.f.StaleSnapshots {
		if seen, hadRow, err = t.readRow(ctx, tx, &t.read, v); err != nil || (present && !hadRow) {
			return row, false, err
		}
	}
	if row, found, err = t.readRow(ctx, tx, &t.readLocked, v); err != nil {
		return row, false, err
	}
	if t.f.StaleSnapshots && (hadRow != found || seen.Version != row.Version) {
		return row, found, &engine.Fault{
			Class: engine.ClassRetryable, Hint: "your snapshot is older than the row",
			Err: fmt.Errorf("the transaction's snapshot shows version %d, the row is at version %d", seen.Version, row.Version),
		}
	}
	return row, found, nil
}

// fresh refuses a call in a caller's transaction whose snapshot is older than the row,
// before it writes: its own write would hide that from everything after it.
func (t *table) fresh(ctx context.Context, tx engine.Tx, id string) error {
	if !t.f.StaleSnapshots {
		return nil
	}
	_, _, err := t.lockFresh(ctx, tx, t.values(id), true)
	return err
}

// foundEntries are the entries of an inspection by kind.
type foundEntries map[string]*engine.Entry

func (f foundEntries) add(kind string, e *entryRow) error {
	if kind == "" || f[kind] != nil {
		return nil
	}
	entry, err := e.entry()
	f[kind] = entry
	return err
}

// fill completes a snapshot. What happened before the row's last creation belongs
// to an earlier row of the same id: only keys count for ever.
func (f foundEntries) fill(s *engine.Snapshot) {
	since := int64(math.MinInt64)
	if s.Creation = f[kindCreation]; s.Creation != nil {
		since = s.Creation.Version
	}
	if own := f[kindOwn]; own != nil && own.Version > since {
		s.Own = own
		s.Undone = f[kindSource] != nil && f[kindSource].Version > own.Version
	}
	if e := f[kindEntered]; e != nil && e.Version >= since {
		s.Entered = e
	}
	if e := f[kindNext]; e != nil && e.Version > since {
		s.Next = e
	}
	s.ByKey = f[kindKey]
}

// txExecer runs statements in a database/sql transaction.
type txExecer struct {
	ctx context.Context //nolint:containedctx // it lives for one unit
	tx  engine.Tx
}

func (t *table) execer(ctx context.Context, tx engine.Tx) Execer {
	if t.f.DetachWrites {
		ctx = context.WithoutCancel(ctx)
	}
	return txExecer{ctx, tx}
}

// Exec runs a statement.
func (x txExecer) Exec(text string, args []any) (affected, lastID int64, err error) {
	res, err := x.tx.ExecContext(x.ctx, text, args...)
	if err != nil {
		return 0, 0, err
	}
	if affected, err = res.RowsAffected(); err != nil {
		return 0, 0, err
	}
	lastID, _ = res.LastInsertId() // unsupported on PostgreSQL, where nobody asks
	return affected, lastID, nil
}

// Query reads the first row.
func (x txExecer) Query(text string, args []any, dest []any) (bool, error) {
	err := x.tx.QueryRowContext(x.ctx, text, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}
