package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
)

var errClosed = errors.New("the ledger is closed for the night")

// ledger is a table of the application's own, written in whatever transaction it is given.
type ledger struct {
	db     *sqlx.DB
	closed bool
}

func (l *ledger) migrate(ctx context.Context) error {
	_, err := l.db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS payments_ledger (
  payment varchar(64) NOT NULL, account varchar(64) NOT NULL, amount bigint NOT NULL, reference varchar(64) NOT NULL)`)
	return err
}

// post books an amount. Closed, it fails after it has written: the caller's transaction
// is what keeps such a posting from being seen.
func (l *ledger) post(ctx context.Context, tx engine.Tx, payment, account string, amount int64, reference string) error {
	if _, err := tx.ExecContext(ctx, l.db.Rebind("INSERT INTO payments_ledger (payment, account, amount, reference) VALUES (?, ?, ?, ?)"),
		payment, account, amount, reference); err != nil {
		return fmt.Errorf("post to the ledger: %w", err)
	}
	if l.closed {
		return errClosed
	}
	return nil
}

// booked is how often a payment was posted, and what that makes in all.
func (l *ledger) booked(ctx context.Context, payment string) (postings int, sum int64, err error) {
	err = l.db.QueryRowContext(ctx, l.db.Rebind("SELECT count(*), coalesce(sum(amount), 0) FROM payments_ledger WHERE payment = ?"), payment).Scan(&postings, &sum)
	return postings, sum, err
}
