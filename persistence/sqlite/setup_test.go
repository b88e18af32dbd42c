package sqlite_test

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// lamp is a machine that goes round: it can be fired for ever.
const lamp = `
machine: lamp
fields: {watts: {type: int, default: 40}}
initial: off
states: {off: , on: }
transitions:
  switch_on:  {from: off, to: on}
  switch_off: {from: on, to: off}
`

// lampText is the lamp with a journal, bareText without one; each has its own table.
const (
	lampText = lamp + "table: {name: lamp}\n"
	bareText = lamp + "table: {name: bare_lamp}\njournal: false\n"
)

// orderText is a life that ends.
const orderText = `
machine: order
table: {name: orders}
fields:
  amount: {type: int, default: 0}
  payment_ref: {type: string, nullable: true}
  paid_at: {type: time, nullable: true}
initial: pending
states: {pending: , paid: , shipped: {final: true}, cancelled: {final: true}}
transitions:
  pay:    {from: pending, to: paid, args: {payment_ref: string}, set: {payment_ref: args.payment_ref, paid_at: now()}}
  ship:   {from: paid, to: shipped}
  cancel: {from: [pending, paid], to: cancelled}
`

// define reads a definition.
func define(tb testing.TB, text string) *definitions.Machine {
	tb.Helper()
	def, err := definitions.Parse("test.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return def
}

// open opens a store on a fresh file and closes it at the end of the test.
func open(tb testing.TB, opts ...sqlite.Option) *persistence.Store {
	tb.Helper()
	return openAt(tb, filepath.Join(tb.TempDir(), "test.db"), opts...)
}

func openAt(tb testing.TB, path string, opts ...sqlite.Option) *persistence.Store {
	tb.Helper()
	store, err := sqlite.Open(context.Background(), path, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeIdle(tb, store) })
	return store
}

// closeIdle closes a store; no connection may still be taken. The runner may be about
// to give one back for which nobody waits any more.
func closeIdle(tb testing.TB, store *persistence.Store) {
	tb.Helper()
	for _, db := range []*sqlx.DB{store.DB(), store.Reader()} {
		deadline := time.Now().Add(time.Second)
		for db.Stats().InUse != 0 && time.Now().Before(deadline) {
			runtime.Gosched()
		}
		if n := db.Stats().InUse; n != 0 {
			tb.Errorf("%d connections are still in use", n)
		}
	}
	if err := store.Close(); err != nil {
		tb.Error(err)
	}
}

// machineOn migrates a definition and gives its machine.
func machineOn(tb testing.TB, store *persistence.Store, text string, opts ...engine.Option) *engine.Machine {
	tb.Helper()
	def := define(tb, text)
	if err := store.Migrate(context.Background(), def); err != nil {
		tb.Fatal(err)
	}
	return bind(tb, store, def, opts...)
}

// bind gives a machine over tables that are there.
func bind(tb testing.TB, store engine.Store, def *definitions.Machine, opts ...engine.Option) *engine.Machine {
	tb.Helper()
	eng, err := engine.New(store, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	m, err := eng.Machine(context.Background(), def)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// mustCreate makes rows.
func mustCreate(tb testing.TB, m *engine.Machine, ids ...string) {
	tb.Helper()
	for _, id := range ids {
		if _, err := m.Create(context.Background(), engine.Row{"id": id}); err != nil {
			tb.Fatal(err)
		}
	}
}

// mustFire fires and wants success.
func mustFire(tb testing.TB, m *engine.Machine, transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	tb.Helper()
	res, err := m.Fire(context.Background(), transition, id, args, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// mustExec runs SQL by hand.
func mustExec(tb testing.TB, db *sqlx.DB, text string, args ...any) {
	tb.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		tb.Fatal(err)
	}
}
