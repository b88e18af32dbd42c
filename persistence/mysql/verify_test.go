package mysql

import (
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

const (
	good   = "CREATE TABLE orders (id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY, status VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin NOT NULL, version BIGINT NOT NULL DEFAULT 1, payment_ref VARCHAR(64), paid_at DATETIME(6))"
	idText = "id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	status = "status VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
)

// TestVerify: a column in which values would not come back as they were written, or
// that takes two texts for one, is refused with the DDL that mends it.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		says     []string // none: it is fine
	}{
		"fine":                        {"", "", nil},
		"id VARBINARY":                {idText, "id VARBINARY(64)", nil},
		"status VARBINARY":            {status, "status VARBINARY(32)", nil},
		"id by the server's default":  {idText, "id VARCHAR(64) CHARACTER SET utf8mb4", []string{"column id", "collation", "utf8mb4_nopad_bin"}},
		"id padded":                   {idText, "id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", []string{"column id", "utf8mb4_bin", "'Paid '", "`id` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"}},
		"status case-blind":           {status, "status VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", []string{"column status", "utf8mb4_general_ci", "`status` VARCHAR(255)"}},
		"status of another charset":   {status, "status VARCHAR(32) CHARACTER SET latin1 COLLATE latin1_nopad_bin", []string{"column status", "latin1_nopad_bin"}},
		"status ENUM":                 {status, "status ENUM('pending','paid','shipped','cancelled')", []string{"column status", "enum"}},
		"status CHAR":                 {status, "status CHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin", []string{"column status", "char(32)", "trims"}},
		"status too short":            {"status VARCHAR(32)", "status VARCHAR(8)", []string{"column status", "cancelled"}},
		"status nullable":             {"utf8mb4_nopad_bin NOT NULL", "utf8mb4_nopad_bin NULL", []string{"column status", "NOT NULL"}},
		"version nullable":            {"version BIGINT NOT NULL DEFAULT 1", "version BIGINT NULL", []string{"column version", "NOT NULL"}},
		"version unsigned":            {"version BIGINT NOT NULL", "version BIGINT UNSIGNED NOT NULL", []string{"column version", "unsigned"}},
		"version as text":             {"version BIGINT NOT NULL DEFAULT 1", "version VARCHAR(20) NOT NULL", []string{"column version", "varchar(20)"}},
		"time without microseconds":   {"paid_at DATETIME(6)", "paid_at DATETIME", []string{"column paid_at", "microseconds", "DATETIME(6)"}},
		"time with milliseconds":      {"paid_at DATETIME(6)", "paid_at DATETIME(3)", []string{"column paid_at", "microseconds"}},
		"time as TIMESTAMP":           {"paid_at DATETIME(6)", "paid_at TIMESTAMP(6) NULL", []string{"column paid_at", "time zones"}},
		"field CHAR":                  {"payment_ref VARCHAR(64)", "payment_ref CHAR(64)", []string{"column payment_ref", "char(64)"}},
		"field NOT NULL":              {"payment_ref VARCHAR(64)", "payment_ref VARCHAR(64) NOT NULL", []string{"column payment_ref", "nullable"}},
		"field of another type":       {"payment_ref VARCHAR(64)", "payment_ref BIGINT", []string{"column payment_ref", "bigint"}},
		"no column":                   {", payment_ref VARCHAR(64)", "", []string{"no column payment_ref", "ADD COLUMN"}},
		"id not unique":               {"nopad_bin PRIMARY KEY", "nopad_bin", []string{"column id", "unique"}},
		"id unique in its first part": {"nopad_bin PRIMARY KEY, ", "nopad_bin NOT NULL, UNIQUE KEY u (id(8)), ", []string{"column id", "unique"}},
		"id unique beside another":    {"nopad_bin PRIMARY KEY, ", "nopad_bin NOT NULL, UNIQUE KEY u (id, status), ", []string{"column id", "unique"}},
		"no transactions":             {"DATETIME(6))", "DATETIME(6)) ENGINE=MyISAM", []string{"MyISAM", "InnoDB"}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := Open(t.Context(), servertest.MariaDBDatabase(t).FormatDSN())
			check(t, err)
			t.Cleanup(func() { check(t, store.Close()) })
			def := parse(t, order)
			if c.old != "" && !strings.Contains(good, c.old) {
				t.Fatalf("%q is not in the table", c.old)
			}
			_, err = store.DB().ExecContext(t.Context(), strings.Replace(good, c.old, c.new, 1))
			check(t, err)
			check(t, store.Migrate(t.Context(), def))
			eng, err := engine.New(store)
			check(t, err)
			_, err = eng.Machine(t.Context(), def)
			if c.says == nil {
				check(t, err)
				return
			}
			if err == nil {
				t.Fatal("the table was taken")
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// TestOwnTables: names that are words of SQL, a table of another schema, ids that are
// numbers or uuids.
func TestOwnTables(t *testing.T) {
	t.Run("words", func(t *testing.T) {
		r := open(t, `
machine: order
table: {name: order, id: {column: group, type: int}, status: index, version: select}
fields: {ref: {type: string, nullable: true, column: key}}
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  go: {from: a, to: b, args: {ref: string}, set: {ref: args.ref}}
  no: {from: [a, b], to: c}
`)
		r.create(t, "9223372036854775807", nil)
		r.fire(t, engine.Applied, "go", "9223372036854775807", engine.Args{"ref": "x"})
		r.fire(t, engine.AlreadyReached, "go", "9223372036854775807", engine.Args{"ref": "x"})
		if res := r.fire(t, engine.Applied, "no", "9223372036854775807", nil); res.From != "b" {
			t.Errorf("from %s", res.From)
		}
	})
	t.Run("schema", func(t *testing.T) {
		other := servertest.MariaDBDatabase(t).DBName
		r := open(t, strings.Replace(order, "name: orders", "name: "+other+".orders", 1))
		r.create(t, "o-1", nil)
		r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
		r.fire(t, engine.AlreadyReached, "pay", "o-1", engine.Args{"payment_ref": "x"})
		var n int
		check(t, r.store.DB().GetContext(t.Context(), &n, "SELECT COUNT(*) FROM "+persistence.QuoteTable(dialect{}, r.def.Journal.Table)))
		if n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
	})
	t.Run("uuid", func(t *testing.T) {
		r := open(t, order)
		r.exec(t, "DROP TABLE orders")
		r.exec(t, strings.Replace(good, idText, "id UUID", 1))
		eng, err := engine.New(r.store)
		check(t, err)
		r.m, err = eng.Machine(t.Context(), r.def)
		check(t, err)
		const id = "0188f3a0-7b1c-7e2d-9a4f-00112233aabb"
		r.create(t, strings.ToUpper(id), nil)
		spellings := []string{id, strings.ToUpper(id), strings.ReplaceAll(id, "-", "")}
		for i, spelling := range spellings {
			want := engine.Replayed
			if i == 0 {
				want = engine.Applied
			}
			if res := r.fire(t, want, "pay", spelling, engine.Args{"payment_ref": "x"}, engine.WithKey("k")); res.ID != id {
				t.Errorf("the id is %q", res.ID)
			}
		}
		if n := r.entries(t, id); n != 2 {
			t.Errorf("%d entries, want 2", n)
		}
		_, err = r.m.Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"})
		if err == nil || !strings.Contains(err.Error(), "no uuid") {
			t.Errorf("an id that is no uuid: %v", err)
		}
	})
	t.Run("ids by bytes", func(t *testing.T) {
		r := open(t, order)
		for _, id := range []string{"o-1", "O-1", "o-1 "} {
			r.create(t, id, nil)
			r.fire(t, engine.Applied, "pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
		}
		for _, id := range []string{"o-1", "O-1", "o-1 "} {
			if n := r.entries(t, id); n != 2 {
				t.Errorf("%q has %d entries, want 2", id, n)
			}
		}
		r.whole(t)
	})
	t.Run("status by bytes", func(t *testing.T) {
		r := open(t, order)
		r.exec(t, "DROP TABLE orders")
		r.exec(t, good)
		for id, status := range map[string]string{"a": "PAID", "b": "paid "} {
			r.exec(t, "INSERT INTO orders (id, status) VALUES (?, ?)", id, status)
			if _, err := r.m.Fire(t.Context(), "ship", id, nil); err == nil || !strings.Contains(err.Error(), "none of the machine's states") {
				t.Errorf("%q was taken for paid: %v", status, err)
			}
		}
	})
}

// TestTrigger: a trigger that inserts into a table with AUTO_INCREMENT hides the
// version that the CAS wrote.
func TestTrigger(t *testing.T) {
	for name, yaml := range map[string]string{"journaled": counter, "bare": lamp} {
		t.Run(name, func(t *testing.T) {
			r := open(t, yaml)
			transitions := []string{"next", "more", "back"}
			if name == "bare" {
				transitions = []string{"switch_on", "switch_off"}
			}
			r.create(t, "x", nil)
			r.exec(t, "CREATE TABLE audit (n BIGINT AUTO_INCREMENT PRIMARY KEY, id VARCHAR(64))")
			r.exec(t, "CREATE TRIGGER watch AFTER UPDATE ON "+persistence.QuoteTable(dialect{}, r.def.Table.Name)+" FOR EACH ROW INSERT INTO audit (id) VALUES (NEW.id)")
			for round, m := range []*engine.Machine{r.m, bound(t, r)} { // known when it was bound, and not
				for i, tr := range transitions {
					res, err := m.Fire(t.Context(), tr, "x", nil)
					check(t, err)
					if want := int64(2 + round*len(transitions) + i); res.Version != want {
						t.Errorf("%s: version %d, want %d", tr, res.Version, want)
					}
					tx, err := r.store.DB().BeginTx(t.Context(), nil)
					check(t, err)
					_, err = tx.ExecContext(t.Context(), "INSERT INTO audit (id) VALUES ('z')")
					check(t, err)
					check(t, tx.Rollback())
				}
			}
		})
	}
}

func bound(t *testing.T, r *rig) *engine.Machine {
	t.Helper()
	m, err := r.eng.Machine(t.Context(), r.def)
	check(t, err)
	return m
}

// TestUsersConstraint: a unique index or a CHECK of the user's own is returned as it
// is, and nothing was applied.
func TestUsersConstraint(t *testing.T) {
	r := open(t, order)
	r.exec(t, "CREATE UNIQUE INDEX one_ref ON orders (payment_ref)")
	r.create(t, "o-1", nil)
	r.create(t, "o-2", nil)
	r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
	_, err := r.m.Fire(t.Context(), "pay", "o-2", engine.Args{"payment_ref": "x"})
	if err == nil || !strings.Contains(err.Error(), "one_ref") || !strings.Contains(err.Error(), "nothing was applied") {
		t.Errorf("a value that is taken: %v", err)
	}
	_, err = r.m.Create(t.Context(), engine.Row{"id": "o-3", "payment_ref": "x"})
	if err == nil || !strings.Contains(err.Error(), "one_ref") || !strings.Contains(err.Error(), "nothing was created") {
		t.Errorf("a row with a value that is taken: %v", err)
	}
	r.whole(t)
}

// TestVerifyJournal: a journal of the user's own making, or that an ALTER went over, must
// keep what is written there as it is, or one row's key passes for another's.
func TestVerifyJournal(t *testing.T) {
	text := func(column, width string) string {
		return "`" + column + "` VARCHAR(" + width + ") CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	}
	for name, c := range map[string]struct {
		old, new string
		says     []string // none: it is fine
	}{
		"fine":               {"", "", nil},
		"bytes":              {text("entity_id", "255"), "`entity_id` VARBINARY(255)", nil},
		"names that fit":     {text("to_state", "64"), text("to_state", "9"), nil},
		"ids that fit":       {text("entity_id", "255"), text("entity_id", "64"), nil}, // orders.id is no wider
		"digits":             {"`version` BIGINT", "`version` BIGINT UNSIGNED", nil},
		"numbered":           {"`seq` BIGINT", "`seq` BIGINT UNSIGNED", nil},
		"always full":        {"`fingerprint` VARBINARY(64)", "`fingerprint` CHAR(64) CHARACTER SET ascii", nil},
		"the actor folds":    {text("actor", "255"), "`actor` VARCHAR(255) COLLATE utf8mb4_general_ci", nil},
		"a column more":      {"`args`", "tenant INT NOT NULL DEFAULT 7, note TEXT, twice BIGINT AS (version * 2) STORED, `args`", nil},
		"NULL allowed":       {"`at` DATETIME(6) NOT NULL", "`at` DATETIME(6) NULL", nil},
		"machine folds":      {text("machine", "64"), "`machine` VARCHAR(64) COLLATE utf8mb4_general_ci", []string{"column machine", "utf8mb4_general_ci", "declare it `machine`"}},
		"id padded":          {text("entity_id", "255"), "`entity_id` VARCHAR(255) COLLATE utf8mb4_bin", []string{"column entity_id", "utf8mb4_bin", "utf8mb4_nopad_bin NOT NULL"}},
		"key folds":          {"`key` VARBINARY(255)", "`key` VARCHAR(255) COLLATE utf8mb4_general_ci", []string{"column key", "utf8mb4_general_ci"}},
		"transition folds":   {text("transition", "64"), "`transition` VARCHAR(64) COLLATE utf8mb4_general_ci", []string{"column transition"}},
		"source folds":       {text("from_state", "64"), "`from_state` VARCHAR(64) COLLATE utf8mb4_general_ci", []string{"column from_state"}},
		"target folds":       {text("to_state", "64"), "`to_state` VARCHAR(64) COLLATE utf8mb4_general_ci", []string{"column to_state"}},
		"ids as numbers":     {text("entity_id", "255"), "`entity_id` BIGINT", []string{"column entity_id", "bigint", "declare it `entity_id` VARCHAR(255)"}},
		"key of fixed width": {"`key` VARBINARY(255)", "`key` CHAR(200) COLLATE utf8mb4_nopad_bin", []string{"column key", "char(200)", "can be 255 long"}},
		"key too short":      {"`key` VARBINARY(255)", "`key` VARBINARY(254)", []string{"column key", "varbinary(254)", "MODIFY `key` VARBINARY(255) NOT NULL"}},
		"id too short":       {text("entity_id", "255"), text("entity_id", "63"), []string{"column entity_id", "can be 64 long"}},
		"state too short":    {text("to_state", "64"), text("to_state", "8"), []string{"column to_state", "can be 9 long", "MODIFY `to_state` VARCHAR(64)"}},
		"fingerprint short":  {"`fingerprint` VARBINARY(64)", "`fingerprint` VARBINARY(63)", []string{"column fingerprint"}},
		"attempt short":      {"`attempt` VARBINARY(64)", "`attempt` VARBINARY(31)", []string{"column attempt"}},
		"actor short":        {text("actor", "255"), text("actor", "40"), []string{"column actor"}},
		"version narrow":     {"`version` BIGINT", "`version` INT", []string{"column version", "int(11)", "bigint", "MODIFY `version` BIGINT NOT NULL"}},
		"version as text":    {"`version` BIGINT", "`version` VARCHAR(20)", []string{"column version"}},
		"time in seconds":    {"`at` DATETIME(6)", "`at` DATETIME", []string{"column at", "microseconds"}},
		"args of no text":    {"`args` LONGTEXT CHARACTER SET utf8mb4", "`args` BLOB", []string{"column args"}},
		"args short":         {"`args` LONGTEXT", "`args` TINYTEXT", []string{"column args", "MODIFY `args` LONGTEXT"}},
		"args of 64 KiB":     {"`args` LONGTEXT", "`args` TEXT", nil},
		"published at first": {"`published_at` DATETIME(6) NULL", "`published_at` DATETIME(6) NOT NULL DEFAULT '1970-01-01'", nil},
		"actor due":          {text("actor", "255") + " NULL", text("actor", "255") + " NOT NULL", []string{"column actor", "NOT NULL", "MODIFY `actor`"}},
		"published due":      {"`published_at` DATETIME(6) NULL", "`published_at` DATETIME(6) NOT NULL", []string{"column published_at", "MODIFY `published_at` DATETIME(6) NULL"}},
		"not numbered":       {"`seq` BIGINT NOT NULL AUTO_INCREMENT", "`seq` BIGINT NOT NULL", []string{"column seq", "number", "MODIFY `seq` BIGINT NOT NULL AUTO_INCREMENT"}},
		"a column due":       {"`args`", "tenant VARCHAR(9) NOT NULL, `args`", []string{"column tenant", "MODIFY `tenant` varchar(9) COLLATE utf8mb4_", "NULL"}},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := Open(t.Context(), servertest.MariaDBDatabase(t).FormatDSN())
			check(t, err)
			t.Cleanup(func() { check(t, store.Close()) })
			ddl := dialect{server{maria: true}}.JournalDDL("fsm_journal")[0]
			if c.old != "" && !strings.Contains(ddl, c.old) {
				t.Fatalf("%q is not in %s", c.old, ddl)
			}
			for _, text := range []string{strings.Replace(ddl, c.old, c.new, 1), good} {
				_, err = store.DB().ExecContext(t.Context(), text)
				check(t, err)
			}
			def := parse(t, order)
			check(t, store.Migrate(t.Context(), def))
			eng, err := engine.New(store)
			check(t, err)
			m, err := eng.Machine(t.Context(), def)
			if c.says == nil {
				check(t, err)
				_, err = m.Create(t.Context(), engine.Row{"id": "o-1"}, engine.WithActor("me"))
				check(t, err)
				for _, want := range []engine.Outcome{engine.Applied, engine.Replayed} {
					res, err := m.Fire(t.Context(), "pay", "o-1", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
					check(t, err)
					if res.Outcome != want || res.Version != 2 {
						t.Errorf("%v at version %d, want %v at 2", res.Outcome, res.Version, want)
					}
				}
				return
			}
			if err == nil {
				t.Fatal("the journal was taken")
			}
			for _, want := range append(c.says, "journal table fsm_journal") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			mend, runs := "", false
			if _, mend, runs = strings.Cut(err.Error(), ": run\n"); !runs {
				return
			}
			_, err = store.DB().ExecContext(t.Context(), mend)
			check(t, err)
			_, err = eng.Machine(t.Context(), def)
			check(t, err)
		})
	}
}
