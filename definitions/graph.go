package definitions

import (
	"iter"
	"slices"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Edge is one way on which a transition can take a row.
type Edge struct {
	From   string
	Move   *Move
	Target *Target
}

// Edges returns the ways on which the transition can take a row, in the order of its
// moves. What is never tried is none of them: a move behind one without condition from
// the same state, as "*" often is, and a branch behind one without condition.
func (t *Transition) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		decided := map[string]bool{} // states from which no later move is tried
		for i := range t.Moves {
			move := &t.Moves[i]
			for _, from := range move.From {
				if decided[from] {
					continue
				}
				for j := range move.Targets {
					if !yield(Edge{from, move, &move.Targets[j]}) {
						return
					}
					if known(move.Targets[j].When) == always {
						break
					}
				}
				if i < len(t.Moves)-1 && known(move.When) == always {
					decided[from] = true
				}
			}
		}
	}
}

// Targets returns the states to which the transition can lead, per state it leaves, each
// once and in the order in which they are tried.
func (t *Transition) Targets() map[string][]string {
	targets := map[string][]string{}
	seen := map[[2]string]bool{}
	for e := range t.Edges() {
		if way := [2]string{e.From, e.Target.State}; !seen[way] {
			seen[way] = true
			targets[e.From] = append(targets[e.From], e.Target.State)
		}
	}
	return targets
}

// condition says what is known of a condition without a row.
type condition uint8

const (
	open condition = iota
	always
	never
)

func known(e *expr.Expr) condition {
	switch {
	case e == nil:
		return always
	case e.Root == nil || e.Root.Op != expr.OpLit:
		return open
	case e.Root.Value == true:
		return always
	}
	return never
}

// Reachable returns the states a row can get to from those given, by any number
// of moves, themselves included. Moves of the transition without are left out; it
// may be nil.
func (m *Machine) Reachable(from []string, without *Transition) map[string]bool {
	next := make(map[string][]string, len(m.States))
	for i := range m.Transitions {
		t := &m.Transitions[i]
		if without != nil && t.Name == without.Name {
			continue
		}
		for e := range t.Edges() {
			next[e.From] = append(next[e.From], e.Target.State)
		}
	}
	seen := make(map[string]bool, len(m.States))
	queue := slices.Clone(from)
	for _, s := range from {
		seen[s] = true
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for _, target := range next[state] {
			if !seen[target] {
				seen[target] = true
				queue = append(queue, target)
			}
		}
	}
	return seen
}

// PassedBy returns the states that prove by themselves that a row has taken t:
// they can be reached neither from an initial state nor from a source of t unless
// t is used on the way. A repeat of t that finds the row in one of them comes
// late.
//
// Sources and targets of t are not among them: a row in a source can still take
// t, and a row in a target has reached it rather than passed it.
func (m *Machine) PassedBy(t *Transition) map[string]bool {
	starts := slices.Clone(m.Initial)
	own := map[string]bool{}
	for from, targets := range t.Targets() {
		starts = append(starts, from)
		for _, target := range targets {
			own[target] = true
		}
	}
	otherwise := m.Reachable(starts, t)
	passed := map[string]bool{}
	for i := range m.States {
		if name := m.States[i].Name; !otherwise[name] && !own[name] {
			passed[name] = true
		}
	}
	return passed
}

// Allowed returns the names of the transitions that leave a state, in life-cycle
// order.
func (m *Machine) Allowed(state string) []string {
	var names []string
	for i := range m.Transitions {
		if m.Transitions[i].Leaves(state) {
			names = append(names, m.Transitions[i].Name)
		}
	}
	return names
}

// Leaves reports whether the state is a source of the transition.
func (t *Transition) Leaves(state string) bool {
	return slices.ContainsFunc(t.Moves, func(m Move) bool { return slices.Contains(m.From, state) })
}

// Enters reports whether the state is a target of the transition.
func (t *Transition) Enters(state string) bool {
	for e := range t.Edges() {
		if e.Target.State == state {
			return true
		}
	}
	return false
}

// Rejectable reports whether a call with legal args can be rejected in a state that the
// transition leaves: by a condition, by an assignment that computes, or by one that copies
// a decimal into a field of fewer digits. scales are those of the machine's decimal fields
// by name.
func (t *Transition) Rejectable(scales map[string]int) bool {
	args := map[string]int{}
	for i := range t.Args {
		if t.Args[i].Type == expr.Decimal {
			args[t.Args[i].Name] = t.Args[i].Scale
		}
	}
	rejectable := func(a Assignment) bool {
		if !expr.IsSimple(a.Value) {
			return true
		}
		source := scales
		switch a.Value.Root.Op {
		case expr.OpArg:
			source = args
		case expr.OpField:
		default:
			return false
		}
		return digits(source[a.Value.Root.Name]) > digits(scales[a.Field])
	}
	if t.When != nil || slices.ContainsFunc(t.Set, rejectable) {
		return true
	}
	return slices.ContainsFunc(t.Moves, func(m Move) bool {
		return m.When != nil || slices.ContainsFunc(m.Set, rejectable) ||
			slices.ContainsFunc(m.Targets, func(target Target) bool { return target.When != nil })
	})
}

// maxDigits is what a decimal has after the point where nothing is said.
const maxDigits = 6

// digits are those that a decimal of a scale may have.
func digits(scale int) int {
	if scale < 0 { // not said
		return maxDigits
	}
	return scale
}
