package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/looplab/fsm"
	"github.com/qmuntal/stateless"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/plugin/optimisticlock"
)

// peerWorks are other libraries, each with the guarantee the engine gives: the row
// moves only from the state and version expected, and the move is recorded with it.
// luno/shift cannot be had as a module here; what it generates is the UPDATE by hand
// in a transaction with an event row, so its place is that of the transaction by hand.
func peerWorks(ctx context.Context, db *database, n int) ([]work, error) {
	looplab, err := db.saved(ctx, "bench_looplab", n, looplabMove)
	if err != nil {
		return nil, err
	}
	other, err := db.saved(ctx, "bench_stateless", n, statelessMove)
	if err != nil {
		return nil, err
	}
	bare, err := gormWork(ctx, db, "bench_gorm", n, false)
	if err != nil {
		return nil, err
	}
	logged, err := gormWork(ctx, db, "bench_gorm_logged", n, true)
	if err != nil {
		return nil, err
	}
	looplab.name, other.name = "looplab/fsm and a save by hand, journaled", "qmuntal/stateless and a save by hand, journaled"
	bare.name, logged.name = "gorm and optimisticlock, bare", "gorm and optimisticlock, journaled"
	return []work{looplab, other, bare, logged}, nil
}

// saved decides in memory and then saves by hand, in one transaction.
func (db *database) saved(ctx context.Context, table string, n int, move func(ctx context.Context, event, from, to string) error) (work, error) {
	if _, err := db.newTable(ctx, table, n, true); err != nil {
		return work{}, err
	}
	cas, err := db.prepare(ctx, update, table)
	if err != nil {
		return work{}, err
	}
	log, err := db.prepare(ctx, insert, table)
	if err != nil {
		return work{}, err
	}
	all := rows(n)
	return work{floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
		r := &all[i]
		event, from, to := r.edge()
		if err := move(ctx, event, from, to); err != nil {
			return err
		}
		err := db.inTx(ctx, func(tx *sqlx.Tx) error {
			if err := one(tx.StmtxContext(ctx, cas).ExecContext(ctx, to, r.id, from, r.version)); err != nil {
				return err
			}
			return one(tx.StmtxContext(ctx, log).ExecContext(ctx, table, r.id, r.version+1, event, from, to, newKey(), db.now()))
		})
		if err == nil {
			r.moved()
		}
		return err
	}}, nil
}

func looplabMove(ctx context.Context, event, from, to string) error {
	f := fsm.NewFSM(from, fsm.Events{
		{Name: "light", Src: []string{"dark"}, Dst: "lit"},
		{Name: "douse", Src: []string{"lit"}, Dst: "dark"},
		{Name: "spend", Src: []string{"dark", "lit"}, Dst: "spent"},
	}, nil)
	if err := f.Event(ctx, event); err != nil {
		return err
	}
	if f.Current() != to {
		return errLost
	}
	return nil
}

func statelessMove(ctx context.Context, event, from, to string) error {
	state := from
	m := stateless.NewStateMachineWithExternalStorage(
		func(context.Context) (stateless.State, error) { return state, nil },
		func(_ context.Context, s stateless.State) error { state, _ = s.(string); return nil },
		stateless.FiringImmediate)
	m.Configure("dark").Permit("light", "lit").Permit("spend", "spent")
	m.Configure("lit").Permit("douse", "dark").Permit("spend", "spent")
	if err := m.FireCtx(ctx, event); err != nil {
		return err
	}
	if state != to {
		return errLost
	}
	return nil
}

// lampRow is the row as gorm sees it.
type lampRow struct {
	ID      string `gorm:"primaryKey"`
	Status  string
	Version optimisticlock.Version
}

// gormWork updates through gorm with its optimistic lock.
func gormWork(ctx context.Context, db *database, table string, n int, journal bool) (work, error) {
	if _, err := db.newTable(ctx, table, n, true); err != nil {
		return work{}, err
	}
	var dialector gorm.Dialector
	switch db.name {
	case "postgres":
		dialector = postgres.New(postgres.Config{Conn: db.store.DB().DB})
	case "mysql":
		dialector = mysql.New(mysql.Config{Conn: db.store.DB().DB})
	default:
		dialector = sqlite.New(sqlite.Config{Conn: db.store.DB().DB})
	}
	g, err := gorm.Open(dialector, &gorm.Config{Logger: logger.Discard, PrepareStmt: true, SkipDefaultTransaction: !journal})
	if err != nil {
		return work{}, err
	}
	all := make([]lampRow, n)
	for i, r := range rows(n) {
		all[i] = lampRow{ID: r.id, Status: "dark"}
		all[i].Version.Int64, all[i].Version.Valid = 1, true
	}
	log := strings.ReplaceAll(insert, "%", table)
	if db.name == "postgres" { // gorm numbers the placeholders itself
		log = strings.ReplaceAll(log, "`", `"`)
	}
	return work{floor: floorUpdate, do: func(ctx context.Context, i, _ int) error {
		r := &all[i]
		event, from, to := (&row{lit: r.Status == "lit"}).edge()
		move := func(g *gorm.DB) error {
			res := g.Table(table).Model(r).Where("status = ?", from).Update("status", to)
			if res.Error == nil && res.RowsAffected != 1 {
				return errLost
			}
			return res.Error
		}
		was := r.Version.Int64
		var err error
		if !journal {
			err = move(g.WithContext(ctx))
		} else {
			err = g.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
				return errors.Join(move(tx), tx.Exec(log, table, r.ID, was+1, event, from, to, newKey(), db.now()).Error)
			})
		}
		r.Status, r.Version.Int64 = to, was+1
		return err
	}}, nil
}
