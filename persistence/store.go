package persistence

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/registry"
)

// DefaultJournal is the journal's table where a definition names none.
const DefaultJournal = "fsm_journal"

// Store keeps machines in an SQL database. It is safe for concurrent use.
type Store struct {
	db, reader *sqlx.DB
	d          Dialect
	runner     Runner // nil: database/sql transactions
	wait       time.Duration
	owned      bool
	machines   registry.Registry
	pipelined  bool
	judge      *judge // nil: every call by itself, or as the runner combines them
}

// Config is what a dialect package opens a store with.
type Config struct {
	DB      *sqlx.DB
	Reader  *sqlx.DB // for reads outside of transactions; DB where nil
	Dialect Dialect
	Runner  Runner
	// Judge has concurrent calls share a commit, decided in Go under the rows' locks. It
	// is for databases that can skip locked rows but not take statements in a pipeline.
	Judge bool
	// Pipelined: the runner sends the calls of several callers at once, and an error of
	// one costs the others a round.
	Pipelined bool
	// Wait bounds how long a call waits for a connection; default 5 s.
	Wait time.Duration
	// Owned: Close closes the pools.
	Owned bool
}

// New returns a store. Users call the dialect's Open or New instead.
func New(c Config) *Store {
	if c.Reader == nil {
		c.Reader = c.DB
	}
	if c.Wait <= 0 {
		c.Wait = 5 * time.Second
	}
	s := &Store{db: c.DB, reader: c.Reader, d: c.Dialect, runner: c.Runner, wait: c.Wait, owned: c.Owned, pipelined: c.Pipelined}
	if c.Judge {
		s.judge = newJudge(s)
	}
	return s
}

// DB returns the pool that writes, for transactions of the caller's own. On SQLite it has
// one connection, so they take turns; while another process writes, a BEGIN fails at once
// (SQLITE_BUSY), where [engine.Engine.InTx] waits.
func (s *Store) DB() *sqlx.DB { return s.db }

// Reader returns the pool that reads outside of transactions; it may be DB.
func (s *Store) Reader() *sqlx.DB { return s.reader }

// Close closes the pools that the store opened itself; a pool given to New stays open.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	if s.reader == s.db {
		return s.db.Close()
	}
	return errors.Join(s.reader.Close(), s.db.Close())
}

// Bind verifies the machine's table and journal. Machines that share a table must share
// a journal, and must write the table's name alike: which are siblings is told by it.
func (s *Store) Bind(ctx context.Context, rules *engine.Rules) (engine.Table, error) {
	def := rules.Definition()
	if err := s.machines.Check(def); err != nil { // says more than that the second journal is missing
		return nil, err
	}
	columns, err := s.verify(ctx, def)
	if err != nil {
		return nil, err
	}
	comparisons, err := s.comparisons(ctx, def, columns[len(columns)-len(def.Fields):])
	if err != nil {
		return nil, err
	}
	if err := s.machines.Join(def); err != nil { // not before: what does not fit takes no place
		return nil, err
	}
	t := &table{
		s: s, d: s.d, f: s.d.Features(), rules: rules, def: def, columns: columns, maxVersion: columns[UseVersion].greatest(), comparisons: comparisons,
		plans: make([]atomic.Pointer[plan], len(def.Transitions)), ones: make([]oneShapes, len(def.Transitions)), compounds: make([]compoundShapes, len(def.Transitions)),
	}
	if t.f.OneStatement && def.Journal.Enabled {
		log, err := s.columns(ctx, def.Journal.Table)
		if err != nil {
			return nil, err
		}
		t.logTriggered = log[0].Triggered
	}
	rules.NarrowVersion(t.maxVersion)
	if t.f.OneStatement && len(def.Unique) > 0 {
		if t.deferrable, err = s.deferrable(ctx, def.Table.Name); err != nil {
			return nil, err
		}
	}
	t.judgeable = t.exact()
	t.triggered = columns[UseVersion].Triggered
	t.unstacked.Store(t.triggered)
	t.likeVariables = slices.ContainsFunc(columns, func(c Column) bool {
		return slices.Contains([]string{varVersion, varFrom, varTo}, strings.ToLower(c.Name))
	})
	t.fields = t.fieldColumns(columns[len(columns)-len(def.Fields):])
	t.read, t.readLocked, t.state = t.readText(false), t.readText(true), t.stateText()
	t.exists, t.insert, t.takeLock = t.existsText(), t.insertText(), t.takeLockText()
	if def.Journal.Enabled {
		t.record, t.lastVersion, t.keySeen, t.journal = t.journalInsert(), t.lastVersionText(), t.keySeenText(), t.journalText()
		b := &builder{d: t.d}
		t.entriesText(b, nil, nil)
		if t.f.SlimUnions || t.f.OneStatement {
			t.recent = t.recentText()
		}
		t.entries = b.statement()
	}
	t.inspectCreation = t.inspectText(nil, nil)
	if t.f.OneStatement {
		t.createOnes[0] = t.createOneText(false)
		if def.Journal.Enabled {
			t.createOnes[1] = t.createOneText(true)
		}
	}
	if len(def.Unique) > 0 {
		t.twin = t.twinText()
	}
	return t, nil
}

// markKey marks a context as belonging to an open transaction of a store.
type markKey struct{ s *Store }

// Marked reports whether ctx comes from a transaction of this store.
func (s *Store) Marked(ctx context.Context) bool { return ctx.Value(markKey{s}) != nil }

// Transact runs fn once in a new transaction and commits it.
func (s *Store) Transact(ctx context.Context, fn func(ctx context.Context, tx engine.Tx) error) (err error) {
	conn, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	tx, err := s.begin(ctx, conn)
	if err != nil {
		return err
	}
	guard, err := s.guard(ctx, conn, tx)
	defer guard.lift()
	watch := s.watch(conn)
	defer watch.done()
	done := false
	defer func() { // also when fn panics
		if !done {
			_ = tx.Rollback()
		}
	}()
	if err != nil {
		return err
	}
	if err := fn(context.WithValue(ctx, markKey{s}, true), tx); err != nil {
		done = true
		back := tx.Rollback()
		return s.ofCode(err, back == nil || errors.Is(back, sql.ErrTxDone))
	}
	if err := ctx.Err(); err != nil { // past the deadline nothing may be committed
		return &engine.Fault{Class: engine.ClassRetryable, Err: err, Hint: "the context ended before the commit"}
	}
	if err := guard.alive(); err != nil {
		return err
	}
	if err := watch.failed(); err != nil {
		return err
	}
	done = true
	if err := tx.Commit(); err != nil {
		_ = tx.Rollback()
		if errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil { // else it may be the context that ended it
			return endedInside(err)
		}
		return s.commitFault(err)
	}
	return s.unproven(ctx)
}

// unproven says that a success is none to rely on: the context ended while it was
// waited for, and the server may not have waited for its standby.
func (s *Store) unproven(ctx context.Context) error {
	if err := ctx.Err(); err != nil && s.d.Features().CancelEndsWait {
		return &engine.Fault{Class: engine.ClassUnknown, Err: err, Hint: "the context ended while the commit was on its way"}
	}
	return nil
}

// commitFault classifies an error of COMMIT: whatever is not known to be "not
// applied" is unknown.
func (s *Store) commitFault(err error) error {
	class := s.d.Classify(err, DefaultJournal)
	if class == engine.ClassFatal && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		class = engine.ClassUnknown
	}
	return &engine.Fault{Class: class, Err: err}
}

// conn takes a connection of the writing pool.
func (s *Store) conn(ctx context.Context) (*sqlx.Conn, error) {
	return Connect(ctx, s.d, s.wait, s.db.Connx)
}

// detached is what the driver sees of a caller's context while it writes.
func (s *Store) detached(ctx context.Context) context.Context {
	if s.d.Features().DetachWrites {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

// begin opens a transaction. A database that is locked by another process is asked
// again until the wait is over. Nothing was written yet, so whatever fails here was
// not applied.
func (s *Store) begin(ctx context.Context, conn *sqlx.Conn) (*sqlx.Tx, error) {
	var tx *sqlx.Tx
	life := s.detached(ctx)
	if s.d.Features().SilentLoss { // nobody but us ends it: see guard
		life = context.WithoutCancel(ctx)
	}
	err := Patiently(ctx, s.wait, func(err error) bool { return s.d.Classify(err, DefaultJournal) == engine.ClassRetryable }, func() error {
		var err error
		tx, err = conn.BeginTxx(life, &sql.TxOptions{Isolation: s.d.Isolation()})
		return err
	})
	if err != nil {
		return nil, s.uncommitted(err, DefaultJournal)
	}
	return tx, nil
}
