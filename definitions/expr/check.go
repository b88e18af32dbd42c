package expr

import "fmt"

// A checker types the tree. Numbers and nil have no type of their own, they take the
// one of what stands beside them; everything else is typed from the leaves up. A node
// that failed keeps the type Invalid, and nothing above it is reported again.
type checker struct {
	problems *problemList
	checked  map[*Node]bool
	ranges   map[*Node]floatRange
}

func newChecker(problems *problemList) *checker {
	return &checker{problems: problems, checked: map[*Node]bool{}, ranges: map[*Node]floatRange{}}
}

func (c *checker) fail(n *Node, rule, format string, args ...any) bool {
	c.problems.add(Problem{Rule: rule, Offset: n.Pos, Message: fmt.Sprintf(format, args...)})
	return false
}

// condition checks the root of a condition.
func (c *checker) condition(root *Node) {
	if !c.check(root, Bool) {
		return
	}
	if root.Type != Bool {
		c.fail(root, RuleType, "a condition is a bool, this is %s", article(root.Type))
		return
	}
	if isNil(root) {
		c.fail(root, RuleNil, "a condition that is nil never holds")
		return
	}
	c.warn(root, nil)
}

// assignment checks the root of a right-hand side.
func (c *checker) assignment(root *Node, target Var) {
	if !c.check(root, target.Type) {
		return
	}
	switch {
	case root.Type == Duration:
		c.fail(root, RuleType, "a duration cannot be stored")
	case root.Type != target.Type:
		c.fail(root, RuleType, "%s is %s, this is %s", target.quoted(), article(target.Type), article(root.Type))
	case isNil(root) && !target.Nullable:
		c.fail(root, RuleNotNullable, "%s is not nullable", target.quoted())
	case root.Nullable && !target.Nullable:
		c.fail(root, RuleNotNullable, "this may be nil and %s is not nullable; give a default with ??", target.quoted())
	default:
		c.scale(root, target)
		c.warn(root, nil)
	}
}

// scale finds literals with more digits than the target keeps. What is computed is
// checked when it is computed.
func (c *checker) scale(n *Node, target Var) {
	if target.Type != Decimal || target.Scale < 0 || target.Scale >= maxScale {
		return
	}
	switch n.Op {
	case OpLit:
		if n.Value != nil && n.lit.i%pow10(maxScale-target.Scale) != 0 {
			c.fail(n, RuleLiteral, "%s keeps %d digits after the point", target.quoted(), target.Scale)
		}
	case OpCoalesce:
		c.scale(n.Args[0], target)
		c.scale(n.Args[1], target)
	case OpCond:
		c.scale(n.Args[1], target)
		c.scale(n.Args[2], target)
	}
}

// check types n and all below it. want is the type numbers and nil shall have,
// Invalid where nothing says so. It returns false after a finding. A node is checked
// once, whoever asks: asking again at every level would double the work at each.
func (c *checker) check(n *Node, want Type) bool {
	ok, done := c.checked[n]
	if !done {
		ok = c.checkOnce(n, want)
		c.checked[n] = ok
	}
	return ok
}

func (c *checker) checkOnce(n *Node, want Type) bool {
	switch n.Op {
	case OpLit:
		return c.literal(n, want)
	case OpField, OpArg, OpNow: // typed by the reducer
		return n.Type != Invalid // a declaration without a type is reported where it stands
	case OpNeg:
		return c.negation(n, want)
	case OpNot, OpAnd, OpOr:
		return c.logic(n)
	case OpAdd, OpSub, OpMul, OpDiv, OpMod:
		return c.arithmetic(n, want)
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		return c.comparison(n)
	case OpIn, OpNotIn:
		return c.membership(n)
	case OpCoalesce:
		return c.coalesce(n, want)
	case OpCond:
		return c.conditional(n, want)
	case OpIsNil, OpNotNil:
		return c.nilTest(n)
	}
	return c.fail(n, RuleUnsupported, "this is not part of the language")
}

// logic checks not, and, or. Both operands are checked, so that both may be reported.
func (c *checker) logic(n *Node) bool {
	ok := true
	for _, a := range n.Args {
		switch {
		case isNil(a):
			ok = c.fail(a, RuleNil, "nil is no operand of %s", n.Op)
		case !c.check(a, Bool):
			ok = false
		case a.Type != Bool:
			hint := ""
			if n.Op == OpNot {
				hint = "; it binds tighter than a comparison: write not (...)"
			}
			ok = c.fail(n, RuleType, "%s takes bools, not %s%s", n.Op, article(a.Type), hint)
		}
		n.Nullable = n.Nullable || a.Nullable
	}
	return c.typed(n, Bool, ok)
}

// comparison checks == != < <= > >=.
func (c *checker) comparison(n *Node) bool {
	t, ok := c.sameType(n, Invalid, n.Args...)
	if !ok {
		return false
	}
	ordered := n.Op != OpEq && n.Op != OpNe
	if t == Bytes || t == JSON || t == Bool && ordered {
		return c.fail(n, RuleType, "%s does not compare values of type %s", n.Op, t)
	}
	return c.typed(n, Bool, true)
}

// membership checks in and not in.
func (c *checker) membership(n *Node) bool {
	t, ok := c.sameType(n, Invalid, n.Args...)
	if !ok {
		return false
	}
	if t == Bytes || t == JSON || t == Duration {
		return c.fail(n, RuleType, "%s does not compare values of type %s", n.Op, t)
	}
	return c.typed(n, Bool, true)
}

// sameType checks operands that must have one type, none of them nil.
func (c *checker) sameType(n *Node, want Type, operands ...*Node) (Type, bool) {
	for _, a := range operands {
		if isNil(a) {
			return Invalid, c.fail(a, RuleNil, "%s with nil is always nil; test with == nil or != nil", n.Op)
		}
	}
	t, ok := c.unify(n, want, operands...)
	for _, a := range operands {
		n.Nullable = n.Nullable || a.Nullable
	}
	return t, ok
}

// unify gives all operands one type: that of the typed ones, else want, else what the
// literals look like. It reports the first operand that differs.
func (c *checker) unify(n *Node, want Type, operands ...*Node) (Type, bool) {
	t, ok := Invalid, true
	for _, a := range operands {
		if loose(a) {
			continue
		}
		switch {
		case !c.check(a, want):
			ok = false
		case t == Invalid:
			t = a.Type
		case t != a.Type:
			ok = c.fail(n, RuleType, "%s between %s and %s", n.Op, article(t), article(a.Type))
		}
	}
	if !ok {
		return Invalid, false
	}
	if t == Invalid {
		t = want
	}
	if t == Invalid {
		t = literalType(operands...)
	}
	for _, a := range operands {
		if loose(a) && !c.check(a, t) {
			ok = false
		}
	}
	return t, ok
}

// coalesce checks a ?? b.
func (c *checker) coalesce(n *Node, want Type) bool {
	a, b := n.Args[0], n.Args[1]
	if isNil(a) || isNil(b) {
		return c.fail(n, RuleNil, "?? with nil changes nothing")
	}
	t, ok := c.unify(n, want, a, b)
	if !ok {
		return false
	}
	if t == Duration {
		return c.fail(n, RuleType, "durations are only compared")
	}
	if !a.Nullable {
		return c.fail(n, RuleNil, "what stands before ?? is never nil; note that ?? binds tighter than every other operator")
	}
	n.Nullable = b.Nullable
	return c.typed(n, t, true)
}

// conditional checks c ? a : b. A condition that is nil takes the other side, so it
// does not make the result nullable.
func (c *checker) conditional(n *Node, want Type) bool {
	cond, a, b := n.Args[0], n.Args[1], n.Args[2]
	ok := true
	switch {
	case isNil(cond):
		ok = c.fail(cond, RuleNil, "a condition that is nil never holds")
	case !c.check(cond, Bool):
		ok = false
	case cond.Type != Bool:
		ok = c.fail(cond, RuleType, "the condition of ?: is a bool, this is %s", article(cond.Type))
	}
	t, same := c.unify(n, want, a, b)
	if !ok || !same {
		return false
	}
	if t == Duration {
		return c.fail(n, RuleType, "durations are only compared")
	}
	n.Nullable = a.Nullable || b.Nullable
	return c.typed(n, t, true)
}

func (c *checker) nilTest(n *Node) bool {
	a := n.Args[0]
	if !c.check(a, Invalid) {
		return false
	}
	if !a.Nullable {
		return c.fail(n, RuleNil, "this is never nil, so %s says nothing", n.Op)
	}
	return c.typed(n, Bool, true)
}

// typed sets the type of a node whose operands were fine.
func (c *checker) typed(n *Node, t Type, ok bool) bool {
	if ok {
		n.Type = t
	}
	return ok
}

// article names a type in a sentence.
func article(t Type) string {
	switch t {
	case Int:
		return "an int"
	case Nil:
		return "nil"
	case Bytes, JSON:
		return t.String()
	}
	return "a " + t.String()
}
