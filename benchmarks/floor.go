package main

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"github.com/jmoiron/sqlx"
)

// The works everything else is compared with.
const (
	floorUpdate = "UPDATE by hand"
	floorHot    = "UPDATE by hand, hot row"
	handTx      = "BEGIN; UPDATE; INSERT; COMMIT by hand"
	handHot     = "BEGIN; UPDATE; INSERT; COMMIT by hand, hot row"
)

var errLost = errors.New("the row was not as expected")

// one checks that a statement changed one row.
func one(res sql.Result, err error) error {
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errLost, err)
	}
	return nil
}

// update is the hand-written compare-and-set on a table.
const update = "UPDATE `%` SET `status` = ?, `version` = `version` + 1 WHERE `id` = ? AND `status` = ? AND `version` = ?"

const insert = "INSERT INTO `%_log` (`machine`, `entity_id`, `version`, `transition`, `from_state`, `to_state`, `args`, `key`, `fingerprint`, `attempt`, `at`) " +
	"VALUES (?, ?, ?, ?, ?, ?, '{}', ?, '0000000000000000000000000000000000000000000000000000000000000000', '00000000000000000000000000000000', ?)"

func (db *database) prepare(ctx context.Context, text, table string) (*sqlx.Stmt, error) {
	return db.store.DB().PreparexContext(ctx, db.sql(strings.ReplaceAll(text, "%", table)))
}

// floors are the hand-written works.
func floors(ctx context.Context, db *database, n int) ([]work, error) {
	var out []work
	for _, f := range []struct {
		name, table  string
		hot, journal bool
	}{
		{floorUpdate, "bench_floor", false, false},
		{handTx, "bench_hand", false, true},
		{floorHot, "bench_floor_hot", true, false},
		{handHot, "bench_hand_hot", true, true},
	} {
		if _, err := db.newTable(ctx, f.table, n, true); err != nil {
			return nil, err
		}
		do, err := db.byHand(ctx, f.table, n, f.hot, f.journal)
		if err != nil {
			return nil, err
		}
		w := work{name: f.name, floor: floorUpdate, do: do, hot: f.hot}
		if f.hot {
			w.floor = floorHot
		}
		out = append(out, w)
	}
	return out, nil
}

// byHand is the compare-and-set as people write it, with or without a journal row. On
// the hot row there is nothing to compare but the state: everybody would lose.
func (db *database) byHand(ctx context.Context, table string, n int, hot, journal bool) (func(context.Context, int, int) error, error) {
	text := update
	if hot {
		text = "UPDATE `%` SET `version` = `version` + 1 WHERE `id` = ? AND `status` = 'dark'"
	}
	cas, err := db.prepare(ctx, text, table)
	if err != nil {
		return nil, err
	}
	log, err := db.prepare(ctx, insert, table)
	if err != nil {
		return nil, err
	}
	all := rows(n)
	return func(ctx context.Context, i, _ int) error {
		r := &all[i]
		transition, from, to := r.edge()
		args := []any{to, r.id, from, r.version}
		if hot {
			args = []any{r.id}
		}
		if !journal {
			if err := one(cas.ExecContext(ctx, args...)); err != nil {
				return err
			}
		} else if err := db.inTx(ctx, func(tx *sqlx.Tx) error {
			if err := one(tx.StmtxContext(ctx, cas).ExecContext(ctx, args...)); err != nil {
				return err
			}
			version, key := r.version+1, newKey()
			if hot { // nobody knows the version: any unique number will do
				version = 1<<40 + sequence.Add(1)
			}
			return one(tx.StmtxContext(ctx, log).ExecContext(ctx, table, r.id, version, transition, from, to, key, db.now()))
		}); err != nil {
			return err
		}
		if !hot {
			r.moved()
		}
		return nil
	}, nil
}

func (db *database) inTx(ctx context.Context, fn func(tx *sqlx.Tx) error) error {
	tx, err := db.store.DB().BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
