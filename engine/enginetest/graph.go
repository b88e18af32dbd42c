package enginetest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/looplab/fsm"

	"github.com/fsmgen/fsmgen/definitions"
)

// edge is one way from a state to another.
type edge struct{ transition, from, to string }

func (e edge) String() string { return fmt.Sprintf("%s: %s → %s", e.transition, e.from, e.to) }

// name is the edge in the name of a subtest.
func (e edge) name() string { return e.transition + "/" + e.from + "-" + e.to }

// event is the edge as an event of looplab's: there an event has one target per source.
func (e edge) event() string { return e.transition + "→" + e.to }

// graph is what the definition says is possible, as looplab/fsm understands it.
type graph struct {
	def   *definitions.Machine
	edges []edge // in the order of transitions and states
	leave map[string][]edge
	fsm.Events
}

// newGraph reads the edges off the definition, without the engine's help.
func newGraph(def *definitions.Machine) *graph {
	g := &graph{def: def, leave: map[string][]edge{}}
	for i := range def.Transitions {
		t := &def.Transitions[i]
		seen, decided := map[edge]bool{}, map[string]bool{}
		for _, move := range t.Moves {
			for _, from := range move.From {
				if decided[from] { // a move without condition goes before this one
					continue
				}
				decided[from] = move.When == nil
				for _, target := range move.Targets {
					seen[edge{t.Name, from, target.State}] = true
				}
			}
		}
		for e := range seen {
			g.edges = append(g.edges, e)
		}
	}
	slices.SortFunc(g.edges, g.compare)
	for _, e := range g.edges {
		g.leave[e.from] = append(g.leave[e.from], e)
		g.Events = append(g.Events, fsm.EventDesc{Name: e.event(), Src: []string{e.from}, Dst: e.to})
	}
	return g
}

// compare orders edges as the definition orders transitions and states.
func (g *graph) compare(a, b edge) int {
	transition := func(name string) int {
		return slices.IndexFunc(g.def.Transitions, func(t definitions.Transition) bool { return t.Name == name })
	}
	return cmp.Or(
		cmp.Compare(transition(a.transition), transition(b.transition)),
		cmp.Compare(g.state(a.from), g.state(b.from)),
		cmp.Compare(g.state(a.to), g.state(b.to)),
	)
}

func (g *graph) state(name string) int {
	return slices.IndexFunc(g.def.States, func(s definitions.State) bool { return s.Name == name })
}

// at is a machine of looplab's that stands in a state.
func (g *graph) at(state string) *fsm.FSM { return fsm.NewFSM(state, g.Events, nil) }

// targets are the states to which looplab lets a transition lead.
func (g *graph) targets(state, transition string) []string {
	var out []string
	for _, event := range g.at(state).AvailableTransitions() {
		if to, ok := strings.CutPrefix(event, transition+"→"); ok {
			out = append(out, to)
		}
	}
	slices.Sort(out)
	return out
}

// follow has looplab take an edge, and says what it thinks of it.
func (g *graph) follow(ctx context.Context, f *fsm.FSM, e edge) error {
	if f.Current() != e.from {
		return fmt.Errorf("looplab/fsm stands in %s, the row was in %s", f.Current(), e.from)
	}
	err := f.Event(ctx, e.event())
	if _, loop := err.(fsm.NoTransitionError); err != nil && !loop { //nolint:errorlint // looplab returns it bare
		return fmt.Errorf("looplab/fsm does not allow %s: %w", e, err)
	}
	return nil
}

// checkGraph holds the generated State.Can against looplab.
func (w *walker) checkGraph() (faults []string) {
	for _, s := range w.def.States {
		for i := range w.def.Transitions {
			t := w.def.Transitions[i].Name
			possible := len(w.graph.targets(s.Name, t)) > 0
			if w.c.Can != nil && w.c.Can(s.Name, t) != possible {
				faults = append(faults, fmt.Sprintf("the generated Can says %v of %s in state %s, looplab/fsm says %v", !possible, t, s.Name, possible))
			}
		}
	}
	return faults
}
