package definitions

import (
	"cmp"
	"fmt"
)

func comparePos(a, b pos) int {
	return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.col, b.col))
}

// nameSet holds the names of one kind apart, as Go identifiers and after case
// folding.
type nameSet struct {
	what   string
	toGo   func(string) string
	goName map[string]string
	folded map[string]string
}

// newNameSet begins a set; toGo is [GoName] for names that are identifiers by
// themselves, [GoSuffix] for those that only ever stand behind a prefix.
func newNameSet(what string, toGo func(string) string) *nameSet {
	return &nameSet{what: what, toGo: toGo, goName: map[string]string{}, folded: map[string]string{}}
}

func (s *nameSet) add(l *loader, name string, at pos) {
	goName := s.toGo(name)
	if other, taken := s.goName[goName]; taken && goName != "" {
		l.report(at, finding{rule: ruleNameCollision, name: name}, "the %ss %q and %q would both be %s in Go", s.what, other, name, goName)
		return
	}
	s.goName[goName] = name
	if other, taken := s.folded[folded(name)]; taken {
		l.report(at, finding{rule: ruleNameCollision, name: name}, "the %ss %q and %q differ in case only", s.what, other, name)
		return
	}
	s.folded[folded(name)] = name
}

// valueSet holds names, values and aliases of all states apart: a row's value
// must say one state, whatever a database does to case and spaces.
type valueSet struct {
	l       *loader
	entries []valueEntry
	valued  map[string]bool // states whose value is not their name
}

type valueEntry struct {
	state, text, what string
	at                pos
}

func newValueSet(l *loader) *valueSet { return &valueSet{l: l, valued: map[string]bool{}} }

func (s *valueSet) addName(key *node) {
	s.entries = append(s.entries, valueEntry{key.value, key.value, "name", key.at})
}

func (s *valueSet) add(state string, n *node, what string) {
	s.entries = append(s.entries, valueEntry{state, n.value, what, n.at})
	if what == "value" {
		s.valued[state] = true
	}
}

// check compares after all states are read: names first, since the name of a
// later state is as good as that of an earlier one.
func (s *valueSet) check() {
	seen := map[string]valueEntry{}
	for _, names := range []bool{true, false} {
		for _, e := range s.entries {
			if (e.what == "name") == names {
				s.compare(seen, e)
			}
		}
	}
}

func (s *valueSet) compare(seen map[string]valueEntry, e valueEntry) {
	key := folded(e.text)
	other, taken := seen[key]
	switch {
	case !taken:
		seen[key] = e
	case e.what == "name":
		// nameSet has told that two names differ in case only.
	case other.state == e.state && other.what == "name" && s.valued[e.state]:
		seen[key] = e // rows may hold a state's own name, now or formerly
	default:
		s.l.report(e.at, finding{rule: ruleDuplicateValue, name: e.text}, "the %s %q of %q is already the %s", e.what, e.text, e.state, other.described())
	}
}

func (e valueEntry) described() string {
	if e.what == "name" {
		return fmt.Sprintf("name of the state %q (line %d)", e.state, e.at.line)
	}
	return fmt.Sprintf("%s %q of the state %q (line %d)", e.what, e.text, e.state, e.at.line)
}
