package expr

import (
	"strings"

	"github.com/expr-lang/expr/ast"
)

// binaryOps are the operators with two operands, as the parser spells them.
var binaryOps = map[string]Op{
	"+": OpAdd, "-": OpSub, "*": OpMul, "/": OpDiv, "%": OpMod,
	"==": OpEq, "!=": OpNe, "<": OpLt, "<=": OpLe, ">": OpGt, ">=": OpGe,
	"and": OpAnd, "&&": OpAnd, "or": OpOr, "||": OpOr, "in": OpIn, "??": OpCoalesce,
}

func (r *reducer) unary(n *ast.UnaryNode, depth int) *Node {
	pos := n.Location().From
	switch n.Operator {
	case "not", "!":
		x := r.reduce(n.Node, depth+1)
		if x == nil {
			return nil
		}
		if x.Op == OpIn { // the parser has no node of its own for `not in`
			x.Op = OpNotIn
			return x
		}
		return &Node{Op: OpNot, Args: []*Node{x}, Pos: pos}
	case "-":
		x := r.reduce(n.Node, depth+1)
		if x == nil {
			return nil
		}
		if num, ok := x.Value.(number); ok {
			x.Value, x.Pos = num.negated(), pos
			return x
		}
		return &Node{Op: OpNeg, Args: []*Node{x}, Pos: pos}
	}
	return r.fail(pos, RuleUnsupported, "%q before an operand is not part of the language", n.Operator)
}

func (n number) negated() number {
	if rest, ok := strings.CutPrefix(n.text, "-"); ok {
		n.text = rest
	} else {
		n.text = "-" + n.text
	}
	return n
}

func (r *reducer) binary(n *ast.BinaryNode, depth int) *Node {
	pos := n.Location().From
	op, ok := binaryOps[n.Operator]
	if !ok {
		return r.fail(pos, RuleUnsupported, "%q is not part of the language", n.Operator)
	}
	if op == OpIn {
		return r.in(n, depth)
	}
	if op == OpEq || op == OpNe {
		if isNilNode(n.Left) || isNilNode(n.Right) {
			return r.nilTest(n, op, depth)
		}
	}
	left, right := r.reduce(n.Left, depth+1), r.reduce(n.Right, depth+1)
	if left == nil || right == nil {
		return nil
	}
	return &Node{Op: op, Args: []*Node{left, right}, Pos: pos}
}

func isNilNode(n ast.Node) bool {
	_, ok := n.(*ast.NilNode)
	return ok
}

// nilTest makes one operation of a comparison with nil: it has no second operand, and
// unlike every other comparison it is never nil itself.
func (r *reducer) nilTest(n *ast.BinaryNode, op Op, depth int) *Node {
	operand := n.Left
	if isNilNode(operand) {
		operand = n.Right
	}
	if isNilNode(operand) {
		return r.fail(n.Location().From, RuleNil, "nil is always nil")
	}
	x := r.reduce(operand, depth+1)
	if x == nil {
		return nil
	}
	test := OpIsNil
	if op == OpNe {
		test = OpNotNil
	}
	return &Node{Op: test, Args: []*Node{x}, Pos: n.Location().From}
}

// in reads x in [a, b].
func (r *reducer) in(n *ast.BinaryNode, depth int) *Node {
	pos := n.Location().From
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return r.fail(pos, RuleUnsupported, "in takes a list written out, such as [1, 2]")
	}
	if len(list.Nodes) == 0 {
		return r.fail(list.Location().From, RuleType, "an empty list holds nothing")
	}
	args := []*Node{r.reduce(n.Left, depth+1)}
	for _, e := range list.Nodes {
		if isNilNode(e) {
			return r.fail(e.Location().From, RuleNil, "nil in a list is never found; write x == nil or x in [...]")
		}
		args = append(args, r.reduce(e, depth+1))
	}
	for _, a := range args {
		if a == nil {
			return nil
		}
	}
	return &Node{Op: OpIn, Args: args, Pos: pos}
}

// conditional reads c ? a : b. The parser's location of it is wrong, that of its
// condition is right.
func (r *reducer) conditional(n *ast.ConditionalNode, depth int) *Node {
	if !n.Ternary {
		return r.fail(0, RuleUnsupported, "there are no blocks; write c ? a : b")
	}
	cond := r.reduce(n.Cond, depth+1)
	if n.Exp1 == n.Cond {
		if cond != nil {
			r.fail(cond.Pos, RuleUnsupported, "a ?: b is not part of the language; write a ?? b, or c ? a : b")
		}
		return nil
	}
	a, b := r.reduce(n.Exp1, depth+1), r.reduce(n.Exp2, depth+1)
	if cond == nil || a == nil || b == nil {
		return nil
	}
	return &Node{Op: OpCond, Args: []*Node{cond, a, b}, Pos: cond.Pos}
}
