package mysql

import (
	"database/sql"
	"maps"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// with gives a DSN with other parameters.
func with(cfg *driver.Config, params map[string]string) *driver.Config {
	out := cfg.Clone()
	if out.Params == nil {
		out.Params = map[string]string{}
	}
	maps.Copy(out.Params, params)
	return out
}

func parse(t testing.TB, text string) *definitions.Machine {
	t.Helper()
	def, err := definitions.Parse("test.yaml", []byte(text))
	check(t, err)
	return def
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a store with one machine on it.
type rig struct {
	cfg   *driver.Config
	store *persistence.Store
	eng   *engine.Engine
	m     *engine.Machine
	def   *definitions.Machine
}

// open makes a rig over a database of its own.
func open(t testing.TB, yaml string, opts ...Option) *rig {
	t.Helper()
	return openAt(t, servertest.MariaDBDatabase(t), yaml, opts...)
}

func openAt(t testing.TB, cfg *driver.Config, yaml string, opts ...Option) *rig {
	t.Helper()
	store, err := Open(t.Context(), cfg.FormatDSN(), opts...)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return bind(t, cfg, store, yaml)
}

func bind(t testing.TB, cfg *driver.Config, store *persistence.Store, yaml string, opts ...engine.Option) *rig {
	t.Helper()
	def := parse(t, yaml)
	check(t, store.Migrate(t.Context(), def))
	eng, err := engine.New(store, opts...)
	check(t, err)
	m, err := eng.Machine(t.Context(), def)
	check(t, err)
	return &rig{cfg: cfg, store: store, eng: eng, m: m, def: def}
}

// recorded makes a rig whose every statement is recorded.
func recorded(t testing.TB, yaml string) (*rig, *recorder.Log) {
	t.Helper()
	return recordedAt(t, servertest.MariaDBDatabase(t), yaml)
}

func recordedAt(t testing.TB, cfg *driver.Config, yaml string) (*rig, *recorder.Log) {
	t.Helper()
	full := cfg.Clone()
	complete(full, options{wait: 5 * time.Second, lockWait: time.Second, statement: 4 * time.Second})
	inner, err := driver.NewConnector(full)
	check(t, err)
	log := &recorder.Log{}
	db := sqlx.NewDb(sql.OpenDB(recorder.Connector(inner, log)), "mysql")
	t.Cleanup(func() { check(t, db.Close()) })
	store, err := New(db)
	check(t, err)
	r := bind(t, cfg, store, yaml)
	log.Reset()
	return r, log
}

// create makes a row and fails the test where it is not new.
func (r *rig) create(t testing.TB, id string, row engine.Row) {
	t.Helper()
	full := engine.Row{"id": id}
	maps.Copy(full, row)
	res, err := r.m.Create(t.Context(), full)
	check(t, err)
	if res.Outcome != engine.Applied {
		t.Fatalf("create %s: %v", id, res.Outcome)
	}
}

// fire fails the test where the call does not end as wanted.
func (r *rig) fire(t testing.TB, want engine.Outcome, transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	t.Helper()
	res, err := r.m.Fire(t.Context(), transition, id, args, opts...)
	check(t, err)
	if res.Outcome != want {
		t.Fatalf("%s %s: %v, want %v", transition, id, res.Outcome, want)
	}
	return res
}

// exec runs a statement beside the engine.
func (r *rig) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := r.store.DB().ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// whole checks invariant H.3 on every row: versions without a gap, each entry begins
// where the one before ended, and the row is where the last one left it.
func (r *rig) whole(t testing.TB) {
	t.Helper()
	var bad []string
	err := r.store.DB().SelectContext(t.Context(), &bad, "WITH j AS (SELECT entity_id, version, from_state, to_state, "+
		"LAG(version) OVER w AS before_v, LAG(to_state) OVER w AS was, LEAD(version) OVER w AS after_v "+
		"FROM fsm_journal WHERE machine = ? WINDOW w AS (PARTITION BY entity_id ORDER BY version)) "+
		"SELECT CONCAT(j.entity_id, ' v', j.version) FROM j LEFT JOIN "+persistence.QuoteTable(dialect{}, r.def.Table.Name)+" AS r ON r.id = j.entity_id "+
		"WHERE j.version <> COALESCE(j.before_v + 1, 1) OR NOT (j.from_state <=> j.was) "+
		"OR (j.after_v IS NULL AND NOT (r.version <=> j.version AND r.status <=> j.to_state))", r.def.Name)
	check(t, err)
	if len(bad) > 0 {
		t.Fatalf("journal and rows disagree at %s", strings.Join(bad, ", "))
	}
	r.idle(t)
}

// idle fails the test where a connection is still in use.
func (r *rig) idle(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); r.store.DB().Stats().InUse != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are in use", r.store.DB().Stats().InUse)
		}
	}
}

// where says where a row stands.
func (r *rig) where(t testing.TB, id string) (status string, version int64) {
	t.Helper()
	check(t, r.store.DB().QueryRowContext(t.Context(), "SELECT status, version FROM "+persistence.QuoteTable(dialect{}, r.def.Table.Name)+" WHERE id = ?", id).Scan(&status, &version))
	return status, version
}

// entries counts a row's journal entries.
func (r *rig) entries(t testing.TB, id string) int {
	t.Helper()
	var n int
	check(t, r.store.DB().GetContext(t.Context(), &n, "SELECT COUNT(*) FROM fsm_journal WHERE entity_id = ?", id))
	return n
}

// order is the machine of most tests.
const order = `
machine: order
table: {name: orders}
fields:
  payment_ref: {type: string, nullable: true}
  paid_at:     {type: time, nullable: true}
initial: pending
states:
  pending:
  paid:
  shipped: {final: true}
  cancelled: {final: true}
transitions:
  pay:
    from: pending
    to: paid
    args: {payment_ref: string}
    set: {payment_ref: args.payment_ref, paid_at: now()}
    emit: order.paid
    duplicates: accept
  ship:   {from: paid, to: shipped}
  cancel: {from: [pending, paid], to: cancelled}
`

// lamp has no journal, and can be fired for ever.
const lamp = `
machine: lamp
table: {name: lamps}
initial: "off"
states:
  "off":
  "on":
transitions:
  switch_on:  {from: "off", to: "on"}
  switch_off: {from: "on", to: "off"}
journal: false
`

// counter has a transition that leaves the row where it is, and a cycle.
const counter = `
machine: counter
table: {name: counters}
fields:
  n: {type: int, default: 0}
initial: a
states:
  a:
  b:
  c:
transitions:
  next: {from: a, to: b}
  more: {from: b, to: c}
  back: {from: c, to: a}
  add:
    from: a
    to: a
    key: required
    args: {by: int}
    set: {n: n + args.by}
`
