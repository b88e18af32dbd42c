package persistence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
)

// guard proves before COMMIT that a transaction is still the one that was begun. On MySQL
// a deadlock ends it on the server, and so does a statement that commits by itself; what
// came after would commit by itself too, and COMMIT would say that all is well.
type guard struct {
	s    *Store
	ctx  context.Context //nolint:containedctx // it lives for one transaction
	conn *sqlx.Conn
	tx   *sqlx.Tx
}

// guardPoint is gone when the transaction is.
const guardPoint = "fsmgen_tx"

// guard keeps statements from committing by themselves, and marks the transaction. Where
// it fails nothing may run in the transaction.
func (s *Store) guard(ctx context.Context, conn *sqlx.Conn, tx *sqlx.Tx) (*guard, error) {
	if !s.d.Features().SilentLoss {
		return nil, nil //nolint:nilnil // there is nothing to guard
	}
	g := &guard{s: s, ctx: context.WithoutCancel(ctx), conn: conn, tx: tx}
	for _, text := range []string{"SET autocommit = 0", "SAVEPOINT " + guardPoint} {
		if _, err := tx.ExecContext(g.ctx, text); err != nil {
			return g, s.uncommitted(err, DefaultJournal)
		}
	}
	return g, nil
}

// alive reports that the transaction has ended, which nobody has told. Where the savepoint
// is gone the database does not say what became of the transaction.
func (g *guard) alive() error {
	if g == nil {
		return nil
	}
	_, err := g.tx.ExecContext(g.ctx, "RELEASE SAVEPOINT "+guardPoint)
	if err == nil {
		return nil
	}
	if errors.Is(err, sql.ErrTxDone) {
		return endedInside(err)
	}
	err = g.s.uncommitted(err, DefaultJournal)
	if g.s.classify(err) != engine.ClassFatal {
		return err
	}
	return &engine.Fault{
		Class: engine.ClassUnknown, Err: err,
		Hint: "the transaction had ended before its COMMIT: either a deadlock ended it, whose error was ignored, and nothing of it was applied; " +
			"or a statement did that commits by itself (CREATE, ALTER, DROP, TRUNCATE, …), and what came before that was applied; what came after was rolled back",
	}
}

// endedInside says that the code in a transaction has ended it by the method of its Tx.
func endedInside(err error) error {
	return &engine.Fault{
		Class: engine.ClassUnknown, Err: err,
		Hint: "the transaction was ended inside of it, by Commit or Rollback, which is for InTx, or the transition, to do",
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
