package workflowtest

import (
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// TestTableOlderThanTheDefinition: a state is added, and the table that Migrate made
// before still lists the old ones. New says so, and not the first row to get there.
func TestTableOlderThanTheDefinition(t *testing.T) {
	before := parse(t, "machine: m\ntable: {name: evolving}\ninitial: a\nstates: {a: , bé: {final: true}}\ntransitions: {go: {from: a, to: bé}}\n")
	after := "machine: m\ntable: {name: evolving}\ninitial: a\nstates: {a: , NEW: {final: true}, bé: {final: true}}\ntransitions: {go: {from: a, to: bé}, pack: {from: a, to: NEW}}\n"
	for _, k := range databases() {
		for _, state := range []string{"new-state", "未付"} {
			t.Run(k.name+" "+state, func(t *testing.T) {
				t.Parallel()
				s := bind(t, k.name, k.open(t), before)
				_, err := s.eng.Machine(t.Context(), parse(t, strings.ReplaceAll(after, "NEW", state)))
				if err == nil || !strings.Contains(err.Error(), "does not allow '"+state+"':") || !strings.Contains(err.Error(), "CHECK (") {
					t.Errorf("got %v", err)
				}
				if _, err := s.m.Create(t.Context(), engine.Row{"id": "1"}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestChecksOfTheUsersOwn: only a constraint that is nothing but a list of states says
// which there may be. é stands for a value that MariaDB keeps in hex.
func TestChecksOfTheUsersOwn(t *testing.T) {
	def := parse(t, "machine: m\ntable: {name: evolving}\nfields: {n: {type: int, default: 1}}\ninitial: a\nstates: {a: , b: , é: {final: true}}\ntransitions: {go: {from: a, to: b}, end: {from: b, to: é}}\n")
	ddl := map[string]string{"sqlite": sqlite.DDL(def), "postgres": postgres.DDL(def), "mariadb": mysql.DDL(def)}
	for _, k := range databases() {
		for text, stale := range map[string]bool{
			"status IN ('a', 'b') OR n > 0":                       false,
			"n > 0 OR status IN ('a', 'b')":                       false,
			"(status IN ('a', 'b')) OR (status IN ('é', 'x'))":    false,
			"((status IN ('a', ')')) OR n > 0)":                   false,
			"status IN ('é', '(') OR n IN (1, 2)":                 false,
			"status NOT IN ('x', 'y')":                            false,
			"(status IN ('a', 'b')) = (n IN (1, 2))":              false,
			"status IN ('a', 'b', 'é')":                           false,
			"((status IN ('é', 'it''s', 'a', 'b')))":              false,
			"status IN ('a', 'b')":                                true,
			"((status IN ('a', 'b')))":                            true,
			"(status) IN ('it''s (', 'a', 'b')":                   true,
			"status IN ('b', 'a', 'it''s (', ') OR status IN (')": true,
		} {
			t.Run(k.name+" "+text, func(t *testing.T) {
				t.Parallel()
				p := k.open(t)
				table, _, _ := strings.Cut(ddl[k.name], ";\n")
				if k.name == "mariadb" {
					text = strings.ReplaceAll(text, "'é'", "(CONVERT(X'c3a9' USING utf8mb4))")
				}
				if _, err := p.db.ExecContext(t.Context(), strings.Replace(table, "CHECK (", "CHECK ("+text+"), CHECK (", 1)); err != nil {
					t.Fatal(err)
				}
				eng, err := engine.New(p.open(t, def).Store())
				check(t, err)
				_, err = eng.Machine(t.Context(), def)
				if got := err != nil && strings.Contains(err.Error(), "does not allow 'é':"); got != stale || (!stale && err != nil) {
					t.Errorf("New = %v, want an error: %v", err, stale)
				}
			})
		}
	}
}

// TestFaultyJournal: with its columns and indexes changed a request could be applied twice,
// or a duplicate be taken for something else, so New refuses. What it names mends the
// journal as it is, with its entries.
func TestFaultyJournal(t *testing.T) {
	def := parse(t, "machine: m\ntable: {name: evolving}\ninitial: a\nstates: {a: }\ntransitions: {again: {from: a, to: a, key: required}}\n")
	for _, k := range databases() {
		drop := func(third string) string { return "DROP INDEX fsm_journal_" + third }
		entity, quoted := "machine, entity_id", map[bool]string{true: "`key`", false: `"key"`}[k.name == "mariadb"]
		if k.name == "mariadb" {
			drop = func(third string) string { return "DROP INDEX fsmgen_" + third + " ON fsm_journal" }
		}
		unique := func(name, columns string) string {
			return "CREATE UNIQUE INDEX " + name + " ON fsm_journal (" + columns + ")"
		}
		faults := map[string][]string{
			"no key":        {drop("key")},
			"no version":    {drop("version")},
			"with more":     {drop("key"), unique("more", entity+", "+quoted+", to_state")},
			"not unique":    {drop("key"), strings.Replace(unique("fsm_journal_key", entity+", "+quoted), "UNIQUE ", "", 1)},
			"topic":         {"ALTER TABLE fsm_journal DROP COLUMN topic"},
			"attempt":       {"ALTER TABLE fsm_journal DROP COLUMN attempt"},
			"of a function": {drop("version"), unique("more", entity+", version, lower(to_state)")},
		}
		switch k.name {
		case "sqlite":
			faults["of some rows"] = []string{drop("key"), unique("some", entity+", "+quoted) + " WHERE topic IS NULL"}
			faults["case"] = []string{drop("key"), unique("folds", entity+", "+quoted+" COLLATE NOCASE")}
		case "postgres":
			faults["at the end"] = []string{drop("key"), "ALTER TABLE fsm_journal ADD CONSTRAINT fsm_journal_key UNIQUE (machine, entity_id, " + quoted + ") DEFERRABLE"}
		case "mariadb":
			delete(faults, "of a function") // there are none
			faults["not unique"][1] = strings.ReplaceAll(faults["not unique"][1], "fsm_journal_key", "fsmgen_key")
			faults["of its beginning"] = []string{drop("key"), unique("fsmgen_key", entity+", "+quoted+"(5)")}
			faults["renamed"] = []string{"ALTER TABLE fsm_journal RENAME INDEX fsmgen_key TO uq_key, RENAME INDEX fsmgen_version TO uq_version"}
			faults["twice"] = []string{unique("a_first", entity+", "+quoted)}
		}
		for name, changes := range faults {
			t.Run(k.name+" "+name, func(t *testing.T) {
				t.Parallel()
				s := bind(t, k.name, k.open(t), def)
				s.create(t, s.m, engine.Row{"id": "1"})
				s.keyed(s.m, "before", engine.Applied)
				for _, text := range changes {
					_, err := s.db.ExecContext(t.Context(), text)
					check(t, err)
				}
				_, err := s.eng.Machine(t.Context(), def)
				if err == nil {
					t.Error("New took it")
				}
				for range 2 { // a fault each
					if err == nil {
						break
					}
					s.mend(err)
					_, err = s.eng.Machine(t.Context(), def)
				}
				check(t, err)
				m, err := s.eng.Machine(t.Context(), def)
				check(t, err)
				s.keyed(m, "before", engine.Replayed)
				s.keyed(m, "after", engine.Applied)
			})
		}
	}
}

// mend runs the first thing that an error says.
func (s *site) mend(err error) {
	s.t.Helper()
	_, text, ok := strings.Cut(err.Error(), ": run\n")
	if !ok {
		s.t.Fatalf("%v does not say what to run", err)
	}
	text, _, _ = strings.Cut(text, "\n")
	if _, err := s.db.ExecContext(s.t.Context(), text); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
}

// keyed fires the transition again.
func (s *site) keyed(m *engine.Machine, key string, want engine.Outcome) {
	s.t.Helper()
	if res, err := m.Fire(s.t.Context(), "again", "1", nil, engine.WithKey(key)); err != nil || res.Outcome != want {
		s.t.Errorf("under the key %s: %v %v, want %v", key, res.Outcome, err, want)
	}
}

// TestDeclaredKeyWithoutAnIndex: a table that can hold two rows of one declared key is
// refused, with the DDL after which it cannot.
func TestDeclaredKeyWithoutAnIndex(t *testing.T) {
	def := parse(t, `machine: m
table: {name: evolving}
fields: {shop: {type: string}, no: {type: int, column: Number}}
initial: a
states: {a: , b: }
unique: [[shop, no]]
transitions: {go: {from: a, to: b}, back: {from: b, to: a}}
`)
	for _, k := range databases() {
		type form struct {
			index string // INDEX and on
			sound bool
		}
		number := map[bool]string{true: `"Number"`, false: "Number"}[k.name == "postgres"]
		forms := map[string]form{
			"none":         {"", false},
			"the two":      {"UNIQUE INDEX u ON evolving (%n, shop)", true},
			"one of them":  {"UNIQUE INDEX u ON evolving (%n)", true},
			"not unique":   {"INDEX u ON evolving (shop, %n)", false},
			"with another": {"UNIQUE INDEX u ON evolving (shop, %n, status)", false},
			"of another":   {"UNIQUE INDEX u ON evolving (status)", false},
		}
		switch k.name {
		case "mariadb":
			forms["of its beginning"] = form{"UNIQUE INDEX u ON evolving (shop(3), %n)", false}
		case "postgres":
			forms["and more"] = form{"UNIQUE INDEX u ON evolving (shop, %n) INCLUDE (status)", true}
			forms["at the end"] = form{"", false}
			fallthrough
		default:
			forms["of some rows"] = form{"UNIQUE INDEX u ON evolving (shop, %n) WHERE status = 'a'", false}
			forms["of a function"] = form{"UNIQUE INDEX u ON evolving (lower(shop), %n)", false}
		}
		if k.name == "sqlite" {
			forms["case-blind"] = form{"UNIQUE INDEX u ON evolving (shop COLLATE NOCASE, %n)", true}
		}
		for name, f := range forms {
			t.Run(k.name+" "+name, func(t *testing.T) {
				t.Parallel()
				p := k.open(t)
				store := p.open(t, def)
				text := map[string]string{"sqlite": sqlite.DDL(def), "postgres": postgres.DDL(def), "mariadb": mysql.DDL(def)}[k.name]
				text, _, _ = strings.Cut(text, ";\n")
				drop := "DROP TABLE evolving"
				head, _, _ := strings.Cut(text, "UNIQUE (")
				texts := []string{drop, strings.TrimSuffix(strings.TrimSpace(head), ",") + ")"}
				if f.index != "" {
					texts = append(texts, "CREATE "+strings.ReplaceAll(f.index, "%n", number))
				}
				if name == "at the end" {
					texts = append(texts, "ALTER TABLE evolving ADD UNIQUE (shop, "+number+") DEFERRABLE")
				}
				for _, text := range texts {
					if _, err := p.db.ExecContext(t.Context(), text); err != nil {
						t.Fatalf("%s: %v", text, err)
					}
				}
				eng, err := engine.New(store.Store())
				check(t, err)
				m, err := eng.Machine(t.Context(), def)
				if f.sound != (err == nil) {
					t.Fatalf("New = %v, want an error: %v", err, !f.sound)
				}
				if err != nil {
					if !strings.Contains(err.Error(), "table evolving") || !strings.Contains(err.Error(), "(shop, Number)") {
						t.Errorf("%v names no table or key", err)
					}
					(&site{t: t, db: p.db}).mend(err)
					m, err = eng.Machine(t.Context(), def)
					check(t, err)
				}
				_, err = m.Create(t.Context(), engine.Row{"id": "1", "shop": "s", "no": 7})
				check(t, err)
				res, err := m.Create(t.Context(), engine.Row{"id": "2", "shop": "s", "no": 7})
				check(t, err)
				if res.ID != "1" || res.Outcome != engine.AlreadyReached {
					t.Errorf("a second row of the key: %+v", res)
				}
			})
		}
	}
}
