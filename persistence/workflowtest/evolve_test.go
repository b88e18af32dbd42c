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

// TestJournalWithoutItsIndexes: without them a request could be applied twice, so New
// refuses.
func TestJournalWithoutItsIndexes(t *testing.T) {
	def := parse(t, "machine: m\ntable: {name: evolving}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b}}\n")
	for _, k := range databases() {
		for _, index := range []string{"key", "version"} {
			t.Run(k.name+" "+index, func(t *testing.T) {
				t.Parallel()
				s := bind(t, k.name, k.open(t), def)
				drop := "DROP INDEX fsm_journal_" + index
				if k.name == "mariadb" {
					drop = "DROP INDEX fsmgen_" + index + " ON fsm_journal"
				}
				_, err := s.db.ExecContext(t.Context(), drop)
				check(t, err)
				if _, err := s.eng.Machine(t.Context(), def); err == nil || !strings.Contains(err.Error(), "(machine, entity_id, "+index+")") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}
