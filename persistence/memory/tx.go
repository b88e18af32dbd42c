package memory

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/fsmgen/fsmgen/engine"
)

// ErrNoSQL is what the SQL methods of a [Tx] return.
var ErrNoSQL = errors.New("memory: this store has no SQL: use the machine's methods, or test the code on a database")

// Tx is an open transaction, to be given to a machine's In. What was done in it is
// visible to others once Commit has returned.
type Tx struct {
	s    *Store
	top  *layer // guarded by s.mu; nil once the transaction has ended
	deep int    // units within it that have not ended
}

// Begin opens a transaction of the caller's own. It waits for its turn like every
// writer, and matches engine.ErrBusy where that did not come. End it with Commit or
// Rollback: until then nobody else can write.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tx, err := s.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("memory: begin: %w: %w", engine.ErrBusy, err)
	}
	return tx, nil
}

// Commit makes the transaction's changes visible. A transaction that has ended gives
// sql.ErrTxDone.
func (tx *Tx) Commit() error {
	tx.s.mu.Lock()
	defer tx.s.mu.Unlock()
	if tx.top == nil {
		return sql.ErrTxDone
	}
	if tx.deep > 0 {
		return errors.New("memory: commit within a call of the same transaction")
	}
	tx.top.merge()
	tx.end()
	return nil
}

// Rollback forgets the transaction's changes. A transaction that has ended gives
// sql.ErrTxDone.
func (tx *Tx) Rollback() error {
	tx.s.mu.Lock()
	defer tx.s.mu.Unlock()
	if tx.top == nil {
		return sql.ErrTxDone
	}
	tx.end()
	return nil
}

func (tx *Tx) end() {
	tx.top = nil
	tx.s.release()
}

// ExecContext returns ErrNoSQL.
func (tx *Tx) ExecContext(context.Context, string, ...any) (sql.Result, error) { return nil, ErrNoSQL }

// QueryContext returns ErrNoSQL.
func (tx *Tx) QueryContext(context.Context, string, ...any) (*sql.Rows, error) { return nil, ErrNoSQL }

// QueryRowContext returns a row whose Scan gives ErrNoSQL.
func (tx *Tx) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	// Only a pool can make a *sql.Row with an error in it.
	db := sql.OpenDB(noSQL{})
	defer db.Close() //nolint:errcheck // it never had a connection
	return db.QueryRowContext(ctx, query, args...)
}

// noSQL is a driver that cannot connect.
type noSQL struct{}

// Connect returns ErrNoSQL.
func (noSQL) Connect(context.Context) (driver.Conn, error) { return nil, ErrNoSQL }

// Driver returns nil: nobody asks for it.
func (noSQL) Driver() driver.Driver { return nil }

// unit runs step, and then effect, as one atomic unit: in tx, or where that is nil in a
// transaction of its own. step runs under the store's lock and says whether it wrote.
func (s *Store) unit(ctx context.Context, tx engine.Tx, effect func(ctx context.Context, tx engine.Tx) error, step func(l *layer) (bool, error)) error {
	if tx == nil {
		return s.Transact(ctx, func(ctx context.Context, tx engine.Tx) error { return s.unit(ctx, tx, effect, step) })
	}
	own, err := s.own(tx)
	if err != nil {
		return err
	}
	return own.unit(ctx, effect, step)
}

// own finds the store's own transaction behind the one given to In.
func (s *Store) own(tx engine.Tx) (*Tx, error) {
	own, ok := tx.(*Tx)
	if !ok || own.s != s {
		return nil, fatal(fmt.Errorf("memory: In(%T): want a transaction of this store, from its Begin or from InTx", tx))
	}
	return own, nil
}

// unit runs step and effect in a layer of their own, so that an error or a panic takes
// back what they did, calls of the effect included, and nothing else.
func (tx *Tx) unit(ctx context.Context, effect func(ctx context.Context, tx engine.Tx) error, step func(l *layer) (bool, error)) error {
	base, err := tx.push()
	if err != nil {
		return err
	}
	keep := false
	defer func() { tx.pop(base, keep) }()
	wrote, err := tx.step(step)
	if err != nil || !wrote {
		return err
	}
	if effect != nil {
		if err := effect(context.WithValue(ctx, markKey{tx.s}, true), tx); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil { // past the deadline nothing may be applied
			return &engine.Fault{Class: engine.ClassRetryable, Err: err, Hint: "the context ended while the effect ran"}
		}
	}
	keep = true
	return nil
}

func (tx *Tx) push() (base *layer, err error) {
	tx.s.mu.Lock()
	defer tx.s.mu.Unlock()
	if tx.top == nil {
		return nil, fatal(sql.ErrTxDone)
	}
	base = tx.top
	tx.top = newLayer(base)
	tx.deep++
	return base, nil
}

func (tx *Tx) step(step func(l *layer) (bool, error)) (bool, error) {
	tx.s.mu.Lock()
	defer tx.s.mu.Unlock()
	return step(tx.top)
}

// pop ends the unit that began on base. A transaction that ended meanwhile stays so.
func (tx *Tx) pop(base *layer, keep bool) {
	tx.s.mu.Lock()
	defer tx.s.mu.Unlock()
	tx.deep--
	if tx.top == nil {
		return
	}
	if keep {
		tx.top.merge()
	}
	tx.top = base
}

// view runs a read under the store's lock: in tx, or over what is committed.
func (s *Store) view(tx engine.Tx, read func(l *layer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tx == nil {
		return read(s.committed)
	}
	own, err := s.own(tx)
	if err != nil {
		return err
	}
	if own.top == nil {
		return fatal(sql.ErrTxDone)
	}
	return read(own.top)
}

func fatal(err error) error { return &engine.Fault{Class: engine.ClassFatal, Err: err} }
