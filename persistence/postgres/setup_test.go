package postgres

import (
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// withParams adds parameters to a DSN in URL form.
func withParams(t testing.TB, dsn string, pairs ...string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for i := 0; i < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// through sends a DSN through another port of this machine.
func through(t testing.TB, dsn, addr string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

// target is the server's address.
func target(t testing.TB, dsn string) string {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s:%d", config.Host, config.Port)
}

func parse(t testing.TB, text string) *definitions.Machine {
	t.Helper()
	def, err := definitions.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// rig is a store with one machine on it.
type rig struct {
	dsn   string
	store *persistence.Store
	eng   *engine.Engine
	m     *engine.Machine
	def   *definitions.Machine
}

// open makes a rig over a schema of its own.
func open(t testing.TB, yaml string, opts ...Option) *rig {
	t.Helper()
	dsn := servertest.PostgresSchema(t)
	def := parse(t, yaml)
	store, err := Open(t.Context(), dsn, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return bind(t, dsn, store, def)
}

func bind(t testing.TB, dsn string, store *persistence.Store, def *definitions.Machine, opts ...engine.Option) *rig {
	t.Helper()
	t.Cleanup(func() { check(t, store.Close()) })
	check(t, store.Migrate(t.Context(), def))
	eng, err := engine.New(store, opts...)
	check(t, err)
	m, err := eng.Machine(t.Context(), def)
	check(t, err)
	return &rig{dsn: dsn, store: store, eng: eng, m: m, def: def}
}

// recorded makes a rig whose every statement is recorded.
func recorded(t testing.TB, yaml string, opts ...Option) (*rig, *recorder.Log) {
	t.Helper()
	dsn := servertest.PostgresSchema(t)
	config, err := pgx.ParseConfig(dsn)
	check(t, err)
	log := &recorder.Log{}
	pool := sqlx.NewDb(sql.OpenDB(recorder.Connector(stdlib.GetConnector(*config), log)), "pgx")
	t.Cleanup(func() { check(t, pool.Close()) })
	store, err := New(pool, opts...)
	check(t, err)
	r := bind(t, dsn, store, parse(t, yaml))
	log.Reset()
	return r, log
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// create makes a row and fails the test where it is not new.
func (r *rig) create(t testing.TB, id string, row engine.Row) {
	t.Helper()
	full := engine.Row{"id": id}
	for k, v := range row {
		full[k] = v
	}
	res, err := r.m.Create(t.Context(), full)
	check(t, err)
	if res.Outcome != engine.Applied {
		t.Fatalf("create %s: %v", id, res.Outcome)
	}
}

// exec runs a statement beside the engine.
func (r *rig) exec(t testing.TB, text string, args ...any) {
	t.Helper()
	if _, err := r.store.DB().ExecContext(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
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

// whole checks invariant H.3 on every row: versions without a gap, each entry begins
// where the one before ended, and the row is where the last one left it.
func (r *rig) whole(t testing.TB) {
	t.Helper()
	var bad []string
	err := r.store.DB().SelectContext(t.Context(), &bad, `WITH j AS (
  SELECT entity_id, version, from_state, to_state,
    lag(version) OVER w AS before, lag(to_state) OVER w AS was, lead(version) OVER w AS after
  FROM fsm_journal WHERE machine = $1 WINDOW w AS (PARTITION BY entity_id ORDER BY version))
SELECT j.entity_id || ' v' || j.version FROM j LEFT JOIN `+persistence.QuoteTable(dialect{}, r.def.Table.Name)+` AS r ON r.id::text = j.entity_id
WHERE j.version <> COALESCE(j.before + 1, 1) OR j.from_state IS DISTINCT FROM j.was
  OR (j.after IS NULL AND (r.version <> j.version OR r.status::text <> j.to_state))`, r.def.Name)
	check(t, err)
	if len(bad) > 0 {
		t.Fatalf("journal and rows disagree at %s", strings.Join(bad, ", "))
	}
	r.idle(t)
}

// long is also what package storetest looks for.
var long = flag.Bool("long", false, "run what repeats, and the kill tests, in full length")

// rounds is how often something repeats.
func rounds(short, full int) int {
	if *long {
		return full
	}
	return short
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

// lamp has no journal.
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
