package postgres

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

const typed = `
machine: sample
table: {name: samples}
fields:
  s: {type: string, nullable: true}
  i: {type: int, nullable: true}
  f: {type: float, nullable: true}
  b: {type: bool, nullable: true}
  t: {type: time, nullable: true}
  y: {type: bytes, nullable: true}
  j: {type: json, nullable: true}
  d: {type: decimal, nullable: true}
initial: new
states: {new: , done: {final: true}}
transitions:
  set:
    from: new
    to: done
    args: {s: string, i: int, f: float, b: bool, t: time, y: bytes, j: json, d: decimal}
    set: {s: args.s, i: args.i, f: args.f, b: args.b, t: args.t, y: args.y, j: args.j, d: args.d}
`

// table is a legal table for typed; tests change one column of it.
var table = map[string]string{
	"id": "text PRIMARY KEY", "status": "text NOT NULL", "version": "bigint NOT NULL DEFAULT 1",
	"s": "text", "i": "bigint", "f": "double precision", "b": "boolean", "t": "timestamptz", "y": "bytea", "j": "json", "d": "numeric(18,6)",
}

func TestVerify(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	r := &rig{dsn: dsn, store: store, def: parse(t, typed)}
	r.exec(t, `CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	r.exec(t, `CREATE TYPE mood AS ENUM ('new', 'done')`)
	r.exec(t, `CREATE DOMAIN short AS varchar(20)`)
	r.exec(t, `CREATE DOMAIN filled AS short NOT NULL`)
	check(t, store.Migrate(t.Context(), r.def))
	eng, err := engine.New(store)
	check(t, err)

	for _, c := range []struct{ column, as, want string }{
		{"id", "text PRIMARY KEY", ""},
		{"id", "varchar(64) PRIMARY KEY", ""},
		{"id", "uuid PRIMARY KEY", ""},
		{"id", `text COLLATE "C" PRIMARY KEY`, ""},
		{"id", "filled PRIMARY KEY", ""},
		{"id", "text NOT NULL UNIQUE", ""},
		{"id", "text", "UNIQUE INDEX"},
		{"id", "text UNIQUE DEFERRABLE", "UNIQUE INDEX"},
		{"id", "text COLLATE blind PRIMARY KEY", `nondeterministic`},
		{"id", "char(10) PRIMARY KEY", `ALTER COLUMN "id" TYPE text`},
		{"id", "bigint PRIMARY KEY", `does not keep every string: ALTER COLUMN "id" TYPE text USING "id"::text`},
		{"status", "varchar(4) NOT NULL", ""},
		{"status", "varchar(3) NOT NULL", "a state of 4 characters"},
		{"status", "text", "declare it NOT NULL"},
		{"status", "filled", ""},
		{"status", "short", "declare it NOT NULL"},
		{"status", "text COLLATE blind NOT NULL", `takes different texts for one`},
		{"status", "mood NOT NULL", `ALTER COLUMN "status" TYPE text USING "status"::text`},
		{"status", "char(8) NOT NULL", "pads with spaces"},
		{"version", "integer NOT NULL", ""},
		{"version", "bigint", "declare it NOT NULL"},
		{"version", "numeric NOT NULL", `ALTER COLUMN "version" TYPE bigint`},
		{"s", "varchar(20)", ""},
		{"s", "text NOT NULL", "says nullable"},
		{"s", "uuid", "not made for string"},
		{"s", "name", "not made for string"},
		{"i", "smallint", ""},
		{"i", "numeric", "not made for int"},
		{"f", "real", "keeps less"},
		{"b", "integer", "does not keep every bool"},
		{"t", "timestamp", `forgets the time zone: ALTER COLUMN "t" TYPE timestamptz USING "t" AT TIME ZONE 'UTC'`},
		{"t", "timestamptz(3)", "rounds to 3 digits"},
		{"t", "timestamptz(6)", ""},
		{"t", "date", "not made for time"},
		{"y", "text", "not made for bytes"},
		{"j", "jsonb", ""},
		{"j", "text", "not made for json"},
		{"d", "numeric(10,2)", ""},
		{"d", "numeric", ""},
		{"d", "money", "does not keep every decimal"},
		{"d", "double precision", "does not keep every decimal"},
		{`"S"`, "text", "no column s"},
	} {
		t.Run(c.column+" "+c.as, func(t *testing.T) {
			r.exec(t, "DROP TABLE samples")
			lines := []string{c.column + " " + c.as}
			for name, as := range table {
				if name != strings.ToLower(strings.Trim(c.column, `"`)) {
					lines = append(lines, name+" "+as)
				}
			}
			r.exec(t, "CREATE TABLE samples ("+strings.Join(lines, ", ")+")")
			_, err := eng.Machine(t.Context(), r.def)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.column == `"S"`:
				if err == nil || !strings.Contains(err.Error(), `names compare by case`) {
					t.Errorf("a column of another name: %v", err)
				}
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "column "+c.column)):
				t.Errorf("%v\nwant it to name the column and say %q", err, c.want)
			}
		})
	}
}

func TestColumns(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	r := &rig{dsn: dsn, store: store}
	r.exec(t, `CREATE DOMAIN price AS numeric(10,2)`)
	r.exec(t, `CREATE TABLE "order" (a varchar(20), b integer, c smallint, d bigint, e numeric(12,-2), f numeric, g price, h char(5), i timestamptz(2), "Weird ""name" text, gone int, PRIMARY KEY (a, b), UNIQUE (d))`)
	r.exec(t, `ALTER TABLE "order" DROP COLUMN gone`)
	r.exec(t, `CREATE UNIQUE INDEX ON "order" (c) WHERE c > 0`)
	r.exec(t, `CREATE UNIQUE INDEX ON "order" (h) INCLUDE (i)`)
	columns, err := dialect{}.Columns(t.Context(), store.DB(), "order")
	check(t, err)
	want := []persistence.Column{
		{Name: "a", Type: "character varying(20)", Length: 20},
		{Name: "b", Type: "integer", Precision: 32},
		{Name: "c", Type: "smallint", Precision: 16, Nullable: true},
		{Name: "d", Type: "bigint", Precision: 64, Nullable: true, UniqueAlone: true},
		{Name: "e", Type: "numeric(12,-2)", Precision: 12, Scale: -2, Nullable: true},
		{Name: "f", Type: "numeric", Nullable: true},
		{Name: "g", Type: "numeric(10,2)", Precision: 10, Scale: 2, Nullable: true},
		{Name: "h", Type: "character(5)", Length: 5, Nullable: true, UniqueAlone: true},
		{Name: "i", Type: "timestamp(2) with time zone", Scale: 2, Nullable: true},
		{Name: `Weird "name`, Type: "text", Nullable: true},
	}
	if len(columns) != len(want) {
		t.Fatalf("%d columns, want %d: %+v", len(columns), len(want), columns)
	}
	for i, c := range columns {
		c.Collation = ""
		if c != want[i] {
			t.Errorf("%+v\nwant %+v", c, want[i])
		}
	}
	if none, err := (dialect{}).Columns(t.Context(), store.DB(), "nothing"); err != nil || len(none) != 0 {
		t.Errorf("a table that is not there: %v, %v", none, err)
	}
}

func TestSpellUUID(t *testing.T) {
	const want = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
	for _, text := range []string{
		want, strings.ToUpper(want), "{" + want + "}", strings.ReplaceAll(want, "-", ""),
		"a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11", "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
	} {
		if got, err := spellUUID(text); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "x", want[1:], want + "0", want + "-", "-" + want, "{" + want, want + "}", "{}", "{", "a0e-ebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
		"a0eebc99--9c0b4ef8bb6d6bb9bd380a11", "g0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "\x10\x11eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "аb" + want[4:],
	} {
		if got, err := spellUUID(text); err == nil {
			t.Errorf("%q is taken for %q", text, got)
		}
	}
}

// What spellUUID takes is what the server takes.
func FuzzSpellUUID(f *testing.F) {
	dsn := servertest.Postgres(f)
	store, err := Open(f.Context(), dsn)
	check(f, err)
	f.Cleanup(func() { check(f, store.Close()) })
	f.Add("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")
	f.Add("{A0EEBC999C0B4EF8BB6D6BB9BD380A11}")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsRune(text, 0) || !strings.HasPrefix(strings.ToValidUTF8(text, ""), text) {
			return
		}
		var server string
		dbErr := store.DB().GetContext(t.Context(), &server, "SELECT CAST(CAST($1 AS text) AS uuid)", text)
		got, err := spellUUID(text)
		if (dbErr == nil) != (err == nil) || got != server {
			t.Errorf("%q: %q, %v; the server: %q, %v", text, got, err, server, dbErr)
		}
	})
}

// A journal of the user's own making must keep what is written there as it is, or one
// row's key passes for another's.
func TestVerifyJournal(t *testing.T) {
	dsn := servertest.PostgresSchema(t)
	store, err := Open(t.Context(), dsn)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	r := &rig{dsn: dsn, store: store, def: parse(t, typed)}
	r.exec(t, `CREATE COLLATION blind (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	r.exec(t, `CREATE DOMAIN tenancy AS text DEFAULT 'mine'`)
	check(t, store.Migrate(t.Context(), r.def))
	eng, err := engine.New(store)
	check(t, err)
	ddl := dialect{}.JournalDDL("fsm_journal")

	for i, c := range []struct{ old, as, column, want string }{
		{"", "", "", ""},
		{`"key" text`, `"key" varchar(255)`, "", ""},
		{`"key" text`, `"key" text COLLATE "C"`, "", ""},
		{`"entity_id" text`, `"entity_id" varchar(255)`, "", ""},
		{`"machine" text`, `"machine" varchar(6)`, "", ""},
		{`"to_state" text NOT NULL`, `"to_state" varchar(4)`, "", ""},
		{`"fingerprint" text`, `"fingerprint" char(64)`, "", ""},
		{`"args" json`, `"args" jsonb NOT NULL`, "", ""},
		{`"actor" text`, `"actor" text COLLATE blind`, "actor", "nondeterministic"},
		{`"at" timestamptz`, `"at" timestamp`, "", ""},
		{`"seq" bigint GENERATED BY DEFAULT AS IDENTITY`, `"seq" bigint GENERATED ALWAYS AS IDENTITY`, "", ""},
		{`"seq" bigint GENERATED BY DEFAULT AS IDENTITY`, `"seq" serial`, "", ""},
		{`"args" json`, `tenant tenancy NOT NULL, note text, twice bigint GENERATED ALWAYS AS (version * 2) STORED NOT NULL, "args" json`, "", ""},
		{`"machine" text`, `"machine" text COLLATE blind`, "machine", "nondeterministic"},
		{`"entity_id" text`, `"entity_id" text COLLATE blind`, "entity_id", "nondeterministic"},
		{`"key" text`, `"key" text COLLATE blind`, "key", `ALTER COLUMN "key" TYPE text COLLATE "C"`},
		{`"key" text`, `"key" char(255)`, "key", `ALTER COLUMN "key" TYPE text`},
		{`"key" text`, `"key" varchar(254)`, "key", "can be 255 long"},
		{`"key" text`, `"key" name`, "key", "not made for string"},
		{`"entity_id" text`, `"entity_id" varchar(3)`, "entity_id", "can be 255 long"},
		{`"entity_id" text`, `"entity_id" bigint`, "entity_id", `ALTER COLUMN "entity_id" TYPE text`},
		{`"transition" text`, `"transition" text COLLATE blind`, "transition", "nondeterministic"},
		{`"from_state" text`, `"from_state" text COLLATE blind`, "from_state", "nondeterministic"},
		{`"from_state" text`, `"from_state" text NOT NULL`, "from_state", "DROP NOT NULL"},
		{`"to_state" text`, `"to_state" varchar(3)`, "to_state", "can be 4 long"},
		{`"version" bigint`, `"version" integer`, "version", "declared integer, and the versions of the machine's table are bigint"},
		{`"version" bigint`, `"version" numeric`, "version", "not made for int"},
		{`"fingerprint" text`, `"fingerprint" varchar(10)`, "fingerprint", "can be 64 long"},
		{`"fingerprint" text`, `"fingerprint" char(65)`, "fingerprint", "pads with spaces"},
		{`"attempt" text`, `"attempt" uuid`, "attempt", "not made for string"},
		{`"meta" json`, `"meta" text`, "meta", "not made for json"},
		{`"at" timestamptz`, `"at" timestamp(3)`, "at", "forgets the time zone"},
		{`"at" timestamptz`, `"at" timestamptz(3)`, "at", "rounds to 3 digits"},
		{`"published_at" timestamptz`, `"published_at" timestamptz NOT NULL`, "published_at", "DROP NOT NULL"},
		{`"seq" bigint GENERATED BY DEFAULT AS IDENTITY`, `"seq" bigint`, "seq", "ADD GENERATED BY DEFAULT AS IDENTITY"},
		{`"args" json`, `"args" json, tenant text NOT NULL`, "tenant", "does not write it"},
	} {
		t.Run(c.as, func(t *testing.T) {
			r.exec(t, "DROP TABLE fsm_journal")
			if !strings.Contains(ddl[0], c.old) {
				t.Fatalf("%q is not in %s", c.old, ddl[0])
			}
			r.exec(t, strings.Replace(ddl[0], c.old, c.as, 1))
			r.exec(t, ddl[1])
			r.exec(t, ddl[2])
			m, err := eng.Machine(t.Context(), r.def)
			if c.want == "" {
				check(t, err)
				id := "row " + strconv.Itoa(i)
				_, err = m.Create(t.Context(), engine.Row{"id": id})
				check(t, err)
				for _, want := range []engine.Outcome{engine.Applied, engine.Replayed} {
					res, err := m.Fire(t.Context(), "set", id, engine.Args{"s": "x", "i": 1, "f": 1.5, "b": true, "t": time.Unix(1, 0), "y": []byte{1}, "j": "{}", "d": "1.5"}, engine.WithKey("k"))
					check(t, err)
					if res.Outcome != want || res.Version != 2 {
						t.Errorf("%v at version %d, want %v at 2", res.Outcome, res.Version, want)
					}
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "journal table fsm_journal, column "+c.column) {
				t.Fatalf("%v\nwant it to name the column and say %q", err, c.want)
			}
			if _, mend, ok := strings.Cut(err.Error(), ": run\n"); ok {
				r.exec(t, mend)
				_, err = eng.Machine(t.Context(), r.def)
				check(t, err)
			}
		})
	}
	t.Run("an index that folds", func(t *testing.T) {
		r.exec(t, "DROP TABLE fsm_journal")
		check(t, store.Migrate(t.Context(), r.def))
		r.exec(t, `CREATE UNIQUE INDEX folding ON fsm_journal (machine, entity_id, key COLLATE blind)`)
		_, err := eng.Machine(t.Context(), r.def)
		if err == nil || !strings.Contains(err.Error(), `DROP INDEX "folding"`) {
			t.Errorf("%v", err)
		}
	})
}

// TestVerifyHeirs: an id is unique in a table, and not over those that inherit from it.
func TestVerifyHeirs(t *testing.T) {
	r := open(t, order)
	r.exec(t, "CREATE TABLE orders_2026 () INHERITS (orders)")
	if _, err := r.eng.Machine(t.Context(), r.def); err == nil || !strings.Contains(err.Error(), "orders") || !strings.Contains(err.Error(), "inherit") {
		t.Errorf("%v, want it refused", err)
	}
}
