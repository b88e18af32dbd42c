package sqlexpr

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Source says where the value of a parameter comes from.
type Source uint8

// The sources.
const (
	FromLiteral Source = iota // Slot.Literal
	FromArg                   // Binding.Arg(Slot.Name)
	FromField                 // Binding.Field(Slot.Name)
	FromNow                   // Binding.Now
	FromOwn                   // Binding.Own[Slot.Index]
)

// form is how a value is handed to the driver.
type form uint8

const (
	formPlain  form = iota // the canonical value
	formUnits              // a decimal in millionths, a time in microseconds
	formText               // a decimal or JSON as text
	formWall               // a time as text in UTC, for drivers that would shift it
	formMoment             // a time as time.Time
)

// A Slot says what one parameter of a statement is.
type Slot struct {
	Source  Source
	Name    string
	Index   int
	Literal any // ready for the driver

	form form
}

// Of returns what the driver takes for canonical value v of the slot's source; a
// literal is its own value. It is [Statement.Bind] for callers with values of their own
// shape.
func (s *Slot) Of(v any) any {
	if s.Source == FromLiteral {
		return s.Literal
	}
	return s.form.of(v)
}

// slotKey tells slots apart. Equal ones are one parameter where parameters have
// numbers, so each value is bound once per type.
type slotKey struct {
	source Source
	name   string
	index  int
	value  any
	typ    expr.Type
	form   form
}

// mark encloses the index of a slot in a text under construction. No name and no
// constant holds it.
const mark = "\x00"

func (b *Builder) mark(s Slot) string { return b.typedMark(s, expr.Invalid) }

func (b *Builder) typedMark(s Slot, t expr.Type) string {
	key := slotKey{source: s.Source, name: s.Name, index: s.Index, value: s.Literal, typ: t, form: s.form}
	i, ok := b.index[key]
	if !ok {
		i = len(b.slots)
		b.slots = append(b.slots, s)
		b.index[key] = i
	}
	return mark + strconv.Itoa(i) + mark
}

// leaf returns the parameter of a literal, an arg, a bound field or now().
func (b *Builder) leaf(n *expr.Node, f form) string {
	s := Slot{Name: n.Name, form: f}
	switch n.Op {
	case expr.OpArg:
		s.Source = FromArg
	case expr.OpField:
		s.Source = FromField
	case expr.OpNow:
		s.Source = FromNow
	default:
		s.Source, s.Literal = FromLiteral, f.of(n.Value)
	}
	return b.typedMark(s, n.Type)
}

// constant returns a parameter of our own, for values whose text might be read
// inexactly.
func (b *Builder) constant(v any, t expr.Type) string {
	return b.typedMark(Slot{Literal: v}, t)
}

// Binding holds the values of one call. Arg and Field return canonical values, as
// [expr.Coerce] makes them.
type Binding struct {
	Arg   func(name string) any
	Field func(name string) any
	Now   time.Time
	Own   []any // handed to the driver as they are
}

// Bind appends the values of the statement's parameters to dst.
func (st *Statement) Bind(dst []any, in Binding) []any {
	for i := range st.Slots {
		dst = append(dst, st.Slots[i].bind(&in))
	}
	return dst
}

func (s *Slot) bind(in *Binding) any {
	switch s.Source {
	case FromLiteral:
		return s.Literal
	case FromArg:
		return s.form.of(in.Arg(s.Name))
	case FromField:
		return s.form.of(in.Field(s.Name))
	case FromNow:
		return s.form.of(in.Now)
	case FromOwn:
		return in.Own[s.Index]
	}
	return nil
}

const wallLayout = "2006-01-02 15:04:05.000000"

// of returns a canonical value as the driver shall see it.
func (f form) of(v any) any {
	switch x := v.(type) {
	case decimal.Decimal:
		return f.ofDecimal(x)
	case time.Time:
		return f.ofTime(x)
	case time.Duration:
		return x.Microseconds()
	case json.RawMessage:
		return string(x)
	}
	return v
}

func (f form) ofTime(tm time.Time) any {
	switch f {
	case formUnits:
		return tm.UnixMicro()
	case formWall:
		return tm.UTC().Format(wallLayout)
	case formPlain, formText, formMoment:
	}
	return tm.UTC().Truncate(time.Microsecond)
}

func (f form) ofDecimal(d decimal.Decimal) any {
	if f != formUnits {
		return string(expr.AppendText(nil, expr.Decimal, d))
	}
	units, err := expr.Units(d)
	if err != nil { // no canonical value; the statement then matches nothing
		return fmt.Sprint("not a decimal: ", err)
	}
	return units
}
