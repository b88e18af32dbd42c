package expr

import (
	"strconv"
	"strings"
	"time"
)

// String writes the operation as source, with no more parentheses than it needs.
func (n *Node) String() string {
	var b strings.Builder
	n.write(&b, 0)
	return b.String()
}

// The binding strengths of the parser, the loosest first.
const (
	bindCoalesce = iota + 1 // tightest of all, but the parser wants parentheses around it
	bindCond
	bindOr
	bindAnd
	bindCompare
	bindAdd
	bindNot
	bindMul
	bindNeg
	bindAtom
)

func (n *Node) binding() int {
	switch n.Op {
	case OpCond:
		return bindCond
	case OpOr:
		return bindOr
	case OpAnd:
		return bindAnd
	case OpEq, OpNe, OpLt, OpLe, OpGt, OpGe, OpIn, OpNotIn, OpIsNil, OpNotNil:
		return bindCompare
	case OpAdd, OpSub:
		return bindAdd
	case OpNot:
		return bindNot
	case OpMul, OpDiv, OpMod:
		return bindMul
	case OpNeg:
		return bindNeg
	case OpCoalesce:
		return bindCoalesce
	case OpLit:
		if strings.HasPrefix(literalText(n), "-") {
			return bindNeg
		}
	}
	return bindAtom
}

// write writes n, in parentheses if it binds more loosely than outer.
func (n *Node) write(b *strings.Builder, outer int) {
	own := n.binding()
	if own < outer {
		b.WriteByte('(')
		defer b.WriteByte(')')
	}
	switch n.Op {
	case OpLit:
		b.WriteString(literalText(n))
	case OpField, OpArg:
		b.WriteString(source(n))
	case OpNow:
		b.WriteString("now()")
	case OpNeg:
		b.WriteByte('-')
		n.Args[0].write(b, own+1)
	case OpNot:
		b.WriteString("not ")
		n.Args[0].write(b, own)
	case OpIsNil, OpNotNil:
		n.Args[0].write(b, own+1)
		b.WriteString(" " + n.Op.String())
	case OpIn, OpNotIn:
		n.writeIn(b)
	case OpCond:
		n.Args[0].write(b, own+1)
		b.WriteString(" ? ")
		n.Args[1].write(b, own+1)
		b.WriteString(" : ")
		n.Args[2].write(b, own)
	case OpCoalesce:
		n.Args[0].write(b, bindAtom)
		b.WriteString(" ?? ")
		n.Args[1].write(b, bindAtom)
	default:
		left := own
		if own == bindCompare {
			left++ // a < b < c would be a chain
		}
		n.Args[0].write(b, left)
		b.WriteString(" " + n.Op.String() + " ")
		n.Args[1].write(b, own+1)
	}
}

func (n *Node) writeIn(b *strings.Builder) {
	n.Args[0].write(b, bindCompare+1)
	b.WriteString(" " + n.Op.String() + " [")
	for i, a := range n.Args[1:] {
		if i > 0 {
			b.WriteString(", ")
		}
		a.write(b, 0)
	}
	b.WriteByte(']')
}

// literalText writes a literal as source.
func literalText(n *Node) string {
	switch v := n.Value.(type) {
	case string:
		quoted := strconv.Quote(v)
		body := strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		return "'" + strings.ReplaceAll(body, "'", `\'`) + "'"
	case time.Duration:
		return "duration('" + v.String() + "')"
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	case number:
		return v.text
	}
	return FormatValue(n.Type, n.Value)
}
