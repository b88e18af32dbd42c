package persistence

import (
	"encoding/json"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// values is what the binds of a statement choose from.
type values struct {
	call   *engine.Call
	create *engine.Creation
	q      *engine.Inquiry
	id     any // in the id column's type
	entity any // the id as the journal holds it, a string
	edge   edge
	row    []any // the row's values, where the CAS binds them

	// What one statement after the other needs, so that a call allocates it once.
	buf                   [16]any
	dest                  [2]any
	rawStatus, rawVersion any
}

// values makes what the binds of a row's statements choose from.
func (t *table) values(id string) *values {
	v := &values{id: t.idValue(id)}
	if v.entity = v.id; v.id != any(id) {
		v.entity = id
	}
	return v
}

func (t *table) callValues(call *engine.Call) *values {
	v := t.values(call.ID)
	v.call = call
	return v
}

// edge is what a step has decided before it writes.
type edge struct {
	from, to int
	version  int64 // after
}

// bind gives the value of one parameter.
type bind func(v *values) any

// statement is an SQL text with the values it binds, in order.
type statement struct {
	text  string
	binds []bind
}

// args are the values of one execution. They hold until the next statement of the same
// call asks for its own.
func (s *statement) args(v *values) []any {
	out := v.buf[:0]
	for _, b := range s.binds {
		out = append(out, b(v))
	}
	return out
}

// builder writes a statement. It is the one place where SQL text comes together:
// from constants, quoted identifiers and placeholders only.
type builder struct {
	d     Dialect
	b     strings.Builder
	binds []bind
}

// sql appends constant text.
func (b *builder) sql(text ...string) *builder {
	for _, t := range text {
		b.b.WriteString(t)
	}
	return b
}

// name appends a quoted identifier.
func (b *builder) name(ident string) *builder {
	b.b.WriteString(b.d.Quote(ident))
	return b
}

// table appends a quoted table name, which may be qualified by a schema.
func (b *builder) table(name string) *builder {
	b.b.WriteString(QuoteTable(b.d, name))
	return b
}

// param appends a placeholder bound to f.
func (b *builder) param(f bind) *builder {
	b.b.WriteString(b.placeholder(f))
	return b
}

// compared appends a placeholder that a journal column is compared with.
func (b *builder) compared(f bind) *builder {
	return b.param(f).sql(b.d.Features().Compared)
}

func (b *builder) placeholder(f bind) string {
	b.binds = append(b.binds, f)
	return b.d.Param(len(b.binds))
}

// equal appends a comparison of a column with a parameter, by bytes for text.
func (b *builder) equal(column string, isText bool, f bind) *builder {
	p := b.placeholder(f)
	if isText {
		return b.sql(b.d.TextEqual(column, p))
	}
	return b.sql(column, " = ", p)
}

func (b *builder) statement() statement { return statement{b.b.String(), b.binds} }

// QuoteTable quotes a table name that may be qualified by a schema.
func QuoteTable(d Dialect, name string) string {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return d.Quote(schema) + "." + d.Quote(table)
	}
	return d.Quote(name)
}

// constant binds the same value at every call.
func constant(v any) bind { return func(*values) any { return v } }

// bindValue turns a canonical value into what the drivers take.
func bindValue(v any) any {
	switch v := v.(type) {
	case decimal.Decimal:
		return string(expr.AppendText(nil, expr.Decimal, v))
	case json.RawMessage:
		return string(v)
	}
	return v
}

// nullable binds "" as NULL.
func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func nullableBytes(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}
