package persistence

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
)

// guard proves before COMMIT that a transaction is still the one that was begun. On MySQL
// a deadlock ends it on the server; if whoever runs in it ignores that error, what comes
// after would commit by itself, and COMMIT would say that all is well.
type guard struct {
	s    *Store
	ctx  context.Context //nolint:containedctx // it lives for one transaction
	conn *sqlx.Conn
	tx   *sqlx.Tx
	err  error // of putting it up
}

// guardPoint is gone when the transaction is.
const guardPoint = "fsmgen_tx"

// guard keeps statements from committing by themselves, and marks the transaction.
func (s *Store) guard(ctx context.Context, conn *sqlx.Conn, tx *sqlx.Tx) *guard {
	if !s.d.Features().SilentLoss {
		return nil
	}
	g := &guard{s: s, ctx: context.WithoutCancel(ctx), conn: conn, tx: tx}
	for _, text := range []string{"SET autocommit = 0", "SAVEPOINT " + guardPoint} {
		if _, g.err = tx.ExecContext(g.ctx, text); g.err != nil {
			break
		}
	}
	return g
}

// alive reports that the transaction was lost, which nobody has told.
func (g *guard) alive() error {
	if g == nil {
		return nil
	}
	err := g.err
	if err == nil {
		_, err = g.tx.ExecContext(g.ctx, "RELEASE SAVEPOINT "+guardPoint)
	}
	if err == nil {
		return nil
	}
	return &engine.Fault{
		Class: engine.ClassRetryable, Err: fmt.Errorf("the transaction was lost before its COMMIT: %w", err),
		Hint: "an error that ended the transaction was ignored inside of it; nothing was applied",
	}
}

// lift gives the connection back as it was, or not at all. What is still open is rolled
// back first: to turn autocommit on would commit it.
func (g *guard) lift() {
	if g == nil {
		return
	}
	for _, text := range []string{"ROLLBACK", "SET autocommit = 1"} {
		if _, err := g.conn.ExecContext(g.ctx, text); err != nil {
			_ = g.conn.Raw(func(any) error { return driver.ErrBadConn })
			return
		}
	}
}
