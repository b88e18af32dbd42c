package sqlexpr

import (
	"math"
	"strconv"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// postgres raises an error on overflow, also of constants while it plans, and that
// ends the caller's transaction. So integers are computed as numeric, which cannot
// overflow, and every value that is cast back stands in a CASE that tests it.
type postgres struct{ b *Builder }

const (
	maxFloat64 = math.MaxFloat64
	firstTime  = "TIMESTAMPTZ '0001-01-01 00:00:00.000001+00'"
	lastTime   = "TIMESTAMPTZ '9999-12-31 23:59:59.999999+00'"
)

var postgresTypes = map[expr.Type]string{
	expr.String: "text", expr.Int: "bigint", expr.Float: "float8", expr.Bool: "boolean", expr.Time: "timestamptz",
	expr.Bytes: "bytea", expr.JSON: "json", expr.Decimal: "numeric", expr.Duration: "bigint",
}

func (postgres) null(t expr.Type) string { return "CAST(NULL AS " + postgresTypes[t] + ")" }

// param casts every parameter: without it the type is guessed from what stands beside.
func (p postgres) param(n *expr.Node) string {
	f := formPlain
	if n.Type == expr.Decimal || n.Type == expr.JSON {
		f = formText
	}
	return "CAST(" + p.b.leaf(n, f) + " AS " + postgresTypes[n.Type] + ")"
}

func (p postgres) float(f float64) string {
	return "CAST(" + p.b.constant(f, expr.Float) + " AS float8)"
}

func (postgres) comparable(x string) string { return x + ` COLLATE "C"` }

func (postgres) state(mark string, t expr.Type) string {
	return "CAST(" + mark + " AS " + postgresTypes[t] + ")"
}

func (p postgres) read(c Column) texts {
	switch c.Type {
	case expr.Float: // NaN is greater than every number
		return texts{c.Name, notFalse("ABS(" + c.Name + ") <= " + p.float(maxFloat64))}
	case expr.String:
		return texts{value: "CAST(" + c.Name + " AS text)"}
	case expr.Time: // outside of these, arithmetic raises
		within := c.Name + " BETWEEN " + firstTime + " AND " + lastTime
		return texts{"CASE WHEN " + within + " THEN " + c.Name + " END", notFalse(within)}
	case expr.Decimal:
		within := "ABS(" + c.Name + ") < 1000000000000 AND " + c.Name + " = ROUND(" + c.Name + ", 6)"
		return texts{"CASE WHEN " + within + " THEN " + c.Name + " END", notFalse(within)}
	case expr.JSON: // as json it keeps its text
		if c.SQLType == "jsonb" {
			return texts{value: "CAST(" + c.Name + " AS json)"}
		}
	}
	return texts{value: c.Name}
}

func numeric(x string) string { return "CAST(" + x + " AS numeric)" }

func (p postgres) arithmetic(n *expr.Node, x, y string) texts {
	switch n.Type {
	case expr.Int:
		return postgresInt(n.Op, numeric(x), numeric(y))
	case expr.Decimal:
		if n.Op == expr.OpNeg {
			return texts{value: "(- " + x + ")"}
		}
		value := "(" + x + " " + signs[n.Op] + " " + y + ")"
		return texts{value, notFalse("ABS(" + value + ") < 1000000000000")}
	case expr.Float:
		return floatArithmetic(n, x, y)
	case expr.String:
		value := "(" + x + " || " + y + ")"
		return texts{value, notFalse("char_length(" + value + ") <= 255")}
	case expr.Time:
		value := "(" + x + " " + signs[n.Op] + " " + y + " * INTERVAL '1 microsecond')"
		return texts{value, notFalse(value + " BETWEEN " + firstTime + " AND " + lastTime)}
	}
	return texts{value: "CAST(EXTRACT(EPOCH FROM (" + x + " - " + y + ")) * 1000000 AS bigint)"}
}

func postgresInt(op expr.Op, x, y string) texts {
	var value, check string
	switch op {
	case expr.OpNeg:
		value = "(- " + x + ")"
	case expr.OpDiv:
		value, check = "div("+x+", NULLIF("+y+", 0))", notFalse(y+" <> 0")
	case expr.OpMod:
		return texts{"mod(" + x + ", NULLIF(" + y + ", 0))", notFalse(y + " <> 0")}
	default:
		value = "(" + x + " " + signs[op] + " " + y + ")"
	}
	return texts{value, all(check, inInt64(value))}
}

// inInt64 is the check of integers that are computed wider than they are stored.
func inInt64(value string) string {
	return notFalse(value + " BETWEEN -9223372036854775808 AND 9223372036854775807")
}

// assign ends in a cast to the column's own type, behind a CASE where the cast could
// fail: constants are cast while the statement is planned, whatever WHERE says.
func (p postgres) assign(n *expr.Node, c Column) texts {
	v := p.b.value(n)
	switch n.Type {
	case expr.Int:
		fits := c.Limits
		if fits.Min == 0 && fits.Max == 0 && computes(n) {
			fits.Min, fits.Max = math.MinInt64, math.MaxInt64
		}
		return guardedCast(v, fitsInt(v, fits), fitsInt(v, c.Limits), integerType(c.Limits))
	case expr.String:
		check := fitsLength("char_length("+v+")", c.Limits)
		return guardedCast(v, check, check, "text")
	case expr.Decimal:
		whole, scale, narrow := c.Limits.DecimalLimits()
		within := notFalse("ABS(" + v + ") < " + power(whole) + " AND " + v + " = ROUND(" + v + ", " + strconv.Itoa(scale) + ")")
		if !narrow {
			return guardedCast(v, within, "", "numeric")
		}
		return guardedCast(v, within, within, "numeric")
	case expr.Float:
		if computes(n) {
			return texts{value: "(" + v + " + 0)"} // there is no -0
		}
	case expr.JSON:
		if c.SQLType == "jsonb" {
			return texts{value: "CAST(" + v + " AS jsonb)"}
		}
	}
	return texts{value: v}
}

func guardedCast(v, fits, check, sqlType string) texts {
	if fits != "" {
		v = "CASE WHEN " + fits + " THEN " + v + " END"
	}
	return texts{"CAST(" + v + " AS " + sqlType + ")", check}
}

// integerType is the narrowest type that takes what the column takes.
func integerType(l expr.Limits) string {
	switch {
	case l.Min == 0 && l.Max == 0, l.Max > math.MaxInt32, l.Min < math.MinInt32:
		return "bigint"
	case l.Max > math.MaxInt16, l.Min < math.MinInt16:
		return "integer"
	}
	return "smallint"
}

// computes reports whether n holds arithmetic.
func computes(n *expr.Node) bool {
	found := false
	n.Walk(func(n *expr.Node) {
		switch n.Op {
		case expr.OpNeg, expr.OpAdd, expr.OpSub, expr.OpMul, expr.OpDiv, expr.OpMod:
			found = true
		}
	})
	return found
}

func fitsInt(v string, l expr.Limits) string {
	if l.Min == 0 && l.Max == 0 {
		return ""
	}
	return notFalse(v + " BETWEEN " + strconv.FormatInt(l.Min, 10) + " AND " + strconv.FormatInt(l.Max, 10))
}

func fitsLength(length string, l expr.Limits) string {
	if l.Length == 0 {
		return ""
	}
	return notFalse(length + " <= " + strconv.Itoa(l.Length))
}
