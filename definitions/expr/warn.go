package expr

import "maps"

// known holds the fields and args that a nil test has shown not to be nil.
type known map[string]bool

// with returns k and what else is shown not to be nil where n has the truth value
// given.
func (k known) with(n *Node, truth bool) known {
	shown := known{}
	maps.Copy(shown, k)
	shown.learn(n, truth)
	return shown
}

func (k known) learn(n *Node, truth bool) {
	switch {
	case n.Op == OpNotNil && truth, n.Op == OpIsNil && !truth:
		if name := source(n.Args[0]); name != "" {
			k[name] = true
		}
	case n.Op == OpNot:
		k.learn(n.Args[0], !truth)
	case n.Op == OpAnd && truth, n.Op == OpOr && !truth:
		k.learn(n.Args[0], truth)
		k.learn(n.Args[1], truth)
	}
}

// source names a field or an arg as messages do.
func source(n *Node) string {
	switch n.Op {
	case OpField:
		return n.Name
	case OpArg:
		return "args." + n.Name
	}
	return ""
}

// warn finds negations over operands that may be nil: where one is, they are not true,
// which reads otherwise.
func (c *checker) warn(n *Node, k known) {
	switch n.Op {
	case OpAnd, OpOr:
		c.warn(n.Args[0], k)
		c.warn(n.Args[1], k.with(n.Args[0], n.Op == OpAnd))
		return
	case OpCond:
		c.warn(n.Args[0], k)
		c.warn(n.Args[1], k.with(n.Args[0], true))
		c.warn(n.Args[2], k.with(n.Args[0], false))
		return
	case OpCoalesce:
		c.warnCovered(n.Args[0], k)
		c.warn(n.Args[1], k)
		return
	case OpNe, OpNot, OpNotIn:
		if name := k.culprit(n); name != "" {
			c.problems.add(Problem{
				Rule: RuleNilComparison, Offset: n.Pos, Name: name, Warning: true,
				Message: n.Op.String() + " is not true while " + name + " is nil; if it should be, say " + name + " == nil or ...",
			})
			return
		}
	}
	for _, a := range n.Args {
		c.warn(a, k)
	}
}

// warnCovered is warn before ??, which says what nil means: a negation that is nil there is
// meant to be.
func (c *checker) warnCovered(n *Node, k known) {
	switch n.Op {
	case OpAnd, OpOr:
		c.warnCovered(n.Args[0], k)
		c.warnCovered(n.Args[1], k.with(n.Args[0], n.Op == OpAnd))
	case OpNe, OpNot, OpNotIn:
		for _, a := range n.Args {
			c.warnCovered(a, k)
		}
	default:
		c.warn(n, k)
	}
}

// culprit returns a field or arg that makes n nil, or "".
func (k known) culprit(n *Node) string {
	if !n.Nullable {
		return ""
	}
	if name := source(n); name != "" {
		if k[name] {
			return ""
		}
		return name
	}
	args := n.Args
	switch n.Op {
	case OpCond:
		args = args[1:]
	case OpCoalesce:
		args = args[1:]
	case OpAnd, OpOr:
		if name := k.culprit(args[0]); name != "" {
			return name
		}
		return k.with(args[0], n.Op == OpAnd).culprit(args[1])
	}
	for _, a := range args {
		if name := k.culprit(a); name != "" {
			return name
		}
	}
	return ""
}
