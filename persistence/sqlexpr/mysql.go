package sqlexpr

import (
	"strconv"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// mysql raises errors only in UPDATE, not in SELECT: on overflow, division by zero,
// dates out of range, strings that look like no number. Integers are computed as
// DECIMAL(65,0) and kept just outside the range of an int where they leave it;
// strings are compared as BINARY, for its collations also differ between columns and
// parameters.
type mysql struct{ b *Builder }

func (mysql) null(expr.Type) string { return "NULL" }

// param casts every parameter: the text protocol and the binary one would otherwise
// give it different types.
func (m mysql) param(n *expr.Node) string {
	switch n.Type {
	case expr.Int:
		return "CAST(" + m.b.leaf(n, formPlain) + " AS SIGNED)"
	case expr.Float:
		return "CAST(" + m.b.leaf(n, formPlain) + " AS DOUBLE)"
	case expr.Decimal:
		return "CAST(" + m.b.leaf(n, formText) + " AS DECIMAL(18,6))"
	case expr.Time:
		return "CAST(" + m.b.leaf(n, formWall) + " AS DATETIME(6))"
	case expr.String, expr.Bytes, expr.JSON:
		return "CAST(" + m.b.leaf(n, formPlain) + " AS BINARY)"
	}
	return m.b.leaf(n, formPlain) // bool, and a duration, which INTERVAL takes bare
}

func (m mysql) float(f float64) string {
	return "CAST(" + m.b.constant(f, expr.Float) + " AS DOUBLE)"
}

func (m mysql) moment(t time.Time) string {
	return "CAST(" + m.b.constant(formWall.of(t), expr.Time) + " AS DATETIME(6))"
}

func (mysql) comparable(x string) string { return x }

func (mysql) state(mark string, _ expr.Type) string { return mark }

func (m mysql) read(c Column) texts {
	switch c.Type {
	case expr.String, expr.JSON:
		return texts{value: "CAST(CONVERT(" + c.Name + " USING utf8mb4) AS BINARY)"}
	case expr.Bool:
		return texts{value: "(" + c.Name + " <> 0)"}
	case expr.Time: // zero dates
		first, _ := expr.TimeRange()
		return texts{c.Name, notFalse(c.Name + " >= " + m.moment(first))}
	}
	return texts{value: c.Name}
}

func wide(x string) string { return "CAST(" + x + " AS DECIMAL(65,0))" }

func (m mysql) arithmetic(n *expr.Node, x, y string) texts {
	switch n.Type {
	case expr.Int:
		return mysqlInt(n.Op, wide(x), wide(y))
	case expr.Decimal:
		if n.Op == expr.OpNeg {
			return texts{value: "(0 - " + x + ")"}
		}
		value := "LEAST(GREATEST(" + x + " " + signs[n.Op] + " " + y + ", -1000000000000), 1000000000000)"
		return texts{value, notFalse("ABS(" + value + ") < 1000000000000")}
	case expr.Float:
		return floatArithmetic(n, x, y)
	case expr.String:
		value := "CONCAT(" + x + ", " + y + ")"
		return texts{value, notFalse("CHAR_LENGTH(CONVERT(" + value + " USING utf8mb4)) <= 255")}
	case expr.Time:
		return m.shift(n, x)
	}
	return texts{value: "TIMESTAMPDIFF(MICROSECOND, " + y + ", " + x + ")"}
}

// mysqlInt adds 0 behind divisions: a remainder can be a -0 that is not equal to 0.
func mysqlInt(op expr.Op, x, y string) texts {
	switch op {
	case expr.OpNeg:
		value := "(0 - " + x + ")"
		return texts{value, inInt64(value)}
	case expr.OpDiv:
		value := "(TRUNCATE(" + x + " / NULLIF(" + y + ", 0), 0) + 0)"
		return texts{value, all(notFalse(y+" <> 0"), inInt64(value))}
	case expr.OpMod:
		return texts{"(" + x + " % NULLIF(" + y + ", 0) + 0)", notFalse(y + " <> 0")}
	}
	value := "LEAST(GREATEST(" + x + " " + signs[op] + " " + y + ", -9223372036854775809), 9223372036854775808)"
	return texts{value, inInt64(value)}
}

// shift adds a duration to a time that is first kept where the sum stays in range: a
// sum outside raises in SET. The check looks at the time, not at the sum.
func (m mysql) shift(n *expr.Node, x string) texts {
	d, _ := n.Args[1].Value.(time.Duration)
	if n.Op == expr.OpSub {
		d = -d
	}
	low, high := expr.TimeRange()
	if d > 0 {
		high = high.Add(-d)
	} else {
		low = low.Add(-d)
	}
	lo, hi := m.moment(low), m.moment(high)
	micros := m.b.constant(d.Microseconds(), expr.Duration)
	return texts{
		value: "(LEAST(GREATEST(" + x + ", " + lo + "), " + hi + ") + INTERVAL " + micros + " MICROSECOND)",
		check: notFalse(x + " BETWEEN " + lo + " AND " + hi),
	}
}

// assign keeps integers in range before it casts them: the check rejects what is
// outside, but no text may raise by itself.
func (m mysql) assign(n *expr.Node, c Column) texts {
	v := m.b.value(n)
	switch n.Type {
	case expr.Int:
		check := fitsInt(v, c.Limits)
		if computes(n) {
			v = "CAST(LEAST(GREATEST(" + v + ", -9223372036854775808), 9223372036854775807) AS SIGNED)"
		}
		return texts{v, check}
	case expr.Float:
		if computes(n) {
			v = "(" + v + " + 0)" // there is no -0
		}
	case expr.String, expr.JSON:
		text := "CONVERT(" + v + " USING utf8mb4)"
		return texts{text, fitsLength("CHAR_LENGTH("+text+")", c.Limits)}
	case expr.Decimal:
		whole, scale, narrow := c.Limits.DecimalLimits()
		if narrow {
			fits := "ABS(" + v + ") < " + power(whole) + " AND " + v + " = ROUND(" + v + ", " + strconv.Itoa(scale) + ")"
			return texts{v, notFalse(fits)}
		}
	}
	return texts{value: v}
}
