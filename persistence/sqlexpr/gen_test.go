package sqlexpr

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// A generator draws values and expressions, uniformly from edges: small numbers and
// random ones find little.
type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

var (
	intEdges = []int64{
		0, 0, 1, 1, -1, 2, 3, 7, -7, 10, 100, 1e9, -1e9, 2e9, -2e9, 1<<31 - 1, 1 << 31, -1 << 31, -1<<31 - 1, 1 << 53, 1<<53 + 1,
		3037000499, 3037000500, -3037000500, 1 << 62, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, 999999999999, 1000000,
	}
	floatEdges = []float64{
		0, 1, -1, 0.1, 0.2, 1.5, -2.5, 3, 1e15, 1<<53 + 2, 0x1p100, -0x1p100, 0x1p-100, -0x1p-100, math.Nextafter(0x1p100, 2e30),
		math.Nextafter(0x1p-100, 0), math.MaxFloat64, -math.MaxFloat64, 5e-324, 1e-308, 1e308, 0.30000000000000004, 1.0 / 3,
	}
	decimalEdges = []string{
		"0", "1", "-1", "0.000001", "-0.000001", "1.5", "-2.25", "0.1", "0.2", "12345678901.234567", "99999999.99", "100000000", "0.005",
		"999999999999.999999", "-999999999999.999999", "999999999999", "123456.78", "1000000", "-0.5", "100",
	}
	stringEdges = []string{
		"", " ", "a", "A", "b", "B", "a ", "paid", "Paid", "PAID", "Paid ", "支付", "é", "e\u0301", "ß", "ss", "😀", "z\uffff", "it's", `"`, `\`, `\'`, "$1 ? ?1 :name @x",
		"-- /* ; #", "%_", "\n\t\r", "0", "9", "10", "1e3", "null", "0x61", "ﬀ", "İ", "i", strings.Repeat("x", 20), strings.Repeat("x", 21), strings.Repeat("支", 128),
		strings.Repeat("😀", 127), strings.Repeat("y", 254), strings.Repeat("z", 255),
	}
	timeEdges = []string{
		"0001-01-01T00:00:00.000001Z", "9999-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:58.5Z",
		"2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2024-02-29T23:59:59.999999Z", "1582-10-10T00:00:00Z", "0099-03-01T12:00:00.00001Z",
		"1900-02-28T00:00:00.000001Z", "2038-01-19T03:14:08Z", "9900-01-01T00:00:00Z", "0100-12-31T00:00:00Z",
	}
	durations = []string{"0s", "1us", "-1us", "1s", "30m", "-24h", "876600h", "-876600h", "1h0m0.000001s", "999ms", "86399.999999s"}
	jsonEdges = []string{`{}`, `[]`, `0`, `"x"`, `{"a": 1, "b": [true, null]}`, `"it's \" $1 ?"`, `{"支付": 1.50}`, `12345678901234567890`, `"😀\\"`}
)

// value draws a value of a variable, nil now and then where it may be.
func (g generator) value(v expr.Var, l expr.Limits) any {
	if v.Nullable && g.IntN(4) == 0 {
		return nil
	}
	for {
		out := g.plain(v.Type)
		if l.Check(v.Type, out) == nil {
			return out
		}
	}
}

func (g generator) plain(t expr.Type) any {
	switch t {
	case expr.Int:
		if g.IntN(4) == 0 {
			return g.Int64N(41) - 20
		}
		return pick(g, intEdges...)
	case expr.Float:
		if g.IntN(4) == 0 {
			return float64(g.Int64N(2001)-1000) / pick(g, 1.0, 8, 10, 3)
		}
		return pick(g, floatEdges...)
	case expr.Decimal:
		if g.IntN(4) == 0 {
			return must(expr.Coerce(expr.Decimal, -1, decimal.New(g.Int64N(2_000_000)-1_000_000, int32(-g.IntN(7)))))
		}
		return must(expr.Coerce(expr.Decimal, -1, pick(g, decimalEdges...)))
	case expr.String:
		if g.IntN(2) == 0 { // what collations take for equal
			return pick(g, "paid", "Paid", "PAID", "paid ", "a", "A", "a ", "ß", "ss")
		}
		return pick(g, stringEdges...)
	case expr.Bool:
		return g.IntN(2) == 0
	case expr.Time:
		tm, _ := time.Parse(time.RFC3339Nano, pick(g, timeEdges...))
		return tm.UTC()
	case expr.Bytes:
		return pick(g, []byte{}, []byte{0}, []byte{0, 255, 'x'}, []byte("支付'\\"))
	}
	return json.RawMessage(pick(g, jsonEdges...))
}

// expression draws the source of an expression of type t. What the checker refuses is
// drawn again by the caller.
func (g generator) expression(t expr.Type, depth int) string {
	if depth <= 0 || g.IntN(6) == 0 {
		return g.leaf(t)
	}
	if t == expr.Bool {
		return g.condition(depth)
	}
	switch g.IntN(8) {
	case 0:
		return g.coalesce(t, depth)
	case 1:
		return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-1), g.expression(t, depth-1), g.expression(t, depth-1))
	}
	return g.arithmetic(t, depth)
}

func (g generator) coalesce(t expr.Type, depth int) string {
	return fmt.Sprintf("(%s ?? %s)", g.atom(t, depth-1), g.atom(t, depth-1))
}

// atom puts an expression into parentheses where ?? would take it apart.
func (g generator) atom(t expr.Type, depth int) string { return "(" + g.expression(t, depth) + ")" }

func (g generator) arithmetic(t expr.Type, depth int) string {
	x, y := g.expression(t, depth-1), g.expression(t, depth-1)
	switch t {
	case expr.Int:
		switch g.IntN(10) {
		case 0:
			return "-(" + x + ")"
		case 1: // chains of one operator
			op := pick(g, " + ", " - ", " * ")
			return "(" + strings.Join([]string{x, y, g.leaf(t), g.leaf(t)}, op) + ")"
		case 2:
			return "(" + x + pick(g, " / ", " % ") + g.divisor(t) + ")"
		}
		return "(" + x + pick(g, " + ", " - ", " * ", " / ", " % ") + y + ")"
	case expr.Float:
		switch g.IntN(8) {
		case 0:
			return "-(" + x + ")"
		}
		return "(" + x + pick(g, " + ", " - ", " * ", " / ") + y + ")"
	case expr.Decimal:
		switch g.IntN(4) {
		case 0:
			return "-(" + x + ")"
		case 1:
			return "(" + x + " * " + g.expression(expr.Int, depth-1) + ")"
		}
		return "(" + x + pick(g, " + ", " - ") + y + ")"
	case expr.String:
		return "(" + x + " + " + y + ")"
	case expr.Time:
		return "(" + x + pick(g, " + ", " - ") + "duration('" + pick(g, durations...) + "'))"
	}
	return g.leaf(t)
}

func (g generator) divisor(t expr.Type) string {
	return pick(g, "0", "1", "-1", "7", "-7", "1000000000", "(i1 - i1)", g.leaf(t), g.leaf(t))
}

func (g generator) condition(depth int) string {
	if depth <= 0 {
		return g.leaf(expr.Bool)
	}
	t := pick(g, expr.Int, expr.Int, expr.Int, expr.Float, expr.String, expr.String, expr.Time, expr.Decimal, expr.Bool)
	x, y := g.expression(t, depth-1), g.expression(t, depth-1)
	switch g.IntN(12) {
	case 0, 1, 2:
		return "(" + g.condition(depth-1) + pick(g, " and ", " or ") + g.condition(depth-1) + ")"
	case 3:
		return "not (" + g.condition(depth-1) + ")"
	case 4:
		return "((" + x + ")" + pick(g, " in [", " not in [") + strings.Join([]string{y, g.leaf(t), g.leaf(t)}[:1+g.IntN(3)], ", ") + "])"
	case 5:
		return "((" + g.expression(pick(g, t, expr.Bytes, expr.JSON), depth-1) + ")" + pick(g, " == nil", " != nil") + ")"
	case 6:
		return fmt.Sprintf("(%s ? %s : %s)", g.condition(depth-1), g.condition(depth-1), g.condition(depth-1))
	case 7:
		return "((" + g.expression(expr.Time, depth-1) + ") - (" + g.expression(expr.Time, depth-1) + ")" + g.comparison(true) + "duration('" + pick(g, durations...) + "'))"
	case 8:
		return "((" + g.expression(expr.Int, depth-1) + ") % (" + g.divisor(expr.Int) + ") == 0)"
	case 9:
		return g.coalesce(expr.Bool, depth)
	}
	return "((" + x + ")" + g.comparison(t != expr.Bool) + "(" + y + "))"
}

func (g generator) comparison(ordered bool) string {
	if !ordered {
		return pick(g, " == ", " != ")
	}
	return pick(g, " == ", " != ", " < ", " <= ", " > ", " >= ")
}

// leaf draws a field, an arg, a literal or now().
func (g generator) leaf(t expr.Type) string {
	kind := g.IntN(7)
	switch {
	case kind < 3:
		var names []string
		for _, f := range testFields {
			if f.Type == t {
				names = append(names, f.Name)
			}
		}
		return pick(g, names...)
	case kind < 5 || t == expr.Bytes || t == expr.JSON:
		var names []string
		for _, a := range testArgs {
			if a.Type == t {
				names = append(names, "args."+a.Name)
			}
		}
		return pick(g, names...)
	case t == expr.Time:
		return "now()"
	}
	return g.literal(t)
}

func (g generator) literal(t expr.Type) string {
	switch v := g.plain(t).(type) {
	case int64:
		return strconv.FormatInt(max(v, -math.MaxInt64), 10) // the smallest cannot be written
	case float64:
		return strings.Replace(fmt.Sprintf("%.17g", v), "e+", "e", 1)
	case bool:
		return strconv.FormatBool(v)
	case decimal.Decimal:
		return v.String()
	case string:
		q := strconv.Quote(v)
		return "'" + strings.ReplaceAll(strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`), "'", `\'`) + "'"
	}
	return "nil"
}

// parsed draws until the checker takes the expression.
func (g generator) parsed(target expr.Var, depth int) *expr.Expr {
	for {
		src := g.expression(target.Type, depth)
		if g.IntN(40) == 0 && target.Nullable {
			src = "nil"
		}
		if e, _ := expr.ParseAssignment(src, testEnv, target); e != nil {
			return e
		}
	}
}

func (g generator) parsedCondition(depth int) *expr.Expr {
	for {
		if e, _ := expr.ParseCondition(g.condition(depth), testEnv); e != nil {
			return e
		}
	}
}
