package definitions_test

import (
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

// The journal stands in the business table's schema, unless the definition names its
// own; the canonical form keeps the difference.
func TestJournalTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ table, journal, want string }{
		{"orders", "true", "fsm_journal"},
		{"sales.orders", "true", "sales.fsm_journal"},
		{"sales.orders", "{table: fsm_journal}", "fsm_journal"},
		{"sales.orders", "{table: log.orders}", "log.orders"},
		{"orders", "{table: sales.fsm_journal}", "sales.fsm_journal"},
		{"sales.orders", "false", ""},
	} {
		text := "machine: m\ntable: {name: " + c.table + "}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b}}\njournal: " + c.journal + "\n"
		m, err := definitions.Parse("m.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := definitions.Parse("m.yaml", m.Canonical())
		if err != nil {
			t.Fatal(err)
		}
		if m.Journal.Table != c.want || again.Journal != m.Journal {
			t.Errorf("%s, journal: %s: %q, through the canonical form %+v; want %q", c.table, c.journal, m.Journal.Table, again.Journal, c.want)
		}
	}
}
