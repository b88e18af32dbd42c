package workflowtest

import (
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
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
