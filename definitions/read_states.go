package definitions

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

func (l *loader) readStates(root *object) {
	l.stateAt, l.stateIndex, l.lostFinal = map[string]pos{}, map[string]int{}, map[string]bool{}
	n := l.require(root, "states")
	if n == nil {
		return
	}
	if n.kind != mapping {
		l.wrongType(n, "states is a mapping of names, one a line, as in `paid:`")
		return
	}
	if len(n.pairs) == 0 {
		l.report(n.at, finding{rule: ruleEmptyList}, "states names no state")
	}
	names := newNameSet("state", GoSuffix)
	values := newValueSet(l)
	for _, p := range n.pairs {
		l.checkStateName(p.key, "a state")
		names.add(l, p.key.value, p.key.at)
		s := l.readState(p, values)
		l.stateAt[s.Name], l.stateIndex[s.Name] = p.key.at, len(l.m.States)
		l.m.States = append(l.m.States, s)
		if !s.Final {
			l.nonFinal = append(l.nonFinal, s.Name)
		}
	}
	values.check()
}

func (l *loader) readState(p pair, values *valueSet) State {
	s := State{Name: p.key.value}
	values.addName(p.key)
	if p.value.isNull() {
		s.Value = l.stateValue(nil, p.key, values)
		return s
	}
	o := l.object(p.value, "a state", "doc", "final", "value", "aliases", "timeout")
	if o == nil {
		l.lostFinal[s.Name] = true
		return s
	}
	s.Doc = l.prose(o)
	s.Final, l.lostFinal[s.Name] = l.flag(o, "final"), o.lost("final")
	s.Value = l.stateValue(o.get("value"), p.key, values)
	if n := o.get("aliases"); n != nil {
		for _, item := range l.list(n, "aliases") {
			if value, ok := l.columnValue(item, "an alias"); ok {
				values.add(p.key.value, item, "alias")
				s.Aliases = append(s.Aliases, value)
			}
		}
	}
	if n := o.get("timeout"); n != nil {
		s.Timeout = l.readTimeout(n)
	}
	return s
}

// stateValue returns what rows hold for a state: its name, unless it says
// otherwise.
func (l *loader) stateValue(n, name *node, values *valueSet) any {
	if n != nil {
		value, ok := l.columnValue(n, "a value")
		if ok {
			values.add(name.value, n, "value")
		}
		return value
	}
	if l.m.Table.Status.Type == expr.Int {
		l.report(name.at, finding{rule: ruleMissingValue, name: name.value}, "the status column is an int, so %q needs a number: {value: 1}", name.value)
		return nil
	}
	return name.value
}

// columnValue reads a value of the status column.
func (l *loader) columnValue(n *node, what string) (any, bool) {
	text, ok := l.text(n, what)
	if !ok || !l.checkStored(n, text, what) {
		return nil, false
	}
	if l.m.Table.Status.Type != expr.Int {
		return text, true
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != text {
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "the status column is an int, and %q is not a whole number in plain digits", text)
		return nil, false
	}
	return number, true
}

const maxTimeout = 100 * 365 * 24 * time.Hour

func (l *loader) readTimeout(n *node) *Timeout {
	o := l.object(n, "a timeout", "after", "fire")
	if o == nil {
		return nil
	}
	t := &Timeout{}
	if after := l.require(o, "after"); after != nil {
		if text, ok := l.text(after, "after"); ok {
			t.After = l.readDuration(after, text)
		}
	}
	if fire := l.require(o, "fire"); fire != nil {
		t.Fire, _ = l.text(fire, "fire")
	}
	return t
}

func (l *loader) readDuration(n *node, text string) time.Duration {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "after is a duration as in 90s, 30m or 36h, not %q", text)
	case d <= 0 || d > maxTimeout || d%time.Microsecond != 0:
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "after is more than zero, at most 100 years, and whole microseconds, not %q", text)
	default:
		return d
	}
	return 0
}

// stateRef resolves a reference to a state. For a misspelt one it goes on with
// the nearest, so that one mistake is not also several findings about the graph.
func (l *loader) stateRef(n *node, what string) (string, bool) {
	text, ok := l.text(n, what)
	if !ok {
		return "", false
	}
	if _, known := l.stateIndex[text]; known {
		return text, true
	}
	if len(l.m.States) == 0 {
		return "", false // that there are no states was reported
	}
	near := l.unknown(n, ruleUnknownState, "state", text, l.stateNames())
	return near, near != ""
}

// unknown reports a name that is declared nowhere, and returns the nearest that is.
func (l *loader) unknown(n *node, rule, what, name string, known iter.Seq[string]) (near string) {
	near = l.nearest(name, known)
	if odd := oddCharacter(name); odd != "" {
		l.report(n.at, finding{rule, name, near}, "unknown %s %q, which holds %s", what, name, odd)
	} else {
		l.report(n.at, finding{rule, name, near}, "unknown %s %q", what, name)
	}
	return near
}

func (l *loader) stateNames() iter.Seq[string] {
	return each(l.m.States, func(s *State) string { return s.Name })
}

// each returns the names of a list without making another for every question.
func each[T any](list []T, name func(*T) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range list {
			if !yield(name(&list[i])) {
				return
			}
		}
	}
}

func (l *loader) readInitial(root *object) {
	n := l.require(root, "initial")
	if n == nil {
		return
	}
	for _, item := range l.entries(n, "initial") {
		if name, ok := l.stateRef(item, "initial"); ok {
			l.m.Initial = append(l.m.Initial, name)
		} else {
			l.lostTarget = true
		}
	}
}

func (l *loader) readGroups(root *object) {
	l.groupStates = map[string][]string{}
	if n := root.get("groups"); n != nil && n.kind != mapping {
		l.lostGroups = true
	}
	names := newNameSet("group", GoSuffix)
	for _, p := range l.members(root, "groups") {
		l.checkStateName(p.key, "a group")
		names.add(l, p.key.value, p.key.at)
		g := Group{Name: p.key.value}
		for _, item := range l.list(p.value, "a group") {
			if name, ok := l.stateRef(item, "a group"); ok {
				g.States = append(g.States, name)
			}
		}
		l.inStateOrder(g.States)
		l.groupStates[g.Name] = g.States
		l.m.Groups = append(l.m.Groups, g)
	}
	slices.SortFunc(l.m.Groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
}

func (l *loader) inStateOrder(names []string) {
	slices.SortFunc(names, func(a, b string) int { return l.stateIndex[a] - l.stateIndex[b] })
}
