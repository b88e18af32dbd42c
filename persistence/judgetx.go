package persistence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
)

// judgeTx is the transaction of one batch. Where the database has compounds it begins
// in one trip with what is read first, and commits in one trip with what is written: a
// batch is worth its wait only while it is short. Elsewhere each step is a trip.
type judgeTx struct {
	s     *Store
	ctx   context.Context //nolint:containedctx // it lives for one batch
	conn  *sqlx.Conn
	begun bool
}

// beginCommitted opens a transaction in which each statement sees what is committed.
var beginCommitted = []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "START TRANSACTION"}

// reading is a query, and what it does with each row.
type reading struct {
	q    *builder
	args []any
	row  func(rows *sql.Rows) error
}

// read runs queries one after the other. The first of a transaction begin it.
func (tx *judgeTx) read(queries ...reading) error {
	var err error
	if tx.s.d.Features().Compound {
		err = tx.readAtOnce(queries)
	} else {
		err = tx.readEach(queries)
	}
	return tx.s.uncommitted(err, DefaultJournal)
}

// readAtOnce sends queries, and the beginning where there is none yet, as one compound.
func (tx *judgeTx) readAtOnce(queries []reading) error {
	b := &builder{d: tx.s.d}
	var args []any
	b.sql("BEGIN NOT ATOMIC ")
	if !tx.begun {
		b.sql(strings.Join(beginCommitted, "; "), "; ")
	}
	tx.begun = true
	for _, r := range queries {
		b.sql(tx.s.d.(Compounder).NoWaitTable(), r.q.b.String(), "; ") //nolint:errcheck // Features.Compound says that it is one
		args = append(args, r.args...)
	}
	return tx.query(reading{q: b.sql("END"), args: args}, queries)
}

func (tx *judgeTx) readEach(queries []reading) error {
	if !tx.begun {
		tx.begun = true
		for _, text := range beginCommitted {
			if _, err := tx.conn.ExecContext(tx.ctx, text); err != nil {
				return err
			}
		}
	}
	for _, r := range queries {
		if err := tx.query(r, []reading{r}); err != nil {
			return err
		}
	}
	return nil
}

// query sends a statement, and reads an answer for each of the queries in it. The whole
// of what comes is read: an error can stand at its end.
func (tx *judgeTx) query(sent reading, queries []reading) (err error) {
	rows, err := tx.conn.QueryContext(tx.ctx, sent.q.b.String(), sent.args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for n, r := range queries {
		if n > 0 && !rows.NextResultSet() {
			return errors.Join(errors.New("the database did not answer each query of a batch"), rows.Err())
		}
		for rows.Next() {
			if err := r.row(rows); err != nil {
				return err
			}
		}
	}
	for rows.NextResultSet() { // what follows an answer is empty, or an error
	}
	return rows.Err()
}

// exec runs one statement of several.
func (tx *judgeTx) exec(text string, args []any) (sql.Result, error) {
	res, err := tx.conn.ExecContext(tx.ctx, text, args...)
	return res, tx.s.uncommitted(err, DefaultJournal)
}

// finish runs a compound that commits. Its error can be one of COMMIT.
func (tx *judgeTx) finish(text string, args []any) error {
	_, err := tx.conn.ExecContext(tx.ctx, text, args...)
	if err != nil {
		return &engine.Fault{Class: tx.s.d.(Compounder).Committing(err), Err: err} //nolint:errcheck // Features.Compound says that it is one
	}
	tx.begun = false
	return nil
}

// commit ends the transaction where nothing else did.
func (tx *judgeTx) commit() error {
	if _, err := tx.conn.ExecContext(tx.ctx, "COMMIT"); err != nil {
		return tx.s.commitFault(err)
	}
	tx.begun = false
	return nil
}

// end rolls back what was not committed, and gives the connection back. One that cannot
// say that it did is closed.
func (tx *judgeTx) end() {
	defer tx.conn.Close() //nolint:errcheck // gives it back
	if !tx.begun {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tx.ctx), time.Second)
	defer cancel()
	if _, err := tx.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		_ = tx.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
