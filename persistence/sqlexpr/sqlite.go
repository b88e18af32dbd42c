package sqlexpr

import (
	"strconv"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// sqlite computes decimals in millionths and times in microseconds, both as INTEGER;
// they are stored as the texts that a user's own SELECT scans. Integer overflow turns
// into REAL there, which only typeof tells: MinInt64 - 1 is REAL -2^63, in range.
type sqlite struct{ b *Builder }

const (
	maxUnits  = "999999999999999999" // 10^12 - 10^-6 in millionths
	minMicros = "-62135596799999999"
	maxMicros = "253402300799999999"
)

func (sqlite) null(expr.Type) string { return "NULL" }

// param needs no cast: the type of the bound value decides.
func (s sqlite) param(n *expr.Node) string {
	if n.Type == expr.Time || n.Type == expr.Decimal {
		return s.b.leaf(n, formUnits)
	}
	return s.b.leaf(n, formPlain)
}

func (s sqlite) float(f float64) string { return s.b.constant(f, expr.Float) }

func (sqlite) comparable(x string) string { return x + " COLLATE BINARY" }

func (sqlite) state(mark string, _ expr.Type) string { return mark }

// read checks the storage class: SQLite keeps any value in any column.
func (s sqlite) read(c Column) texts {
	switch c.Type {
	case expr.Int:
		return texts{c.Name, "typeof(" + c.Name + ") IN ('integer', 'null')"}
	case expr.Float:
		finite := notFalse("ABS(" + c.Name + ") <= " + s.float(maxFloat64))
		return texts{c.Name, all("typeof("+c.Name+") IN ('real', 'null')", finite)}
	case expr.String:
		return texts{c.Name, "typeof(" + c.Name + ") IN ('text', 'null')"}
	case expr.Bool:
		return texts{"(" + c.Name + " > 0)", "typeof(" + c.Name + ") IN ('integer', 'null')"}
	case expr.Time:
		return sqliteTime(c.Name)
	case expr.Decimal:
		return sqliteDecimal(c.Name)
	}
	return texts{value: c.Name}
}

// sqliteTime reads every text the driver writes, in any zone, with any number of digits
// after the second. The zone is the last six characters if they look like one.
func sqliteTime(c string) texts {
	zoned := "substr(" + c + ", -6, 1) IN ('+', '-') AND substr(" + c + ", -3, 1) = ':'"
	zone := "CASE WHEN " + zoned + " THEN substr(" + c + ", -6) ELSE '' END"
	body := "CASE WHEN " + zoned + " THEN substr(" + c + ", 1, length(" + c + ") - 6) ELSE rtrim(" + c + ", 'Z') END"
	seconds := "CAST(strftime('%s', substr(" + c + ", 1, 19) || " + zone + ") AS INTEGER)"
	micros := "CAST(substr(substr(" + body + ", 21) || '000000', 1, 6) AS INTEGER)"
	value := "(" + seconds + " * 1000000 + " + micros + ")"
	readable := "strftime('%s', substr(" + c + ", 1, 19) || " + zone + ") IS NOT NULL"
	return texts{value, "(" + c + " IS NULL OR typeof(" + c + ") = 'text' AND " + readable +
		" AND " + value + " BETWEEN " + minMicros + " AND " + maxMicros + ")"}
}

// sqliteDecimal drops the point and fills up to six digits behind it.
func sqliteDecimal(c string) texts {
	missing := "CASE instr(" + c + ", '.') WHEN 0 THEN 6 ELSE 6 - length(" + c + ") + instr(" + c + ", '.') END"
	value := "CAST(replace(" + c + ", '.', '') || substr('000000', 1, " + missing + ") AS INTEGER)"
	plain := "typeof(" + c + ") IN ('text', 'integer') AND " + c + " GLOB '*[0-9]*' AND " + c + " NOT GLOB '*[^-0-9.]*' AND " +
		c + " NOT GLOB '?*-*' AND " + c + " NOT GLOB '*.*.*' AND " + missing + " >= 0"
	return texts{value, "(" + c + " IS NULL OR " + plain + " AND " + value + " BETWEEN -" + maxUnits + " AND " + maxUnits + ")"}
}

func (s sqlite) arithmetic(n *expr.Node, x, y string) texts {
	value := "(" + x + " " + signs[n.Op] + " " + y + ")"
	if n.Op == expr.OpNeg {
		value = "(- " + x + ")"
	}
	switch n.Type {
	case expr.Int:
		check := "typeof(" + value + ") <> 'real'"
		switch n.Op {
		case expr.OpDiv:
			check = all(notFalse(y+" <> 0"), check)
		case expr.OpMod:
			check = notFalse(y + " <> 0")
		}
		return texts{value, check}
	case expr.Decimal:
		if n.Op == expr.OpNeg {
			return texts{value: value}
		}
		return texts{value, notFalse(value + " BETWEEN -" + maxUnits + " AND " + maxUnits)}
	case expr.Float:
		return floatArithmetic(n, x, y)
	case expr.String:
		value = "(" + x + " || " + y + ")"
		return texts{value, notFalse("length(" + value + ") <= 255")}
	case expr.Time:
		return texts{value, notFalse(value + " BETWEEN " + minMicros + " AND " + maxMicros)}
	}
	return texts{value: value} // the difference of two times
}

var signs = map[expr.Op]string{expr.OpAdd: "+", expr.OpSub: "-", expr.OpMul: "*", expr.OpDiv: "/", expr.OpMod: "%"}

// floatArithmetic is the same everywhere: the bound of the operands and the static
// count keep every step in range.
func floatArithmetic(n *expr.Node, x, y string) texts {
	switch n.Op {
	case expr.OpNeg:
		return texts{value: "(- " + x + ")"}
	case expr.OpDiv:
		return texts{"(" + x + " / NULLIF(" + y + ", 0))", notFalse(y + " <> 0")}
	}
	return texts{value: "(" + x + " " + signs[n.Op] + " " + y + ")"}
}

// assign writes the texts that the driver itself writes. What is only handed through is
// bound or copied as it is.
func (s sqlite) assign(n *expr.Node, c Column) texts {
	v := s.b.value(n)
	check := s.fits(v, c)
	if n.Type != expr.Time && n.Type != expr.Decimal {
		return texts{v, check}
	}
	switch {
	case n.Op == expr.OpField && !s.b.column(n.Name).Bound:
		return texts{s.b.column(n.Name).Name, check}
	case n.Op == expr.OpLit && n.Value == nil:
		return texts{"NULL", ""}
	case n.Op == expr.OpLit, n.Op == expr.OpArg, n.Op == expr.OpField, n.Op == expr.OpNow:
		if n.Type == expr.Time {
			return texts{s.b.leaf(n, formMoment), check}
		}
		return texts{s.b.leaf(n, formText), check}
	case n.Type == expr.Time:
		return texts{writeTime(v), check}
	}
	return texts{writeDecimal(v), check}
}

func (s sqlite) fits(v string, c Column) string {
	switch c.Type {
	case expr.Int:
		return fitsInt(v, c.Limits)
	case expr.String:
		return fitsLength("length("+v+")", c.Limits)
	case expr.Decimal:
		whole, scale, narrow := c.Limits.DecimalLimits()
		if !narrow {
			return ""
		}
		bound, step := power(whole+6), power(6-scale)
		return notFalse("max(" + v + ", - " + v + ") < " + bound + " AND " + v + " % " + step + " = 0")
	}
	return ""
}

// writeTime turns microseconds into the driver's text for UTC.
func writeTime(v string) string {
	r := "((" + v + " % 1000000 + 1000000) % 1000000)"
	return "(strftime('%Y-%m-%d %H:%M:%S', (" + v + " - " + r + ") / 1000000, 'unixepoch') || CASE " + r +
		" WHEN 0 THEN '' ELSE '.' || rtrim(printf('%06d', " + r + "), '0') END || '+00:00')"
}

// writeDecimal turns millionths into a decimal without trailing zeros. max and not abs:
// abs raises for MinInt64.
func writeDecimal(v string) string {
	m := "max(" + v + ", - " + v + ")"
	return "(CASE WHEN " + v + " < 0 THEN '-' ELSE '' END || (" + m + " / 1000000) || CASE (" + m +
		" % 1000000) WHEN 0 THEN '' ELSE '.' || rtrim(printf('%06d', " + m + " % 1000000), '0') END)"
}

// power returns 10^n in digits.
func power(n int) string {
	p := int64(1)
	for range n {
		p *= 10
	}
	return strconv.FormatInt(p, 10)
}
