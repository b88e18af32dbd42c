package definitions

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Hash returns the SHA-256 of what the definition means, in hexadecimal. It does
// not depend on the order of keys, states and transitions, on comments, docs or
// layout, nor on how expressions are spaced. What does depend on order is kept:
// the first initial state, moves, branches, keys.
func (m *Machine) Hash() string {
	sum := sha256.Sum256(m.meaning())
	return hex.EncodeToString(sum[:])
}

// meaning is the canonical form of a twin of the machine without docs, with
// states in the order of their names and expressions as trees.
func (m *Machine) meaning() []byte {
	twin := *m
	twin.Doc = ""
	twin.States = slices.Clone(m.States)
	for i := range twin.States {
		twin.States[i].Doc = ""
		twin.States[i].Aliases = sortedAliases(m.States[i].Aliases)
	}
	slices.SortFunc(twin.States, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	twin.Fields = slices.Clone(m.Fields)
	for i := range twin.Fields {
		twin.Fields[i].Doc = ""
		twin.Fields[i].Default = plainDefault(&m.Fields[i])
	}
	twin.Initial = slices.Clone(m.Initial)
	if len(twin.Initial) > 1 {
		slices.Sort(twin.Initial[1:])
	}
	twin.Groups = slices.Clone(m.Groups)
	for i := range twin.Groups {
		twin.Groups[i].States = slices.Sorted(slices.Values(m.Groups[i].States))
	}
	twin.Unique = slices.Clone(m.Unique)
	for i := range twin.Unique {
		twin.Unique[i] = slices.Sorted(slices.Values(m.Unique[i]))
	}
	twin.Transitions = make([]Transition, len(m.Transitions))
	for i := range m.Transitions {
		twin.Transitions[i] = m.Transitions[i].plain()
	}
	slices.SortFunc(twin.Transitions, func(a, b Transition) int { return strings.Compare(a.Name, b.Name) })
	return twin.Canonical()
}

func sortedAliases(aliases []any) []any {
	return slices.SortedFunc(slices.Values(aliases), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// plainDefault writes a default in the one form of its value: 1.50 is 1.5.
func plainDefault(f *Field) *Default {
	if f.Default == nil || f.Default.Now {
		return f.Default
	}
	return &Default{Text: string(expr.AppendText(nil, f.Type, f.Default.Value)), Value: f.Default.Value}
}

// plain returns the transition without docs, sources sorted, and expressions by
// their meaning.
func (t Transition) plain() Transition {
	t.Doc = ""
	t.DuplicatesSaid = t.Duplicates != DuplicatesAccept
	t.Args = slices.Clone(t.Args)
	for i := range t.Args {
		t.Args[i].Doc = ""
	}
	t.When = plainCondition(t.When)
	t.Set = plainSet(t.Set)
	t.Moves = slices.Clone(t.Moves)
	for i := range t.Moves {
		move := &t.Moves[i]
		move.From = slices.Sorted(slices.Values(move.From))
		move.When = plainCondition(move.When)
		move.Set = plainSet(move.Set)
		move.Targets = slices.Clone(move.Targets)
		for j := range move.Targets {
			move.Targets[j].When = plainCondition(move.Targets[j].When)
		}
	}
	return t
}

// plainCondition leaves out a condition that always holds.
func plainCondition(e *expr.Expr) *expr.Expr {
	if known(e) == always {
		return nil
	}
	return plainExpr(e)
}

func plainExpr(e *expr.Expr) *expr.Expr {
	if e == nil {
		return nil
	}
	return &expr.Expr{Source: meaning(e)}
}

func plainSet(set []Assignment) []Assignment {
	plain := slices.Clone(set)
	for i := range plain {
		plain[i].Value = plainExpr(plain[i].Value)
	}
	return plain
}

// opNames are part of every hash: they never change, and new ones are added.
var opNames = map[expr.Op]string{
	expr.OpLit: "lit", expr.OpField: "field", expr.OpArg: "arg", expr.OpNow: "now", expr.OpNeg: "neg",
	expr.OpNot: "not", expr.OpAdd: "add", expr.OpSub: "sub", expr.OpMul: "mul", expr.OpDiv: "div",
	expr.OpMod: "mod", expr.OpEq: "eq", expr.OpNe: "ne", expr.OpLt: "lt", expr.OpLe: "le", expr.OpGt: "gt",
	expr.OpGe: "ge", expr.OpAnd: "and", expr.OpOr: "or", expr.OpIn: "in", expr.OpNotIn: "not-in",
	expr.OpCoalesce: "coalesce", expr.OpCond: "cond", expr.OpIsNil: "is-nil", expr.OpNotNil: "not-nil",
}

// meaning writes an expression's tree, so that two texts of one meaning are one.
func meaning(e *expr.Expr) string {
	if e == nil || e.Root == nil {
		return ""
	}
	var b strings.Builder
	writeMeaning(&b, e.Root)
	return b.String()
}

func writeMeaning(b *strings.Builder, n *expr.Node) {
	fmt.Fprintf(b, "(%s", opNames[n.Op])
	switch n.Op {
	case expr.OpLit:
		fmt.Fprintf(b, " %s %q", n.Type, fmt.Sprint(n.Value))
	case expr.OpField, expr.OpArg:
		fmt.Fprintf(b, " %s", n.Name)
	}
	for _, arg := range n.Args {
		b.WriteByte(' ')
		writeMeaning(b, arg)
	}
	b.WriteByte(')')
}
