package definitions

import (
	"iter"
	"slices"
	"strings"
)

// readMoves reads the moves of a transition, in the short form or the long one.
func (l *loader) readMoves(d *draft) {
	o := d.object
	if !o.has("moves") {
		d.moves = []*moveDraft{l.readMove(o, d)}
		return
	}
	for _, key := range []string{"from", "to"} {
		if o.has(key) {
			l.report(o.at(key), finding{rule: ruleMovesAndFrom, name: key}, "%s stands beside moves; write it in each move", key)
		}
	}
	n := o.get("moves")
	if n.kind != sequence {
		l.wrongType(n, "moves is a list of {from, to, when, set}")
		l.lostTarget, l.lostSource = true, true
		return
	}
	if len(n.items) == 0 {
		l.report(n.at, finding{rule: ruleEmptyList}, "moves names no move")
	}
	for _, item := range n.items {
		move := l.object(item, "a move", "from", "to", "when", "set")
		if move == nil {
			l.lostTarget, l.lostSource = true, true
			continue
		}
		m := l.readMove(move, d)
		m.When = l.readWhen(move, d)
		m.Move.Set, m.set = l.readSet(move, d)
		d.moves = append(d.moves, m)
	}
	slices.SortStableFunc(d.moves, func(a, b *moveDraft) int { return boolInt(a.Any) - boolInt(b.Any) })
}

// readMove reads sources and targets; a condition and a `set` beside them belong
// to the transition in the short form.
func (l *loader) readMove(o *object, d *draft) *moveDraft {
	m := &moveDraft{at: o.node.at}
	if n := l.require(o, "to"); n != nil {
		l.readTargets(m, n, d)
	}
	if len(m.Targets) == 0 {
		l.lostTarget = true
	}
	if n := l.require(o, "from"); n != nil {
		m.at = n.at
		l.readSources(m, n)
	} else {
		l.lostSource = true
	}
	return m
}

func (l *loader) readTargets(m *moveDraft, n *node, d *draft) {
	if n.kind == scalar {
		l.addTarget(m, n, Target{})
		return
	}
	if n.kind != sequence {
		l.wrongType(n, "to is a state, or a list of {state, when}")
		return
	}
	if len(n.items) == 0 {
		l.report(n.at, finding{rule: ruleEmptyList}, "to names no state")
	}
	for _, item := range n.items {
		branch := l.object(item, "a branch", "state", "when")
		if branch == nil {
			l.lostTarget = true
			continue
		}
		target := Target{}
		if when := branch.get("when"); when != nil {
			target.When = l.condition(when, d)
		}
		if state := l.require(branch, "state"); state != nil {
			l.addTarget(m, state, target)
		}
	}
}

func (l *loader) addTarget(m *moveDraft, n *node, target Target) {
	name, ok := l.stateRef(n, "to")
	if !ok {
		l.lostTarget = true
		return
	}
	target.State = name
	m.Targets = append(m.Targets, target)
	m.targetAt = append(m.targetAt, n.at)
}

// readSources resolves states, groups and "*".
func (l *loader) readSources(m *moveDraft, n *node) {
	entries := l.entries(n, "from")
	if len(entries) == 1 && entries[0].value == "*" {
		m.Any = true
		m.From = l.wildcard(m)
		l.checkSources(m, n, 0)
		return
	}
	lost, named := len(entries) == 0, 0
	for _, item := range entries {
		states, ok := l.sources(item)
		lost = lost || !ok
		if named += len(states); len(entries) == 1 {
			m.From = states // a group is shared by all moves that name it
		} else if l.edges+named <= maxEdges {
			m.From = append(m.From, states...)
		}
	}
	if len(entries) > 1 {
		l.inStateOrder(m.From)
		m.From = slices.Compact(m.From)
	}
	if lost {
		l.lostSource = true
		m.unknown = true
	}
	l.checkSources(m, n, named)
}

func (l *loader) sources(n *node) ([]string, bool) {
	name := n.value
	if name == "*" {
		l.report(n.at, finding{rule: ruleBadValue, name: name}, `"*" already covers every state that is not final; it stands alone`)
		return nil, false
	}
	if group, ok := strings.CutPrefix(name, "@"); ok {
		states, known := l.groupStates[group]
		if !known && l.lostGroups {
			return nil, false
		}
		if !known {
			near := l.unknown(n, ruleUnknownGroup, "group", name, l.groupNames())
			return l.groupStates[strings.TrimPrefix(near, "@")], near != ""
		}
		return states, len(states) > 0
	}
	_, known := l.stateIndex[name]
	if states, group := l.groupStates[name]; group && !known {
		l.report(n.at, finding{ruleUnknownState, name, "@" + name}, "unknown state %q", name)
		return states, len(states) > 0
	}
	state, ok := l.stateRef(n, "from")
	if !ok {
		return nil, false
	}
	return []string{state}, true
}

func (l *loader) groupNames() iter.Seq[string] {
	return each(l.m.Groups, func(g *Group) string { return "@" + g.Name })
}

// wildcard expands "*": every state that is not final, but for the targets. Moves
// with the same targets share one list.
func (l *loader) wildcard(m *moveDraft) []string {
	var targets []string
	for _, t := range m.Targets {
		targets = append(targets, t.State)
	}
	slices.Sort(targets)
	key := strings.Join(targets, "\x00")
	if states, ok := l.wildcards[key]; ok {
		return states
	}
	if l.edges > maxEdges {
		return nil
	}
	states := slices.DeleteFunc(slices.Clone(l.nonFinal), func(s string) bool {
		_, target := slices.BinarySearch(targets, s)
		return target
	})
	l.wildcards[key] = states
	return states
}

// checkSources holds that a move leaves something, and that the sum of all moves, with
// the sources as they were named, stays within what can be checked at once.
func (l *loader) checkSources(m *moveDraft, n *node, named int) {
	before := l.edges
	l.edges += max(named, len(m.From)*max(len(m.Targets), 1))
	if l.edges > maxEdges {
		if before <= maxEdges {
			l.report(n.at, finding{rule: ruleTooManyEdges}, "the moves of this machine have more than %d sources, groups and \"*\" expanded", maxEdges)
		}
		m.From, l.lostSource = nil, true
		return
	}
	if len(m.From) == 0 && !m.unknown {
		l.report(n.at, finding{rule: ruleNoSource}, "this move leaves no state: every state is final or its own target")
	}
}
