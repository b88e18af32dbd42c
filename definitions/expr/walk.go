package expr

import "slices"

// Walk calls f for n and everything below it, operands in the order written.
func (n *Node) Walk(f func(*Node)) {
	f(n)
	for _, a := range n.Args {
		a.Walk(f)
	}
}

// Fields returns the names of the fields the expression reads, sorted, each once.
func (e *Expr) Fields() []string { return e.names(OpField) }

// Args returns the names of the args the expression reads, sorted, each once.
func (e *Expr) Args() []string { return e.names(OpArg) }

// ReadsField reports whether the expression reads the field called name.
func (e *Expr) ReadsField(name string) bool { return slices.Contains(e.Fields(), name) }

// ReadsNow reports whether the value depends on the time of the call.
func (e *Expr) ReadsNow() bool {
	found := false
	e.Root.Walk(func(n *Node) { found = found || n.Op == OpNow })
	return found
}

func (e *Expr) names(op Op) []string {
	var out []string
	e.Root.Walk(func(n *Node) {
		if n.Op == op {
			out = append(out, n.Name)
		}
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// IsSimple reports whether e computes nothing: it is a literal, nil, a field, an arg
// or now().
func IsSimple(e *Expr) bool {
	switch e.Root.Op {
	case OpLit, OpField, OpArg, OpNow:
		return true
	}
	return false
}
