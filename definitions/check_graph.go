package definitions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// finish moves what was read into the machine, in its own order.
func (l *loader) finish() {
	for _, d := range l.drafts {
		l.m.Transitions = append(l.m.Transitions, d.finished())
	}
	first := func(t Transition) (source, target int) {
		if len(t.Moves) == 0 || len(t.Moves[0].From) == 0 || len(t.Moves[0].Targets) == 0 {
			return 0, 0
		}
		return l.stateIndex[t.Moves[0].From[0]], l.stateIndex[t.Moves[0].Targets[0].State]
	}
	slices.SortStableFunc(l.m.Transitions, func(a, b Transition) int {
		sa, ta := first(a)
		sb, tb := first(b)
		if sa != sb {
			return sa - sb
		}
		if ta != tb {
			return ta - tb
		}
		return strings.Compare(a.Name, b.Name)
	})
}

func (d *draft) finished() Transition {
	t := d.Transition
	t.Moves = nil
	for _, m := range d.moves {
		t.Moves = append(t.Moves, m.Move)
	}
	return t
}

// checkGraph looks at the machine as a whole.
func (l *loader) checkGraph() {
	if len(l.m.States) == 0 || l.edges > maxEdges {
		return
	}
	l.checkFinal()
	if !l.lostTarget && !l.lostSource {
		l.checkReachable()
	}
	l.checkMixedEntry()
}

// checkFinal holds that exactly the final states are left by nothing.
func (l *loader) checkFinal() {
	left := make([]bool, len(l.m.States))
	for _, d := range l.drafts {
		for _, m := range d.moves {
			var final []string
			for _, name := range m.From {
				i := l.stateIndex[name]
				left[i] = true
				if l.m.States[i].Final {
					final = append(final, name)
				}
			}
			if len(final) > 0 {
				l.reportFinalLeft(m, final)
			}
		}
	}
	for i, s := range l.m.States {
		if !s.Final && !left[i] && !l.lostSource && !l.lostFinal[s.Name] {
			l.report(l.stateAt[s.Name], finding{rule: ruleDeadEnd, name: s.Name}, "nothing leaves %q; say {final: true} if it is an end", s.Name)
		}
	}
}

// fewNames is how many names a finding lists.
const fewNames = 8

// reportFinalLeft reports the final states a move leaves, all at once: in a group they may
// be many, and so may the moves.
func (l *loader) reportFinalLeft(m *moveDraft, final []string) {
	what := finding{rule: ruleFinalLeft, name: final[0]}
	if len(final) == 1 {
		l.report(m.at, what, "%q is final (line %d), so nothing can leave it", final[0], l.stateAt[final[0]].line)
		return
	}
	var b strings.Builder
	for i, name := range final[:min(len(final), fewNames)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q (line %d)", name, l.stateAt[name].line)
	}
	more := ""
	if n := len(final) - fewNames; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	l.report(m.at, what, "%s%s are final, so nothing can leave them", b.String(), more)
}

func (l *loader) checkReachable() {
	seen := l.m.Reachable(l.m.Initial, nil)
	for _, s := range l.m.States {
		if !seen[s.Name] {
			l.report(l.stateAt[s.Name], finding{rule: ruleUnreachableState, name: s.Name}, "%q can be reached from no initial state", s.Name)
		}
	}
}

// checkMixedEntry warns where a repeat of a call with consequences would be told
// that all is done, although another transition led to the state.
func (l *loader) checkMixedEntry() {
	entering := make([]int, len(l.m.States)) // transitions that enter a state
	for _, d := range l.drafts {
		for s := range d.entered() {
			entering[l.stateIndex[s]]++
		}
	}
	for _, d := range l.drafts {
		if d.DuplicatesSaid || d.Key.Declared() || d.Emit == "" && d.Effect == "" && len(d.Identity) == 0 {
			continue
		}
		var shared []string
		for s := range d.entered() {
			if entering[l.stateIndex[s]] > 1 {
				shared = append(shared, s)
			}
		}
		if len(shared) == 0 {
			continue
		}
		l.inStateOrder(shared)
		l.report(d.at, finding{rule: ruleMixedEntry, name: d.Name},
			"other transitions enter %s too, so %q may be told AlreadyReached although it never ran; say duplicates: accept, own or refuse", strings.Join(shared, ", "), d.Name)
	}
}

// entered returns the states the transition brings a row to from another one.
func (d *draft) entered() map[string]bool {
	t := d.finished()
	states := map[string]bool{}
	for e := range t.Edges() {
		if e.From != e.Target.State {
			states[e.Target.State] = true
		}
	}
	return states
}

// checkTimeouts holds that what a timeout fires can be fired by nobody in
// particular.
func (l *loader) checkTimeouts(root *object) {
	states := root.get("states")
	if states == nil || states.kind != mapping {
		return
	}
	drafts := map[string]*draft{}
	for _, d := range l.drafts {
		drafts[d.Name] = d
	}
	fired := map[*draft]*firing{}
	for i, s := range l.m.States {
		if s.Timeout == nil || s.Timeout.Fire == "" {
			continue
		}
		timeout := states.pairs[i].value.child("timeout")
		fire := timeout.child("fire")
		d, ok := drafts[s.Timeout.Fire]
		if !ok {
			l.unknown(fire, ruleUnknownTransition, "transition", s.Timeout.Fire, each(l.drafts, func(d **draft) string { return (*d).Name }))
			continue
		}
		if fired[d] == nil {
			fired[d] = newFiring(d)
		}
		l.checkTimeout(s, fired[d], fire)
		l.report(timeout.at, finding{rule: ruleTimeoutNotFired, name: s.Name}, "the timeout of %q is stored and checked, but nothing fires it yet", s.Name)
	}
}

// firing is what timeouts ask of a transition.
type firing struct {
	*draft
	leaves    map[string]bool
	needsArgs bool
}

func newFiring(d *draft) *firing {
	f := &firing{draft: d, leaves: map[string]bool{}}
	for _, m := range d.moves {
		for _, s := range m.From {
			f.leaves[s] = true
		}
	}
	f.needsArgs = slices.ContainsFunc(d.Args, func(a Arg) bool { return !a.Optional })
	return f
}

func (l *loader) checkTimeout(s State, f *firing, fire *node) {
	fault := ""
	switch {
	case f.object != nil && !f.leaves[s.Name] && !l.lostSource:
		fault = "does not leave it"
	case f.needsArgs:
		fault = "needs args, which a timeout does not have"
	case f.Key.Required:
		fault = "needs a caller's key, which a timeout does not have"
	default:
		return
	}
	l.report(fire.at, finding{rule: ruleTimeoutFire, name: f.Name}, "the timeout of %q cannot fire %q: it %s", s.Name, f.Name, fault)
}

// child returns the value of a key, or nil.
func (n *node) child(key string) *node {
	for _, p := range n.pairs {
		if p.key.value == key {
			return p.value
		}
	}
	return nil
}

// reads reports whether an expression reads the row.
func reads(n *expr.Node) bool {
	return n.Op == expr.OpField || slices.ContainsFunc(n.Args, reads)
}
