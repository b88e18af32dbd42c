package expr

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// Why an operation rejects.
var (
	errIntRange  = errors.New("out of the range of an int")
	errZero      = errors.New("division by zero")
	errBound     = errors.New("an operand of float arithmetic outside 2^-100 to 2^100")
	errLength    = errors.New("longer than 255 characters")
	errTimeRange = errors.New("outside the years 1 to 9999")
)

// maxJoined is the length of a joined string, in characters: that of the columns the
// DDL makes.
const maxJoined = 255

// compare orders two values of one type that are not nil.
func compare(t Type, a, b value) int {
	switch t {
	case String:
		return strings.Compare(a.s, b.s)
	case Float:
		return cmp.Compare(a.f, b.f)
	}
	return cmp.Compare(a.i, b.i)
}

// ordered turns an order into the truth of a comparison.
func ordered(op Op, c int) bool {
	switch op {
	case OpEq:
		return c == 0
	case OpNe:
		return c != 0
	case OpLt:
		return c < 0
	case OpLe:
		return c <= 0
	case OpGt:
		return c > 0
	}
	return c >= 0
}

func negate(n *Node, a value) (value, error) {
	switch n.Type {
	case Int:
		if a.i == math.MinInt64 {
			return value{}, errIntRange
		}
		return value{i: -a.i}, nil
	case Float:
		return value{f: -a.f}, nil
	}
	return value{i: -a.i}, nil
}

// arithmetic computes + - * / %. A zero divisor rejects even a nil dividend: that is
// the shortest form in SQL, and it fails closed.
func arithmetic(n *Node, a, b value) (value, error) {
	if n.Type == Float {
		return floatArithmetic(n.Op, a, b)
	}
	if (n.Op == OpDiv || n.Op == OpMod) && !b.null && b.i == 0 {
		return value{}, errZero
	}
	if a.null || b.null {
		return value{null: true}, nil
	}
	switch n.Type {
	case Int:
		i, ok := intArithmetic(n.Op, a.i, b.i)
		if !ok {
			return value{}, errIntRange
		}
		return value{i: i}, nil
	case Decimal:
		u, ok := intArithmetic(n.Op, a.i, b.i)
		if !ok || u > maxUnits || u < -maxUnits {
			return value{}, errDecimalRange
		}
		return value{i: u}, nil
	case String:
		if utf8.RuneCountInString(a.s)+utf8.RuneCountInString(b.s) > maxJoined {
			return value{}, errLength
		}
		return value{s: a.s + b.s}, nil
	case Time:
		us, ok := intArithmetic(n.Op, a.i, b.i)
		if !ok || us < minMicros || us > maxMicros {
			return value{}, errTimeRange
		}
		return value{i: us}, nil
	}
	return value{i: a.i - b.i}, nil // the difference of two times cannot overflow
}

// intArithmetic is exact; ok is false where the result does not fit.
func intArithmetic(op Op, a, b int64) (r int64, ok bool) {
	switch op {
	case OpAdd:
		r = a + b
		return r, (a >= 0) != (b >= 0) || (r >= 0) == (a >= 0)
	case OpSub:
		r = a - b
		return r, (a >= 0) == (b >= 0) || (r >= 0) == (a >= 0)
	case OpMul:
		return multiply(a, b)
	case OpDiv:
		if a == math.MinInt64 && b == -1 {
			return 0, false
		}
		return a / b, true
	}
	if b == -1 {
		return 0, true
	}
	return a % b, true
}

func multiply(a, b int64) (int64, bool) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	limit := uint64(math.MaxInt64)
	negative := (a < 0) != (b < 0)
	if negative {
		limit++
	}
	if hi != 0 || lo > limit {
		return 0, false
	}
	if negative {
		return int64(-lo), true
	}
	return int64(lo), true
}

func magnitude(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

func floatArithmetic(op Op, a, b value) (value, error) {
	if op == OpDiv && !b.null && b.f == 0 {
		return value{}, errZero
	}
	if a.null || b.null {
		return value{null: true}, nil
	}
	switch op {
	case OpAdd:
		return value{f: a.f + b.f}, nil
	case OpSub:
		return value{f: a.f - b.f}, nil
	case OpMul:
		return value{f: a.f * b.f}, nil
	}
	return value{f: a.f / b.f}, nil
}
