package workflowtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

// lane is one of several machines over one table.
func lane(t *testing.T, n int, more string) *definitions.Machine {
	t.Helper()
	return parse(t, fmt.Sprintf("machine: m%d\ntable: {name: lanes, status: s%d}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b}}\n%s", n, n, more))
}

// TestWhoFailsDoesNotJoin: a machine that could not be bound, or migrated, neither takes
// a place at its table nor says which the journal is.
func TestWhoFailsDoesNotJoin(t *testing.T) {
	for _, k := range databases() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			var lanes []*definitions.Machine
			for n := range 4 {
				lanes = append(lanes, lane(t, n, ""))
			}
			p := k.open(t)
			p.open(t, lanes...)
			store := p.open(t).Store()
			eng, err := engine.New(store)
			check(t, err)
			for n := range 5 {
				if _, err := eng.Machine(t.Context(), lane(t, 10+n, "journal: {table: other_log}\n")); err == nil || !strings.Contains(err.Error(), "no column") {
					t.Errorf("New = %v, want it to miss its column", err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if err := store.(*persistence.Store).Migrate(ctx, lane(t, 20+n, "journal: {table: other_log}\n")); err == nil {
					t.Error("Migrate with a context that has ended")
				}
			}
			for _, def := range lanes {
				_, err := eng.Machine(t.Context(), def)
				check(t, err)
			}
			if _, err := eng.Machine(t.Context(), lane(t, 3, "journal: {table: other_log}\n")); err == nil {
				t.Error("New with a journal of its own")
			}
			if err := store.(*persistence.Store).Migrate(t.Context(), lane(t, 4, "")); err == nil || !strings.Contains(err.Error(), "at most 4") {
				t.Errorf("Migrate of a fifth = %v, want it refused", err)
			}
		})
	}
}
