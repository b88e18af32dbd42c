package expr

// Float arithmetic is defined for operands that are 0 or between 2^-100 and 2^100.
// Under that bound a static count shows that no step leaves the range of normal
// float64 numbers, where databases raise errors or lose digits.
const (
	minFloat = 0x1p-100
	maxFloat = 0x1p100
)

// A floatRange says of every value a node can have: it is a multiple of 2^low, and
// smaller than 2^high.
type floatRange struct{ low, high int }

// leafRange is that of an operand within the bound: 53 digits from 2^-100 down.
func leafRange() floatRange { return floatRange{low: -152, high: 101} }

// floatRange computes the range of a float operation and refuses one that could
// leave that of float64.
func (c *checker) floatRange(n *Node) bool {
	if n.Type != Float {
		return true
	}
	for _, a := range n.Args {
		if !c.bind(a) {
			return false
		}
	}
	r := c.rangeOf(n.Args[0])
	if n.Op != OpNeg {
		r = r.combine(n.Op, c.rangeOf(n.Args[1]))
	}
	if r.high > 1023 || r.low < -1022 {
		return c.fail(n, RuleFactors, "too many float factors: the result could leave the range of a float")
	}
	c.ranges[n] = r
	return true
}

// bind marks the operands that have to keep to the bound when they are read: fields
// and args, also those behind ?: and ??. Literals are checked here.
func (c *checker) bind(n *Node) bool {
	switch n.Op {
	case OpField, OpArg:
		n.Bounded = true
	case OpLit:
		if f, ok := n.Value.(float64); ok && !inBound(f) {
			return c.fail(n, RuleLiteral, "float arithmetic takes operands that are 0 or between 2^-100 and 2^100")
		}
	case OpCond:
		return c.bind(n.Args[1]) && c.bind(n.Args[2])
	case OpCoalesce:
		return c.bind(n.Args[0]) && c.bind(n.Args[1])
	}
	return true
}

// rangeOf returns the range of an operand: of what it may choose from, the widest.
func (c *checker) rangeOf(n *Node) floatRange {
	args := n.Args
	switch n.Op {
	case OpCond:
		args = args[1:]
	case OpCoalesce:
	default:
		if r, ok := c.ranges[n]; ok {
			return r
		}
		return leafRange()
	}
	a, b := c.rangeOf(args[0]), c.rangeOf(args[1])
	return floatRange{low: min(a.low, b.low), high: max(a.high, b.high)}
}

func (r floatRange) combine(op Op, b floatRange) floatRange {
	switch op {
	case OpMul:
		return floatRange{low: r.low + b.low, high: r.high + b.high}
	case OpDiv:
		return floatRange{low: r.low - b.high - 53, high: r.high - b.low}
	}
	return floatRange{low: min(r.low, b.low), high: max(r.high, b.high) + 1}
}

// inBound reports whether f may be an operand of float arithmetic.
func inBound(f float64) bool {
	if f < 0 {
		f = -f
	}
	return f == 0 || f >= minFloat && f <= maxFloat
}

// FloatBound returns the smallest and the largest magnitude, apart from 0, of an
// operand of float arithmetic.
func FloatBound() (low, high float64) { return minFloat, maxFloat }
