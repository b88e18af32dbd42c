package definitions

import "slices"

// Reachable returns the states a row can get to from those given, by any number
// of moves, themselves included. Moves of the transition without are left out; it
// may be nil.
func (m *Machine) Reachable(from []string, without *Transition) map[string]bool {
	next := m.edges(without)
	seen := make(map[string]bool, len(m.States))
	queue := slices.Clone(from)
	for _, s := range from {
		seen[s] = true
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		for _, move := range next[state] {
			for _, t := range move.Targets {
				if !seen[t.State] {
					seen[t.State] = true
					queue = append(queue, t.State)
				}
			}
		}
	}
	return seen
}

// edges returns the moves out of every state.
func (m *Machine) edges(without *Transition) map[string][]*Move {
	next := make(map[string][]*Move, len(m.States))
	for i := range m.Transitions {
		t := &m.Transitions[i]
		if without != nil && t.Name == without.Name {
			continue
		}
		for j := range t.Moves {
			for _, s := range t.Moves[j].From {
				next[s] = append(next[s], &t.Moves[j])
			}
		}
	}
	return next
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
	for _, move := range t.Moves {
		starts = append(starts, move.From...)
		for _, target := range move.Targets {
			own[target.State] = true
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
	return slices.ContainsFunc(t.Moves, func(m Move) bool {
		return slices.ContainsFunc(m.Targets, func(t Target) bool { return t.State == state })
	})
}
