package expr

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"
)

// isNil reports whether n is the literal nil.
func isNil(n *Node) bool { return n.Op == OpLit && n.Value == nil }

// loose reports whether n takes its type from its surroundings: numbers, nil, and
// what is made of them alone.
func loose(n *Node) bool {
	switch n.Op {
	case OpLit:
		_, num := n.Value.(number)
		return num || n.Value == nil
	case OpNeg:
		return loose(n.Args[0])
	case OpAdd, OpSub, OpMul, OpDiv, OpMod, OpCoalesce:
		return loose(n.Args[0]) && loose(n.Args[1])
	case OpCond:
		return loose(n.Args[1]) && loose(n.Args[2])
	}
	return false
}

// literalType is the type of numbers that nothing else types: int, or decimal if one
// is written with a fraction. Never float by accident.
func literalType(nodes ...*Node) Type {
	t := Int
	for _, n := range nodes {
		if fractional(n) {
			t = Decimal
		}
	}
	return t
}

// fractional reports whether a loose node holds a number written with a fraction.
func fractional(n *Node) bool {
	if num, ok := n.Value.(number); ok {
		return num.frac
	}
	args := n.Args
	if n.Op == OpCond {
		args = args[1:]
	}
	for _, a := range args {
		if fractional(a) {
			return true
		}
	}
	return false
}

// literal gives a literal its value and type.
func (c *checker) literal(n *Node, want Type) bool {
	switch v := n.Value.(type) {
	case nil:
		if want == Invalid || want == Duration {
			return c.fail(n, RuleNil, "nothing says what type this nil has")
		}
		n.Type, n.lit = want, value{null: true}
		return true
	case number:
		if want == Invalid {
			want = literalType(n)
		}
		return c.number(n, v, want)
	case string:
		n.lit = value{s: v}
	case bool:
		n.lit = boolValue(v)
	case time.Duration:
		n.lit = value{i: v.Microseconds()}
	}
	return true
}

// number fits a numeric literal into a type, exactly or not at all. Only a fraction in
// a float is rounded, as everywhere.
func (c *checker) number(n *Node, num number, t Type) bool {
	switch t {
	case Int:
		i, ok := wholeNumber(num.text)
		if !ok {
			return c.fail(n, RuleLiteral, "%s is no int", num.text)
		}
		n.Value, n.lit = i, value{i: i}
	case Float:
		f, ok := floatNumber(num)
		if !ok {
			return c.fail(n, RuleLiteral, "no float is exactly %s", num.text)
		}
		n.Value, n.lit = f, value{f: f}
	case Decimal:
		d, err := parseDecimal(num.text)
		if err != nil {
			return c.fail(n, RuleLiteral, "%s is no decimal: %v", num.text, err)
		}
		units, err := decimalUnits(d)
		if err != nil {
			return c.fail(n, RuleLiteral, "%s is no decimal: %v", num.text, err)
		}
		n.Value, n.lit = fromUnits(units), value{i: units}
	default:
		return c.fail(n, RuleType, "the number %s where %s is due", num.text, article(t))
	}
	n.Type = t
	return true
}

// wholeNumber reads a literal such as 12, 12.0 or 12e2 as an int64.
func wholeNumber(text string) (int64, bool) {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, true
	}
	d, err := parseDecimal(text)
	if err != nil || d.Exponent() > 19 || d.Exponent() < -100 || !d.IsInteger() {
		return 0, false
	}
	if d.Cmp(decimal.NewFromInt(math.MaxInt64)) > 0 || d.Cmp(decimal.NewFromInt(math.MinInt64)) < 0 {
		return 0, false
	}
	return d.IntPart(), true
}

func floatNumber(num number) (float64, bool) {
	if !num.frac {
		i, err := strconv.ParseInt(num.text, 10, 64)
		return float64(i), err == nil && exactFloat(i)
	}
	if i, whole := wholeNumber(num.text); whole && !exactFloat(i) {
		return 0, false // 9007199254740993.0 is as whole as without the point
	}
	f, err := strconv.ParseFloat(num.text, 64)
	if f == 0 {
		f = 0 // not -0
		if strings.Trim(strings.SplitN(strings.ToLower(num.text), "e", 2)[0], "-.0") != "" {
			return 0, false // too small: it was not written as zero
		}
	}
	return f, err == nil
}

// negation checks unary minus.
func (c *checker) negation(n *Node, want Type) bool {
	a := n.Args[0]
	if isNil(a) {
		return c.fail(a, RuleNil, "minus nil is always nil")
	}
	if !c.check(a, want) {
		return false
	}
	if a.Type != Int && a.Type != Float && a.Type != Decimal {
		return c.fail(n, RuleType, "minus takes a number, not %s", article(a.Type))
	}
	n.Nullable = a.Nullable
	c.typed(n, a.Type, true)
	return c.floatRange(n)
}

// arithmetic checks + - * / %.
func (c *checker) arithmetic(n *Node, want Type) bool {
	if done, ok := c.mixed(n, want); done {
		return ok
	}
	t, ok := c.sameType(n, want, n.Args...)
	if !ok {
		return false
	}
	if !defined(n.Op, t) {
		return c.undefined(n, t)
	}
	if (n.Op == OpDiv || n.Op == OpMod) && divides(n.Args[1]) {
		return c.fail(n, RuleDivisor, "a divisor holds no / or %% of its own")
	}
	c.typed(n, t, true)
	return c.floatRange(n)
}

// defined is the table of arithmetic on operands of one type.
func defined(op Op, t Type) bool {
	switch t {
	case Int:
		return true
	case Float:
		return op != OpMod
	case Decimal:
		return op == OpAdd || op == OpSub
	case String:
		return op == OpAdd
	}
	return false
}

func (c *checker) undefined(n *Node, t Type) bool {
	hint := ""
	switch {
	case t == Decimal && n.Op == OpMul:
		hint = "; a decimal is multiplied by an int only"
	case t == Decimal:
		hint = "; the result would have to be rounded"
	}
	return c.fail(n, RuleType, "%s is not defined for %s%s", n.Op, t, hint)
}

// divides reports whether n holds a division.
func divides(n *Node) bool {
	if n.Op == OpDiv || n.Op == OpMod {
		return true
	}
	for _, a := range n.Args {
		if divides(a) {
			return true
		}
	}
	return false
}

// mixed checks the operations whose operands differ in type: a decimal times an int,
// and times with durations. done is false where n is none of them.
func (c *checker) mixed(n *Node, want Type) (done, ok bool) {
	a, b := n.Args[0], n.Args[1]
	if isNil(a) || isNil(b) {
		return false, false
	}
	okA := loose(a) || c.check(a, Invalid)
	okB := loose(b) || c.check(b, Invalid)
	switch {
	case !okA || !okB:
		return true, false
	case a.Type == Time || a.Type == Duration || b.Type == Duration:
		return true, c.times(n, a, b)
	case n.Op != OpMul:
		return false, false
	case a.Type == Decimal, loose(a) && loose(b) && decimalProduct(a, b, want):
		return true, c.product(n, a, b)
	case b.Type == Decimal:
		return true, c.product(n, b, a)
	}
	return false, false
}

// decimalProduct reports whether a product of literals alone is a decimal.
func decimalProduct(a, b *Node, want Type) bool {
	return want == Decimal || want == Invalid && (fractional(a) || fractional(b))
}

// product checks d * i, a decimal times an int, written in either order. Of two
// literals the one without a fraction is the int.
func (c *checker) product(n *Node, d, i *Node) bool {
	if loose(d) && fractional(i) {
		d, i = i, d
	}
	switch {
	case i.Type == Decimal, loose(i) && fractional(i):
		return c.undefined(n, Decimal)
	case !c.check(d, Decimal) || !c.check(i, Int):
		return false
	case i.Type != Int:
		return c.fail(n, RuleType, "%s between %s and %s", n.Op, article(d.Type), article(i.Type))
	}
	n.Nullable = d.Nullable || i.Nullable
	return c.typed(n, Decimal, true)
}

// times checks time ± duration and time - time.
func (c *checker) times(n *Node, a, b *Node) bool {
	n.Nullable = a.Nullable || b.Nullable
	switch {
	case a.Type == Time && b.Type == Duration && b.Op == OpLit && (n.Op == OpAdd || n.Op == OpSub):
		return c.typed(n, Time, true)
	case a.Type == Time && b.Type == Time && n.Op == OpSub:
		return c.typed(n, Duration, true)
	case a.Type == Time && b.Type == Time:
		return c.fail(n, RuleType, "%s is not defined for time; the difference of two is", n.Op)
	case a.Type == Duration && b.Type == Time && n.Op == OpAdd:
		return c.fail(n, RuleType, "write the time first: time + duration('...')")
	}
	return c.fail(n, RuleType, "a time takes + duration('...'), - duration('...') and - time; durations are otherwise only compared")
}
