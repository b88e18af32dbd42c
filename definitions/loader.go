package definitions

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// loader reads one document into a machine.
type loader struct {
	*findings
	src *source
	m   *Machine

	// Where things were declared, for findings that come after reading.
	stateAt     map[string]pos
	stateIndex  map[string]int
	groupStates map[string][]string
	fieldAt     map[string]pos
	fieldIndex  map[string]int // into the machine's fields
	drafts      []*draft
	fieldEnv    *expr.Env
	edges       int
	// A reference that could not be resolved may have led anywhere: then nothing
	// is said about states that nothing enters, or leaves.
	lostTarget, lostSource bool
	// Likewise, if the fields could not be read any name may be one of them.
	lostFields, lostGroups bool
	// States of which it could not be read whether they are final.
	lostFinal map[string]bool
	nonFinal  []string
	wildcards map[string][]string // sources of "*", by targets
}

// object is a mapping whose keys are known.
type object struct {
	node   *node
	what   string // "a transition": for messages
	values map[string]pair
}

// object reads n as a mapping with keys out of allowed. It returns nil if n is
// something else.
func (l *loader) object(n *node, what string, allowed ...string) *object {
	if n.kind != mapping {
		l.wrongType(n, "%s is a mapping of %s", what, strings.Join(allowed, ", "))
		return nil
	}
	o := &object{node: n, what: what, values: make(map[string]pair, len(n.pairs))}
	for _, p := range n.pairs {
		if !slices.Contains(allowed, p.key.value) {
			l.unknownKey(p, what, allowed)
			continue
		}
		o.values[p.key.value] = p
	}
	return o
}

func (l *loader) unknownKey(p pair, what string, allowed []string) {
	name := p.key.value
	near := l.nearest(name, slices.Values(allowed))
	if odd := oddCharacter(name); odd != "" {
		l.report(p.key.at, finding{ruleUnknownKey, name, near}, "%q holds %s", name, odd)
		return
	}
	l.report(p.key.at, finding{ruleUnknownKey, name, near}, "%s has no key %q; it has %s", what, name, strings.Join(allowed, ", "))
}

// get returns the value of key, or nil if it is absent.
func (o *object) get(key string) *node { return o.values[key].value }

func (o *object) has(key string) bool { return o.values[key].key != nil }

// at returns the place of key itself.
func (o *object) at(key string) pos { return o.values[key].key.at }

// require returns the value of key and reports its absence.
func (l *loader) require(o *object, key string) *node {
	if !o.has(key) {
		l.report(o.node.at, finding{rule: ruleMissingKey, name: key}, "%s needs %q", o.what, key)
		return nil
	}
	return o.get(key)
}

// wrongType reports that n has another shape than its key asks for.
func (l *loader) wrongType(n *node, format string, args ...any) {
	if n.isNull() {
		l.report(n.at, finding{rule: ruleNull, name: n.value}, "a value is missing here: "+format, args...)
		return
	}
	l.report(n.at, finding{rule: ruleWrongType}, format+"; this is "+n.called(), args...)
}

// text reads a scalar that is not prose: a name, a number, an expression.
func (l *loader) text(n *node, what string) (string, bool) {
	if n.kind != scalar {
		l.wrongType(n, "%s is one value", what)
		return "", false
	}
	if n.isNull() {
		l.missingText(n, what)
		return "", false
	}
	for _, r := range n.value {
		if isJoiner(r) {
			l.report(n.at, finding{rule: ruleInvisible, name: n.value}, "%s holds the invisible character %s; remove it", what, codePoint(r))
			return "", false
		}
	}
	return n.value, true
}

func (l *loader) missingText(n *node, what string) {
	hint := ""
	if n.value != "" && n.value != "~" {
		hint = fmt.Sprintf("; if the word is meant, put it in quotes: %q", n.value)
	}
	l.report(n.at, finding{rule: ruleNull, name: n.value}, "%s is missing a value%s", what, hint)
}

// prose reads a doc text.
func (l *loader) prose(o *object) string {
	n := o.get("doc")
	if n == nil {
		return ""
	}
	if n.kind != scalar || n.isNull() {
		l.wrongType(n, "doc is text")
		return ""
	}
	return strings.TrimSpace(n.value)
}

func (l *loader) flag(o *object, key string) bool {
	n := o.get(key)
	if n == nil {
		return false
	}
	value, ok := boolean(n)
	if !ok {
		l.wrongBoolean(n, key+" is true or false")
	}
	return value
}

// wrongBoolean is wrongType where true or false is due: YAML 1.1 has other words for them.
func (l *loader) wrongBoolean(n *node, what string) {
	if n.kind != scalar || n.isNull() {
		l.wrongType(n, "%s", what)
		return
	}
	near := ""
	switch strings.ToLower(n.value) {
	case "yes", "on", "y", "1":
		near = "true"
	case "no", "off", "n", "0":
		near = "false"
	default:
		near = l.nearest(n.value, slices.Values([]string{"true", "false"}))
	}
	l.report(n.at, finding{ruleWrongType, n.value, near}, "%s, not %q", what, n.value)
}

// lost reports whether it is open what key says: its value is of no use, or a key that
// is none may be meant for it.
func (o *object) lost(key string) bool {
	if n := o.get(key); n != nil {
		_, ok := boolean(n)
		return !ok
	}
	return len(o.values) < len(o.node.pairs)
}

// boolean reads true and false, and none of YAML 1.1's other words for them.
func boolean(n *node) (value, ok bool) {
	if n.kind != scalar || n.value != "true" && n.value != "false" {
		return false, false
	}
	return n.value == "true", true
}

// entries reads one scalar or a list of scalars, each once.
func (l *loader) entries(n *node, what string) []*node {
	if n.kind == scalar {
		if _, ok := l.text(n, what); ok {
			return []*node{n}
		}
		return nil
	}
	if n.kind == mapping {
		l.wrongType(n, "%s is one value or a list", what)
		return nil
	}
	return l.list(n, what)
}

// list reads a list of scalars, each once.
func (l *loader) list(n *node, what string) []*node {
	if n.kind != sequence {
		l.wrongType(n, "%s is a list", what)
		return nil
	}
	if len(n.items) == 0 {
		l.report(n.at, finding{rule: ruleEmptyList}, "%s names nothing", what)
	}
	var kept []*node
	seen := make(map[string]pos, len(n.items))
	for _, item := range n.items {
		text, ok := l.text(item, what)
		if !ok {
			continue
		}
		if first, again := seen[text]; again {
			l.report(item.at, finding{rule: ruleDuplicateEntry, name: text}, "%q stands in line %d and again in line %d", text, first.line, item.at.line)
			continue
		}
		seen[text] = item.at
		kept = append(kept, item)
	}
	return kept
}

// members reads a mapping whose keys are names of the user's.
func (l *loader) members(o *object, key string) []pair {
	n := o.get(key)
	if n == nil {
		return nil
	}
	if n.kind != mapping {
		l.wrongType(n, "%s is a mapping of names", key)
		return nil
	}
	return n.pairs
}
