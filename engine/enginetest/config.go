// Package enginetest walks a machine on a store and holds every answer against what the
// definition says. The tests that `fsmgen generate --tests` writes are made of it.
//
// [Walk] covers four things. The matrix tries every transition in every state. The paths
// are followed from creation to their end. The races repeat every edge twice, at once,
// with a stale version, after a rollback, and after an acknowledgement that got lost. And
// looplab/fsm, which knows nothing of this engine, is asked at every step what the graph
// allows.
//
// Rows and arguments that meet the conditions of an edge are searched for. An edge for
// which none are found is not passed over in silence: it is a skipped subtest, and it is
// missing from the coverage that `go test -v` prints. [Config] is where to help.
package enginetest

import (
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// Config says what is walked, and helps where conditions are hard to meet.
type Config struct {
	// Definition is the machine; it alone is required.
	Definition *definitions.Machine
	// Can is the generated State.Can, which is held against the graph.
	Can func(state, transition string) bool
	// Code is the Go code that the definition names. Without it every guard says yes,
	// and effects and after hooks do nothing.
	Code engine.Code
	// Row gives the fields of a row to create in an initial state. Fields that it does
	// not give, and all of them where it returns nil, are chosen by the walker.
	Row func(initial string) engine.Row
	// Args gives the arguments with which a transition leads from row to the state
	// called to. Where it is missing or returns nil the walker searches.
	Args func(transition, to string, row engine.Row) engine.Args
	// Complete makes an edge that could not be walked a failure.
	Complete bool
}

// Walk walks the machine on a store whose tables are there. Its rows have ids that no
// other run uses, and stay.
func Walk(t *testing.T, store engine.Store, c Config) {
	t.Helper()
	w, err := newWalker(store, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("graph", func(t *testing.T) { report(t, w.checkGraph()) })
	t.Run("matrix", func(t *testing.T) { report(t, w.matrix(t.Context())) })
	t.Run("paths", func(t *testing.T) {
		faults, note := w.paths(t.Context())
		report(t, faults)
		t.Log(note)
	})
	for _, e := range w.graph.edges {
		t.Run("edge/"+e.name(), func(t *testing.T) { w.edge(t, e) })
	}
	t.Log(w.coverage())
	if walked, all := len(w.search.found), len(w.graph.edges); all > 0 && (walked+w.shared == 0 || c.Complete && walked < all) {
		t.Errorf("%d of %d edges could be walked: give Row and Args of the enginetest.Config", walked, all)
	}
}

// report makes faults of a part of the walk failures of the test.
func report(t *testing.T, faults []string) {
	t.Helper()
	for _, f := range faults {
		t.Error(f)
	}
}

// edge runs the races of one edge.
func (w *walker) edge(t *testing.T, e edge) {
	t.Helper()
	p, ok := w.search.found[e]
	if !ok {
		t.Skipf("not walked: no row and arguments were found with which %s; give Row and Args of the enginetest.Config", e)
	}
	for _, r := range races {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(t.Context(), w, p); err != nil {
				t.Error(err)
			}
		})
	}
}
