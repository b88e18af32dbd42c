// Package workflowtest runs whole workflows on every store, and holds each answer
// against an oracle that knows the definition and DESIGN's table, but no code of the
// engine's.
package workflowtest

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/memory"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

var (
	long = flag.Bool("long", false, "random definitions and rows in full length")
	seed = flag.Int64("seed", 0, "run the random definition of this seed alone")
)

// backend is a store, and the way to its rows beside the engine.
type backend interface {
	Store() engine.Store
	Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error
	Update(ctx context.Context, def *definitions.Machine, id string, set engine.Row) error
	Begin(ctx context.Context, form storetest.TxForm, level sql.IsolationLevel) (*storetest.Tx, error)
}

// site is one store with the machines of a test.
type site struct {
	backend
	t        *testing.T
	name     string
	db       *sqlx.DB // nil in memory
	eng      *engine.Engine
	machines map[string]*engine.Machine
	m        *engine.Machine // the first of them
	clock    atomic.Int64    // microseconds since start
}

// patience is how long a call may wait: these tests are about answers, also on a machine
// that is busy with other things.
const patience = time.Minute

// start is when the clock of every test begins.
var start = time.Date(2026, 2, 3, 4, 5, 6, 123456000, time.UTC)

func (s *site) now() time.Time { return start.Add(time.Duration(s.clock.Load()) * time.Microsecond) }

// kind opens an empty place for a test, and skips it where there is no server.
type kind struct {
	name  string
	open  func(t testing.TB) place
	there func() bool // whether open would succeed
}

// place is a database of the test's own: open connects a store to it. Tables that a
// test wants other than Migrate makes them are made before.
type place struct {
	db   *sqlx.DB
	open func(t testing.TB, defs ...*definitions.Machine) backend
}

func kinds() []kind {
	return []kind{
		{"memory", openMemory, always},
		{"sqlite", openSQLite, always},
		{"postgres", openPostgres, servertest.PostgresAnswers},
		{"mariadb", openMariaDB, servertest.MariaDBAnswers},
	}
}

func databases() []kind { return kinds()[1:] }

func always() bool { return true }

func openMemory(testing.TB) place {
	return place{open: func(testing.TB, ...*definitions.Machine) backend {
		return &memoryBackend{memory.New(memory.WithWait(patience))}
	}}
}

func openSQLite(t testing.TB) place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workflow.db")
	beside, err := sqlx.Open("sqlite3", "file:"+path+"?_journal_mode=WAL&_synchronous=NORMAL&_busy_timeout=10000&_txlock=immediate")
	check(t, err)
	closing(t, beside)
	return placeOf(beside, backtick, func(int) string { return "?" }, func() (*persistence.Store, error) { return sqlite.Open(t.Context(), path, sqlite.WithWait(patience)) })
}

func openPostgres(t testing.TB) place {
	t.Helper()
	dsn := servertest.PostgresSchema(t)
	beside, err := sqlx.Open("pgx", dsn)
	check(t, err)
	closing(t, beside)
	return placeOf(beside, quote, func(n int) string { return fmt.Sprint("$", n) }, func() (*persistence.Store, error) {
		return postgres.Open(t.Context(), dsn, postgres.WithConnections(8), postgres.WithWait(patience), postgres.WithStatementTimeout(patience))
	})
}

func openMariaDB(t testing.TB) place {
	t.Helper()
	cfg := servertest.MariaDBDatabase(t)
	plain := cfg.Clone()
	plain.ParseTime, plain.Loc, plain.InterpolateParams, plain.ClientFoundRows = true, time.UTC, true, true
	beside, err := sqlx.Open("mysql", plain.FormatDSN())
	check(t, err)
	closing(t, beside)
	return placeOf(beside, backtick, func(int) string { return "?" }, func() (*persistence.Store, error) {
		return mysql.Open(t.Context(), cfg.FormatDSN(), mysql.WithConnections(8), mysql.WithWait(patience), mysql.WithStatementTimeout(patience))
	})
}

func placeOf(beside *sqlx.DB, quoted func(string) string, param func(int) string, open func() (*persistence.Store, error)) place {
	return place{db: beside, open: func(t testing.TB, defs ...*definitions.Machine) backend {
		t.Helper()
		store, err := open()
		check(t, err)
		t.Cleanup(func() { closeIdle(t, store) })
		check(t, store.Migrate(t.Context(), defs...))
		return &storetest.SQL{Opened: store, Pool: store.DB(), Beside: beside, Quote: quoted, Param: param}
	}}
}

// closeIdle closes a store; no connection of it may still be taken.
func closeIdle(t testing.TB, store *persistence.Store) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); store.DB().Stats().InUse != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%d connections are still in use", store.DB().Stats().InUse)
			break
		}
	}
	check(t, store.Close())
}

func closing(t testing.TB, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() { check(t, c.Close()) })
}

func backtick(s string) string { return "`" + s + "`" }
func quote(s string) string    { return `"` + s + `"` }

// bind makes the engine and the machines over a place.
func bind(t *testing.T, name string, p place, defs ...*definitions.Machine) *site {
	t.Helper()
	s := &site{t: t, backend: p.open(t, defs...), name: name, db: p.db, machines: map[string]*engine.Machine{}}
	eng, err := engine.New(s.Store(), engine.WithClock(s.now))
	check(t, err)
	s.eng = eng
	for i, def := range defs {
		m, err := eng.Machine(t.Context(), def)
		check(t, err)
		s.machines[def.Name] = m
		if i == 0 {
			s.m = m
		}
	}
	return s
}

// onEach runs a test on a fresh store of each of the kinds.
func onEach(t *testing.T, kinds []kind, run func(s *site), defs ...*definitions.Machine) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			run(bind(t, k.name, k.open(t), defs...))
		})
	}
}

// load reads a definition of testdata.
func load(t testing.TB, name string) *definitions.Machine {
	t.Helper()
	def, err := definitions.Load(filepath.Join("testdata", name+".yaml"))
	check(t, err)
	return def
}

func parse(t testing.TB, text string) *definitions.Machine {
	t.Helper()
	def, err := definitions.Parse("test.yaml", []byte(strings.TrimLeft(text, "\n")))
	check(t, err)
	return def
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// txForm is a transaction that a caller of the store may hold.
func (s *site) txForm() storetest.TxForm {
	if s.db == nil {
		return storetest.OwnTx
	}
	return storetest.SqlxTx
}

// memoryBackend reaches the rows of a store in memory.
type memoryBackend struct{ s *memory.Store }

func (b *memoryBackend) Store() engine.Store { return b.s }

func (b *memoryBackend) Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error {
	return b.s.Put(ctx, def, row)
}

func (b *memoryBackend) Update(ctx context.Context, def *definitions.Machine, id string, set engine.Row) error {
	row := engine.Row{"id": id}
	maps.Copy(row, set)
	return b.s.Put(ctx, def, row)
}

func (b *memoryBackend) Begin(ctx context.Context, _ storetest.TxForm, _ sql.IsolationLevel) (*storetest.Tx, error) {
	tx, err := b.s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	return &storetest.Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
}
