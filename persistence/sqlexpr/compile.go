package sqlexpr

import (
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// texts are the two of one node. check is empty where it is always true.
type texts struct{ value, check string }

// forms are the operators that dialects write differently. Texts of values stand in
// parentheses or need none.
type forms interface {
	// null is nil of a type.
	null(t expr.Type) string
	// param is a parameter in the form that comparisons need.
	param(n *expr.Node) string
	// float is a constant of ours.
	float(f float64) string
	// read is a column, and the check that it holds a value of its type at all.
	read(c Column) texts
	// arithmetic is + - * / % and unary minus (y is then empty) for n's type; the check is
	// its own one, without that of the operands.
	arithmetic(n *expr.Node, x, y string) texts
	// comparable makes both sides of a string comparison compare by bytes.
	comparable(x string) string
	// assign is the text of a value as it goes into a column, and the check that it fits.
	assign(n *expr.Node, c Column) texts
	// state is a parameter that holds a state's value.
	state(mark string, t expr.Type) string
}

func (b *Builder) value(n *expr.Node) string { return b.both(n).value }
func (b *Builder) check(n *expr.Node) string { return b.both(n).check }

// both compiles a node once.
func (b *Builder) both(n *expr.Node) texts {
	t, ok := b.memo[n]
	if !ok {
		t = b.compile(n)
		b.memo[n] = t
	}
	return t
}

func (b *Builder) compile(n *expr.Node) texts {
	switch n.Op {
	case expr.OpLit:
		return texts{value: b.literal(n)}
	case expr.OpArg, expr.OpNow:
		return b.bounded(n, texts{value: b.forms.param(n)})
	case expr.OpField:
		return b.field(n)
	case expr.OpAnd:
		return b.logic(n, "AND", "FALSE")
	case expr.OpOr:
		return b.logic(n, "OR", "TRUE")
	case expr.OpCoalesce:
		return b.coalesce(n)
	case expr.OpCond:
		return b.conditional(n)
	}
	t := b.strict(n)
	for i := len(n.Args) - 1; i >= 0; i-- {
		t.check = all(b.check(n.Args[i]), t.check)
	}
	return t
}

func (b *Builder) literal(n *expr.Node) string {
	switch v := n.Value.(type) {
	case nil:
		return b.forms.null(n.Type)
	case bool:
		if v {
			return "TRUE"
		}
		return "FALSE"
	}
	return b.forms.param(n)
}

func (b *Builder) field(n *expr.Node) texts {
	c := b.column(n.Name)
	if c.Bound {
		return b.bounded(n, texts{value: b.forms.param(n)})
	}
	return b.bounded(n, b.forms.read(c))
}

// bounded keeps an operand of float arithmetic within its bound. The value is NULL
// outside it, so that the arithmetic stays total; the check tells that from nil.
func (b *Builder) bounded(n *expr.Node, t texts) texts {
	if !n.Bounded {
		return t
	}
	low, high := expr.FloatBound()
	within := "(" + t.value + " = 0 OR ABS(" + t.value + ") BETWEEN " + b.forms.float(low) + " AND " + b.forms.float(high) + ")"
	return texts{
		value: "CASE WHEN " + within + " THEN " + t.value + " END",
		check: all(t.check, notFalse(within)),
	}
}

// notFalse is the form of every own check: nil passes.
func notFalse(condition string) string { return "(" + condition + ") IS NOT FALSE" }

// strict compiles the operators that always evaluate all operands. The check is that
// of the operator alone.
func (b *Builder) strict(n *expr.Node) texts {
	x := b.value(n.Args[0])
	switch n.Op {
	case expr.OpNot:
		return texts{value: "(NOT " + x + ")"}
	case expr.OpIsNil:
		return texts{value: "(" + x + " IS NULL)"}
	case expr.OpNotNil:
		return texts{value: "(" + x + " IS NOT NULL)"}
	case expr.OpNeg:
		return b.forms.arithmetic(n, x, "")
	case expr.OpIn, expr.OpNotIn:
		return texts{value: b.membership(n)}
	case expr.OpEq, expr.OpNe, expr.OpLt, expr.OpLe, expr.OpGt, expr.OpGe:
		if n.Args[0].Type == expr.String {
			x = b.forms.comparable(x)
		}
		return texts{value: "(" + x + comparisons[n.Op] + b.value(n.Args[1]) + ")"}
	}
	return b.forms.arithmetic(n, x, b.value(n.Args[1]))
}

var comparisons = map[expr.Op]string{
	expr.OpEq: " = ", expr.OpNe: " <> ", expr.OpLt: " < ", expr.OpLe: " <= ", expr.OpGt: " > ", expr.OpGe: " >= ",
}

func (b *Builder) membership(n *expr.Node) string {
	x := b.value(n.Args[0])
	if n.Args[0].Type == expr.String {
		x = b.forms.comparable(x)
	}
	list := make([]string, 0, len(n.Args)-1)
	for _, a := range n.Args[1:] {
		list = append(list, b.value(a))
	}
	op := " IN ("
	if n.Op == expr.OpNotIn {
		op = " NOT IN ("
	}
	return "(" + x + op + strings.Join(list, ", ") + "))"
}

// logic compiles and, or. decided is the value of the left operand that leaves the
// right one out.
func (b *Builder) logic(n *expr.Node, op, decided string) texts {
	x, y := b.both(n.Args[0]), b.both(n.Args[1])
	return texts{
		value: "(" + x.value + " " + op + " " + y.value + ")",
		check: all(x.check, either(x.value+" IS "+decided, y.check)),
	}
}

func (b *Builder) coalesce(n *expr.Node) texts {
	x, y := b.both(n.Args[0]), b.both(n.Args[1])
	return texts{
		value: "COALESCE(" + x.value + ", " + y.value + ")",
		check: all(x.check, either(x.value+" IS NOT NULL", y.check)),
	}
}

func (b *Builder) conditional(n *expr.Node) texts {
	c, x, y := b.both(n.Args[0]), b.both(n.Args[1]), b.both(n.Args[2])
	return texts{
		value: "CASE WHEN " + c.value + " THEN " + x.value + " ELSE " + y.value + " END",
		check: all(c.check, choose(c.value, x.check, y.check)),
	}
}

// choose is the check of a choice between two of which each may be empty.
func choose(condition, x, y string) string {
	if x == "" && y == "" {
		return ""
	}
	return "CASE WHEN " + condition + " THEN " + orTrue(x) + " ELSE " + orTrue(y) + " END"
}

func orTrue(check string) string {
	if check == "" {
		return "TRUE"
	}
	return check
}
