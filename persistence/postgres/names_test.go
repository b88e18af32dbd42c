package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// withTable is a rig over a table of the test's own making.
func withTable(t *testing.T, yaml string, ddl ...string) *rig {
	t.Helper()
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	pre := &rig{dsn: dsn, store: store}
	for _, text := range ddl {
		pre.exec(t, text)
	}
	return bind(t, dsn, store, parse(t, yaml))
}

func TestUUIDInThreeSpellings(t *testing.T) {
	r := withTable(t, order, `CREATE TABLE orders (id uuid PRIMARY KEY, status text NOT NULL, version bigint NOT NULL, payment_ref text, paid_at timestamptz)`)
	const id = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
	spellings := []string{strings.ToUpper(id), "{" + id + "}", strings.ReplaceAll(id, "-", "")}
	for i, spelling := range spellings {
		res, err := r.m.Create(t.Context(), engine.Row{"id": spelling}, engine.WithKey("new"))
		check(t, err)
		if want := []engine.Outcome{engine.Applied, engine.Replayed, engine.Replayed}[i]; res.Outcome != want || res.ID != id {
			t.Errorf("create %s: %+v", spelling, res)
		}
	}
	for i, spelling := range spellings {
		res, err := r.m.Fire(t.Context(), "pay", spelling, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
		check(t, err)
		if want := []engine.Outcome{engine.Applied, engine.Replayed, engine.Replayed}[i]; res.Outcome != want || res.ID != id || res.Version != 2 {
			t.Errorf("pay %s: %+v", spelling, res)
		}
		row, err := r.m.Get(t.Context(), spelling)
		check(t, err)
		entries, err := r.m.Journal(t.Context(), spelling)
		check(t, err)
		if row.ID != id || len(entries) != 2 {
			t.Errorf("%s: %+v, %d entries", spelling, row, len(entries))
		}
	}
	// an id that no row can have is told before anything is sent, so that the caller's
	// transaction lives on
	tx, err := r.store.DB().BeginTxx(t.Context(), nil)
	check(t, err)
	if _, err := r.m.In(tx).Fire(t.Context(), "ship", "o-1", nil); !errors.Is(err, engine.ErrInvalidArgs) {
		t.Errorf("an id that is no uuid: %v", err)
	}
	_, err = r.m.In(tx).Fire(t.Context(), "ship", spellings[0], nil)
	check(t, err)
	check(t, tx.Commit())
	r.whole(t)
}

func TestIDsCompareByBytes(t *testing.T) {
	r := open(t, order)
	for _, id := range []string{"o-1", "O-1", "o-1 ", "ö-1", "o\u0308-1"} {
		r.create(t, id, nil)
		res, err := r.m.Fire(t.Context(), "pay", id, engine.Args{"payment_ref": id}, engine.WithKey("k"))
		check(t, err)
		if res.Outcome != engine.Applied {
			t.Errorf("%q: %v", id, res.Outcome)
		}
	}
	r.whole(t)
}

const numbered = `
machine: counter
table: {name: counters, id: {column: number, type: int}, status: {column: stage, type: int}, version: revision}
initial: [fresh, later]
states:
  fresh:  {value: 10}
  later:  {value: 20, aliases: [21, 22]}
  active: {value: -3}
  done:   {value: 0, final: true}
transitions:
  start:  {from: [fresh, later], to: active}
  pause:  {from: active, to: later}
  finish: {from: [fresh, later, active], to: done}
`

// Ids, status and version in the narrowest types: what does not fit is told, not raised.
func TestNarrowIntegers(t *testing.T) {
	r := withTable(t, numbered, `CREATE TABLE counters (number integer PRIMARY KEY, stage smallint NOT NULL, revision smallint NOT NULL)`)
	for _, id := range []string{"-2147483648", "0", "2147483647"} {
		r.create(t, id, engine.Row{"status": "later"})
		res, err := r.m.Fire(t.Context(), "start", id, nil, engine.WithVersion(1))
		check(t, err)
		if res.From != "later" || res.To != "active" || res.Version != 2 {
			t.Errorf("%s: %+v", id, res)
		}
	}
	if _, err := r.m.Fire(t.Context(), "start", "2147483648", nil); !errors.Is(err, engine.ErrInvalidArgs) {
		t.Errorf("an id over the column's range: %v", err)
	}
	r.exec(t, "UPDATE counters SET stage = 22 WHERE number = 0")
	if _, err := r.eng.Machine(t.Context(), parse(t, strings.ReplaceAll(numbered, "-3", "-32769"))); err == nil || !strings.Contains(err.Error(), "does not hold every state") {
		t.Errorf("a state that the column cannot hold: %v", err)
	}
	res, err := r.m.Fire(t.Context(), "finish", "0", nil)
	check(t, err)
	if res.From != "later" || res.To != "done" {
		t.Errorf("from an alias: %+v", res)
	}
	for _, version := range []int64{3, 40000, 1 << 40} {
		if _, err := r.m.Fire(t.Context(), "pause", "2147483647", nil, engine.WithVersion(version)); !errors.Is(err, engine.ErrConflict) {
			t.Errorf("version %d over the column's range: %v", version, err)
		}
	}
	r.exec(t, "INSERT INTO counters VALUES (1, 10, 32767)")
	tx, err := r.store.DB().BeginTxx(t.Context(), nil)
	check(t, err)
	if _, err := r.m.In(tx).Fire(t.Context(), "start", "1", nil); err == nil {
		t.Error("a version at the end of its column went on")
	}
	var one int
	check(t, tx.GetContext(t.Context(), &one, "SELECT 1")) // and nothing was raised
	check(t, tx.Rollback())
}

const quoted = `
machine: odd
table: {name: order, id: group, status: index, version: "select"}
fields:
  "user": {type: string, column: "limit", nullable: true}
  note: {type: string, column: "from to", default: ""}
initial: new
states: {new: , done: {value: "it's \\ done", final: true}}
transitions:
  finish: {from: new, to: done, args: {u: string}, set: {user: args.u}}
`

func TestNamesThatNeedQuotes(t *testing.T) {
	r := open(t, quoted)
	r.create(t, "1", nil)
	res, err := r.m.Fire(t.Context(), "finish", "1", engine.Args{"u": "me"})
	check(t, err)
	row, err := r.m.Get(t.Context(), "1")
	check(t, err)
	if res.To != "done" || row.State != "done" || row.Row()["user"] != "me" {
		t.Errorf("%+v, %+v", res, row)
	}
}

func TestSchemaQualifiedTable(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	pre := &rig{dsn: dsn, store: store}
	var schema string
	check(t, store.DB().GetContext(t.Context(), &schema, "SELECT current_schema()"))
	other := schema + "_sales"
	pre.exec(t, "CREATE SCHEMA "+other)
	yaml := strings.ReplaceAll(order, "table: {name: orders}", "table: {name: "+other+".orders}\njournal: {table: "+other+".log}")
	r := bind(t, dsn, store, parse(t, yaml))
	defer r.exec(t, "DROP SCHEMA "+other+" CASCADE")
	r.create(t, "1", nil)
	for _, want := range []engine.Outcome{engine.Applied, engine.Replayed} {
		res, err := r.m.Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
		check(t, err)
		if res.Outcome != want {
			t.Errorf("%v, want %v", res.Outcome, want)
		}
	}
	// without the statement's own look at the key the journal's index tells it
	var n int
	check(t, store.DB().GetContext(t.Context(), &n, "SELECT count(*) FROM "+other+".log"))
	if n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
	if _, err := r.m.Fire(t.Context(), "ship", "1", nil, engine.WithKey("k")); !errors.Is(err, engine.ErrKeyReused) {
		t.Errorf("key reused: %v", err)
	}
}

// Two processes that migrate at once do not get in each other's way.
func TestMigrateAtOnce(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	def := parse(t, order)
	errs := make(chan error, 8)
	for range cap(errs) {
		go func() { errs <- store.Migrate(t.Context(), def) }()
	}
	for range cap(errs) {
		check(t, <-errs)
	}
}

// A long journal name keeps its two indexes apart.
func TestLongJournalName(t *testing.T) {
	name := strings.Repeat("j", 63)
	r := open(t, order+"journal: {table: "+name+"}\n")
	var n int
	check(t, r.store.DB().GetContext(t.Context(), &n, "SELECT count(*) FROM pg_indexes WHERE schemaname = current_schema() AND tablename = $1", name))
	if n != 3 {
		t.Errorf("%d indexes, want 3", n)
	}
}
