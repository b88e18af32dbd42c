package expr

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/shopspring/decimal"
)

// Input is what an expression is evaluated over. Field and Arg return the canonical
// value of a name, as [Coerce] makes it; nil functions stand for rows and calls
// without any.
type Input struct {
	Field func(name string) any
	Arg   func(name string) any
	// Now is the time of the call.
	Now time.Time
	// Secret reports which args messages must not show.
	Secret func(arg string) bool
}

// value is a value while it is computed, held without allocation: a time and a
// duration in microseconds, a decimal in millionths, a bool as 0 or 1.
type value struct {
	null bool
	i    int64
	f    float64
	s    string
	x    any // Bytes, JSON
}

func boolValue(b bool) value {
	if b {
		return value{i: 1}
	}
	return value{}
}

// isTrue reports whether a bool is true; nil is not.
func (v value) isTrue() bool { return !v.null && v.i != 0 }

// isFalse reports whether a bool is false; nil is not.
func (v value) isFalse() bool { return !v.null && v.i == 0 }

// Eval computes the expression: its canonical value, or a [*Rejection].
func (e *Expr) Eval(in Input) (any, error) {
	v, rej := e.eval(in)
	if rej != nil {
		return nil, rej
	}
	return v.boxed(e.Root.Type), nil
}

// Holds reports whether a condition is true. One that is nil does not hold. The error
// is a [*Rejection].
func (e *Expr) Holds(in Input) (bool, error) {
	v, rej := e.eval(in)
	if rej != nil {
		return false, rej
	}
	return e.Root.Type == Bool && v.isTrue(), nil
}

func (e *Expr) eval(in Input) (value, *Rejection) {
	ev := evaluator{in: &in}
	v, rej := ev.eval(e.Root)
	if rej != nil {
		rej.finish(&in)
		return value{}, rej
	}
	return v, nil
}

// boxed turns v into a canonical value.
func (v value) boxed(t Type) any {
	if v.null {
		return nil
	}
	switch t {
	case String:
		return v.s
	case Int:
		return v.i
	case Float:
		return v.f + 0 // there is no -0
	case Bool:
		return v.i != 0
	case Time:
		return time.UnixMicro(v.i).UTC()
	case Duration:
		return time.Duration(v.i) * time.Microsecond
	case Decimal:
		return fromUnits(v.i)
	}
	return v.x
}

var errStored = errors.New("a stored value that is none of its type")

// unbox turns what [Input] gave into a value.
func unbox(t Type, raw any) (value, error) {
	switch x := raw.(type) {
	case nil:
		return value{null: true}, nil
	case string:
		if t == String {
			return value{s: x}, nil
		}
	case int64:
		if t == Int {
			return value{i: x}, nil
		}
	case bool:
		if t == Bool {
			return boolValue(x), nil
		}
	case float64:
		if t == Float && x-x == 0 { // finite
			return value{f: x}, nil
		}
	case time.Time:
		if t == Time {
			return unboxTime(x)
		}
	case decimal.Decimal:
		if t == Decimal {
			if u, err := decimalUnits(x); err == nil {
				return value{i: u}, nil
			}
			return value{}, errStored
		}
	case []byte:
		if t == Bytes {
			return value{x: raw}, nil
		}
	case json.RawMessage:
		if t == JSON && len(x) > 0 {
			return value{x: raw}, nil
		}
	}
	canonical, err := Coerce(t, -1, raw)
	if err != nil {
		return value{}, errStored
	}
	return unbox(t, canonical)
}

func unboxTime(tm time.Time) (value, error) {
	if y := tm.Year(); y < 0 || y > 10000 {
		return value{}, errStored
	}
	us := tm.UnixMicro() // rounds down, as truncation to microseconds does
	if us < minMicros || us > maxMicros {
		return value{}, errStored
	}
	return value{i: us}, nil
}

// An evaluator computes one expression over one input.
type evaluator struct {
	in *Input
}

func (ev *evaluator) eval(n *Node) (value, *Rejection) {
	switch n.Op {
	case OpLit:
		return n.lit, nil
	case OpField:
		return ev.read(n, ev.in.Field)
	case OpArg:
		return ev.read(n, ev.in.Arg)
	case OpNow:
		v, err := unboxTime(ev.in.Now)
		return v, rejectIf(n, err)
	case OpAnd, OpOr:
		return ev.logic(n)
	case OpCoalesce:
		a, rej := ev.eval(n.Args[0])
		if rej != nil || !a.null {
			return a, rej
		}
		return ev.eval(n.Args[1])
	case OpCond:
		c, rej := ev.eval(n.Args[0])
		if rej != nil {
			return value{}, rej
		}
		if c.isTrue() {
			return ev.eval(n.Args[1])
		}
		return ev.eval(n.Args[2])
	case OpIn, OpNotIn:
		return ev.membership(n)
	case OpNeg, OpNot, OpIsNil, OpNotNil:
		a, rej := ev.eval(n.Args[0])
		if rej != nil {
			return value{}, rej
		}
		return ev.unary(n, a)
	}
	return ev.binary(n)
}

func (ev *evaluator) read(n *Node, from func(string) any) (value, *Rejection) {
	if from == nil {
		return value{null: true}, nil
	}
	v, err := unbox(n.Type, from(n.Name))
	if err == nil && n.Bounded && !v.null && !inBound(v.f) {
		err = errBound
	}
	return v, rejectIf(n, err)
}

// logic computes and, or: the right operand only where the left does not decide.
func (ev *evaluator) logic(n *Node) (value, *Rejection) {
	a, rej := ev.eval(n.Args[0])
	if rej != nil {
		return value{}, rej
	}
	if n.Op == OpAnd && a.isFalse() || n.Op == OpOr && a.isTrue() {
		return a, nil
	}
	b, rej := ev.eval(n.Args[1])
	if rej != nil {
		return value{}, rej
	}
	// a is nil or leaves the decision to b.
	if a.null && !b.null && (n.Op == OpAnd) == (b.i != 0) {
		return a, nil
	}
	return b, nil
}

// membership computes x in [a, b]: x == a or x == b, but every element is computed.
func (ev *evaluator) membership(n *Node) (value, *Rejection) {
	x, rej := ev.eval(n.Args[0])
	if rej != nil {
		return value{}, rej
	}
	found, null := false, x.null
	for _, a := range n.Args[1:] {
		v, rej := ev.eval(a)
		if rej != nil {
			return value{}, rej
		}
		null = null || v.null
		found = found || !x.null && !v.null && compare(n.Args[0].Type, x, v) == 0
	}
	if !found && null {
		return value{null: true}, nil
	}
	return boolValue(found == (n.Op == OpIn)), nil
}

func (ev *evaluator) unary(n *Node, a value) (value, *Rejection) {
	switch {
	case n.Op == OpIsNil:
		return boolValue(a.null), nil
	case n.Op == OpNotNil:
		return boolValue(!a.null), nil
	case a.null:
		return a, nil
	case n.Op == OpNot:
		return boolValue(a.i == 0), nil
	}
	v, err := negate(n, a)
	return v, rejectIf(n, err)
}

// binary computes arithmetic and comparisons: both operands always, nil if one is.
func (ev *evaluator) binary(n *Node) (value, *Rejection) {
	a, rej := ev.eval(n.Args[0])
	if rej != nil {
		return value{}, rej
	}
	b, rej := ev.eval(n.Args[1])
	if rej != nil {
		return value{}, rej
	}
	t := n.Args[0].Type
	switch n.Op {
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe:
		if a.null || b.null {
			return value{null: true}, nil
		}
		return boolValue(ordered(n.Op, compare(t, a, b))), nil
	}
	v, err := arithmetic(n, a, b)
	return v, rejectIf(n, err)
}
