package sqlite_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

const everyType = `
machine: thing
table: {name: things}
fields:
  n: {type: int, default: 0}
  f: {type: float, default: 0}
  b: {type: bool, default: false}
  t: {type: time, nullable: true}
  y: {type: bytes, nullable: true}
  j: {type: json, nullable: true}
  d: {type: decimal, default: 0}
  s: {type: string, nullable: true}
initial: a
states: {a: , b: {final: true}}
transitions:
  go: {from: a, to: b, args: {s: string}, set: {s: args.s}}
`

// everyColumn is what fits it; a test replaces one line.
var everyColumn = []string{
	"id TEXT PRIMARY KEY", "status TEXT NOT NULL", "version INTEGER NOT NULL", "n INTEGER NOT NULL", "f REAL NOT NULL",
	"b BOOLEAN NOT NULL", "t TIMESTAMP", "y BLOB", "j TEXT", "d TEXT NOT NULL", "s TEXT",
}

// verifyWith binds everyType to a table whose column of that name is declared so; ""
// leaves it out.
func verifyWith(t *testing.T, store *persistence.Store, column, declared string, more ...string) error {
	t.Helper()
	var lines []string
	for _, line := range everyColumn {
		if name, _, _ := strings.Cut(line, " "); name == column {
			line = declared
		}
		if line != "" {
			lines = append(lines, line)
		}
	}
	mustExec(t, store.DB(), "DROP TABLE IF EXISTS things")
	mustExec(t, store.DB(), "CREATE TABLE things ("+strings.Join(append(lines, more...), ", ")+")")
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = eng.Machine(context.Background(), define(t, everyType))
	return err
}

// Each fault of the table is an error that names the column and the DDL that mends it.
func TestVerifyTable(t *testing.T) {
	t.Parallel()
	store := open(t)
	if err := store.Migrate(context.Background(), define(t, everyType)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		column, declared string
		more             []string
		says             []string // none: it fits
	}{
		{"id", "id TEXT PRIMARY KEY", nil, nil},
		{"id", "ID VARCHAR(255) NOT NULL UNIQUE", nil, nil},
		{"id", "id TEXT", []string{"UNIQUE (id)"}, nil},
		{"id", "id BLOB PRIMARY KEY", nil, nil},
		{"id", "id", []string{"PRIMARY KEY (id)"}, nil},
		{"id", "", nil, []string{"column id", "ALTER TABLE `things` ADD COLUMN `id` TEXT"}},
		{"id", "id TEXT", nil, []string{"column id", "CREATE UNIQUE INDEX `things_id` ON `things` (`id`)"}},
		{"id", "id TEXT", []string{"tenant TEXT", "PRIMARY KEY (id, tenant)"}, []string{"column id", "must be unique"}},
		{"id", "id TEXT", []string{"tenant TEXT", "UNIQUE (tenant, id)"}, []string{"column id", "must be unique"}},
		{"id", "id TEXT COLLATE NOCASE PRIMARY KEY", nil, []string{"column id", "NOCASE", "TEXT COLLATE BINARY"}},
		{"id", "id TEXT COLLATE RTRIM UNIQUE", nil, []string{"column id", "RTRIM"}},
		{"id", "id NUMERIC PRIMARY KEY", nil, []string{"column id", "NUMERIC affinity would rewrite string values", "declare it TEXT"}},
		{"id", "id STRING PRIMARY KEY", nil, []string{"column id", `"STRING"`, "declare it TEXT"}},
		{"id", "id INTEGER PRIMARY KEY", nil, []string{"column id", "INTEGER affinity"}},
		{"id", "id UUID PRIMARY KEY", nil, []string{"column id", "NUMERIC affinity"}},
		{"status", "", nil, []string{"column status", "ADD COLUMN `status` TEXT"}},
		{"status", "status TEXT", nil, []string{"column status", "NULL", "`status` TEXT NOT NULL"}},
		{"status", "status STRING NOT NULL", nil, []string{"column status", "NUMERIC affinity"}},
		{"status", "status INTEGER NOT NULL", nil, []string{"column status", "INTEGER affinity"}},
		{"status", "status TEXT COLLATE NOCASE NOT NULL", nil, nil}, // every comparison says BINARY
		{"version", "", nil, []string{"column version", "ADD COLUMN `version` INTEGER"}},
		{"version", "version INTEGER", nil, []string{"column version", "NULL", "`version` INTEGER NOT NULL"}},
		{"version", "version TEXT NOT NULL", nil, []string{"column version", "TEXT affinity would rewrite int values", "declare it INTEGER"}},
		{"version", "version BIGINT NOT NULL DEFAULT 1", nil, nil},
		{"n", "n TEXT NOT NULL", nil, []string{"column n", "TEXT affinity"}},
		{"n", "n REAL NOT NULL", nil, []string{"column n", "REAL affinity"}},
		{"f", "f INTEGER NOT NULL", nil, []string{"column f", "INTEGER affinity"}},
		{"d", "d DECIMAL(18,6) NOT NULL", nil, []string{"column d", "NUMERIC affinity would rewrite decimal values", "declare it TEXT"}},
		{"y", "y TEXT", nil, []string{"column y", "declare it BLOB"}},
		{"j", "j JSON", nil, []string{"column j", "NUMERIC affinity"}},
		{"t", "t INTEGER", nil, []string{"column t", "INTEGER affinity"}},
		{"t", "t DATETIME", nil, nil},
		{"t", "t TEXT", nil, nil},
		{"s", "s TEXT NOT NULL", nil, []string{"column s", "nullable", "NOT NULL"}},
		{"s", "", nil, []string{"column s", "ALTER TABLE `things` ADD COLUMN `s` TEXT"}},
		{"s", "S TEXT", nil, nil}, // SQLite's names know no case
	} {
		err := verifyWith(t, store, c.column, c.declared, c.more...)
		if (err == nil) != (c.says == nil) {
			t.Errorf("%q %v: %v", c.declared, c.more, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q %v: %v, want it to say %q", c.declared, c.more, err, part)
			}
		}
	}
}

// All faults are told at once.
func TestVerifyTellsAll(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustExec(t, store.DB(), "CREATE TABLE things (id TEXT, status TEXT)")
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = eng.Machine(context.Background(), define(t, everyType))
	for _, part := range []string{"machine thing", "column id", "column status", "column version", "column n", "column s", "journal table fsm_journal"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want it to say %q", err, part)
		}
	}
}

// The DDL that an error shows does what it says.
func TestVerifyMissingTables(t *testing.T) {
	t.Parallel()
	store := open(t)
	def := define(t, everyType)
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	_, err = eng.Machine(context.Background(), def)
	if err == nil || !strings.Contains(err.Error(), "there is no table things: call store.Migrate") {
		t.Fatalf("error %v, want one that says there is no table", err)
	}
	_, ddl, _ := strings.Cut(err.Error(), "or run\n")
	mustExec(t, store.DB(), ddl)
	bind(t, store, def)

	for _, column := range []string{"published_at", "attempt"} {
		mustExec(t, store.DB(), "ALTER TABLE fsm_journal DROP COLUMN "+column)
		if _, err := eng.Machine(context.Background(), def); err == nil || !strings.Contains(err.Error(), "fsm_journal") || !strings.Contains(err.Error(), column) {
			t.Errorf("journal without %s: %v", column, err)
		}
	}
	mustExec(t, store.DB(), "DROP TABLE fsm_journal")
	if _, err := eng.Machine(context.Background(), def); err == nil || !strings.Contains(err.Error(), "CREATE TABLE IF NOT EXISTS `fsm_journal`") {
		t.Errorf("no journal: %v", err)
	}
	mustExec(t, store.DB(), sqlite.DDL(def))
	bind(t, store, def)
}

// Migrate never alters what is there, and can be called again.
func TestMigrateAgain(t *testing.T) {
	t.Parallel()
	store := open(t)
	def := define(t, everyType)
	mustExec(t, store.DB(), "CREATE TABLE things (id TEXT, mine TEXT)")
	for range 2 {
		if err := store.Migrate(context.Background(), def); err != nil {
			t.Fatal(err)
		}
	}
	var columns int
	if err := store.DB().Get(&columns, "SELECT count(*) FROM pragma_table_info('things')"); err != nil || columns != 2 {
		t.Errorf("the team's table has %d columns, %v, want its own two", columns, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := open(t).Migrate(ctx, def); !errors.Is(err, context.Canceled) {
		t.Errorf("Migrate with a dead context: %v", err)
	}
}

// Rows that no transition made, and that break what the columns allow.
func TestStrangeRows(t *testing.T) {
	t.Parallel()
	store := open(t)
	mustExec(t, store.DB(), `CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT NOT NULL, version NOT NULL, amount INTEGER, payment_ref TEXT, paid_at)`)
	m := machineOn(t, store, orderText)
	mustExec(t, store.DB(), `INSERT INTO orders VALUES ('old', 'archived_v1', 3, 1, NULL, NULL), ('empty', '', 1, 1, NULL, NULL), ('case', 'Pending', 1, 1, NULL, NULL),
		('space', 'pending ', 1, 1, NULL, NULL), ('text', 'pending', 'two', 1, NULL, NULL), ('when', 'pending', 1, 1, NULL, 'yesterday'), ('good', 'pending', 41, 1, NULL, NULL)`)
	fire := func(id string) error {
		_, err := m.Fire(context.Background(), "pay", id, engine.Args{"payment_ref": "r"})
		return err
	}
	for _, id := range []string{"old", "empty", "case", "space"} {
		var e *engine.Error
		if err := fire(id); !errors.Is(err, engine.ErrUnknownState) || !errors.As(err, &e) || !strings.Contains(err.Error(), `"`+id+`"`) {
			t.Errorf("%s: %v, want ErrUnknownState that names the row", id, err)
		}
		if _, err := m.Get(context.Background(), id); !errors.Is(err, engine.ErrUnknownState) {
			t.Errorf("%s: Get: %v", id, err)
		}
	}
	if err := fire("text"); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a version that is no number: %v", err)
	}
	if _, err := m.Get(context.Background(), "when"); err == nil || !strings.Contains(err.Error(), "paid_at") || !strings.Contains(err.Error(), "yesterday") {
		t.Errorf("a time that is none: %v, want an error that names column and value", err)
	}
	if res := mustFire(t, m, "pay", "good", engine.Args{"payment_ref": "r"}); res.Version != 42 {
		t.Errorf("a row made elsewhere goes on with version %d, want 42", res.Version)
	}
}

// Whatever is read of a table while it is verified, another process may have it locked for
// a moment.
func TestVerifyWaitsForTheLock(t *testing.T) {
	t.Parallel()
	store, log := recorded(t, "")
	m := machineOn(t, store, lampText)
	for _, text := range []string{"pragma_table_info", "sqlite_schema", "pragma_index_xinfo(i.name, ?2) AS x WHERE"} {
		met := false
		fits := func(e recorder.Event) bool { return e.Op == "query" && strings.Contains(e.Text, text) }
		log.Inject(recorder.Fault{Before: recorder.Once(fits, func(recorder.Event) error {
			met = true
			return sqlite3.Error{Code: sqlite3.ErrBusy}
		})})
		bind(t, store, m.Definition())
		if !met {
			t.Errorf("nothing is read of %s", text)
		}
	}
}

// A journal of the user's own making must keep what is written there as it is, or one
// row's key passes for another's.
func TestVerifyJournal(t *testing.T) {
	t.Parallel()
	const both = ", UNIQUE (machine, entity_id, version), UNIQUE (machine, entity_id, `key`))"
	for _, c := range []struct {
		old, new string
		says     []string // none: it is fine
	}{
		{"", "", nil},
		{"`key` TEXT", "`key` VARCHAR(255)", nil},
		{"`key` TEXT", "`key` BLOB", nil},
		{"`version` INTEGER", "`version` BIGINT", nil},
		{"`at` TEXT", "`at` TIMESTAMP", nil},
		{"`actor` TEXT", "`actor` TEXT COLLATE NOCASE", nil},
		{"`to_state` TEXT", "`to_state` TEXT COLLATE NOCASE", nil}, // every comparison says BINARY
		{"`args` TEXT", "tenant TEXT NOT NULL DEFAULT 'mine', note, `args` TEXT", nil},
		{"`entity_id` TEXT", "`entity_id` INTEGER", []string{"column entity_id", "INTEGER affinity would rewrite string values", "declare it TEXT"}},
		{"`key` TEXT", "`key` STRING", []string{"column key", "NUMERIC affinity"}},
		{"`machine` TEXT", "`machine` NAME", []string{"column machine", "NUMERIC affinity"}},
		{"`transition` TEXT", "`transition` STRING", []string{"column transition"}},
		{"`from_state` TEXT", "`from_state` STRING", []string{"column from_state"}},
		{"`to_state` TEXT", "`to_state` STRING", []string{"column to_state"}},
		{"`fingerprint` TEXT", "`fingerprint` HASH", []string{"column fingerprint"}},
		{"`attempt` TEXT", "`attempt` HASH", []string{"column attempt"}},
		{"`args` TEXT", "`args` JSON", []string{"column args", "NUMERIC affinity"}},
		{"`version` INTEGER", "`version` TEXT", []string{"column version", "TEXT affinity"}},
		{"`from_state` TEXT", "`from_state` TEXT NOT NULL", []string{"column from_state", "NOT NULL", "copy its entries into one made by\nCREATE TABLE"}},
		{"`published_at` TEXT", "`published_at` TEXT NOT NULL", []string{"column published_at"}},
		{"`seq` INTEGER PRIMARY KEY AUTOINCREMENT", "`seq` BIGINT PRIMARY KEY", []string{"column seq", "does not number"}},
		{"`args` TEXT", "tenant TEXT NOT NULL, `args` TEXT", []string{"column tenant", "does not write it"}},
		{"`key` TEXT", "`key` TEXT COLLATE NOCASE", []string{"unique index sqlite_autoindex_fsm_journal_2 takes different texts for equal", "copy its entries"}},
		{"`entity_id` TEXT", "`entity_id` TEXT COLLATE RTRIM", []string{"takes different texts for equal"}},
	} {
		store := open(t)
		ddl, def := sqlite.DDL(define(t, everyType)), define(t, everyType)
		_, ddl, _ = strings.Cut(ddl, ";")
		ddl, _, _ = strings.Cut(ddl, ";")
		if !strings.Contains(ddl, c.old) {
			t.Fatalf("%q is not in %s", c.old, ddl)
		}
		mustExec(t, store.DB(), strings.Replace(strings.TrimSuffix(strings.TrimSpace(ddl), ")"), c.old, c.new, 1)+both)
		if err := store.Migrate(context.Background(), def); err != nil {
			t.Fatal(err)
		}
		eng, err := engine.New(store)
		if err != nil {
			t.Fatal(err)
		}
		m, err := eng.Machine(context.Background(), def)
		if (err == nil) != (c.says == nil) {
			t.Errorf("%q: %v", c.new, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "journal table fsm_journal") {
				t.Errorf("%q: %v, want it to say %q", c.new, err, part)
			}
		}
		if c.says != nil {
			continue
		}
		for _, id := range []string{"a", "A", "007", "7"} {
			if _, err := m.Create(context.Background(), engine.Row{"id": id}); err != nil {
				t.Fatal(err)
			}
			mustFire(t, m, "go", id, engine.Args{"s": "x"}, engine.WithKey("k"))
			if res := mustFire(t, m, "go", id, engine.Args{"s": "x"}, engine.WithKey("k")); res.Outcome != engine.Replayed || res.First == nil && c.new == "" {
				t.Errorf("%q: %v", c.new, res.Outcome)
			}
		}
	}
}
