package sqlexpr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Dialect is the SQL a text is written in.
type Dialect uint8

// The dialects.
const (
	SQLite Dialect = iota
	Postgres
	MySQL // MySQL and MariaDB
)

// A Column is where the value of a field stands.
type Column struct {
	// Name is the column's name as it stands in SQL: quoted, and qualified where the
	// statement needs it.
	Name string
	// Target is the name on the left of SET, where that may not be qualified. Empty: Name.
	Target string
	Type   expr.Type
	Limits expr.Limits
	// SQLType is the column's own type where a value has to be cast to it and the type
	// alone does not say which: jsonb instead of json on PostgreSQL.
	SQLType string
	// Bound has reads of the column bound as values of [Binding.Field] instead: for a row
	// that was read and locked before.
	Bound bool
}

func (c Column) target() string {
	if c.Target != "" {
		return c.Target
	}
	return c.Name
}

// A Builder collects the texts of one statement. Its texts hold marks where parameters
// stand and are of use only to its own [Builder.Build]. It is not safe for concurrent
// use.
type Builder struct {
	dialect Dialect
	forms   forms
	columns map[string]Column
	slots   []Slot
	index   map[slotKey]int
	memo    map[*expr.Node]texts
	err     error
}

// New returns a Builder for statements over a row whose fields stand in columns.
func New(d Dialect, columns map[string]Column) *Builder {
	b := &Builder{dialect: d, columns: columns, index: map[slotKey]int{}, memo: map[*expr.Node]texts{}}
	switch d {
	case Postgres:
		b.forms = postgres{b}
	case MySQL:
		b.forms = mysql{b}
	default:
		b.forms = sqlite{b}
	}
	return b
}

// Own returns a parameter of the caller's: value i of [Binding.Own].
func (b *Builder) Own(i int) string {
	return b.mark(Slot{Source: FromOwn, Index: i})
}

// Condition returns the text of a condition: true where it holds, otherwise false or
// NULL, also where it is rejected.
func (b *Builder) Condition(e *expr.Expr) string {
	return all(b.check(e.Root), b.value(e.Root))
}

// Check returns the text that is true where e is not rejected; empty if it never is.
func (b *Builder) Check(e *expr.Expr) string { return b.check(e.Root) }

// Value returns the text of the value of e, as comparisons need it. What belongs into a
// column comes from [Builder.Set].
func (b *Builder) Value(e *expr.Expr) string { return b.value(e.Root) }

// column returns the column of a field, and remembers if there is none.
func (b *Builder) column(name string) Column {
	c, ok := b.columns[name]
	if !ok && b.err == nil {
		b.err = fmt.Errorf("sqlexpr: no column for the field %q", name)
	}
	return c
}

// A Statement is a text and what its parameters are. It is immutable and safe for
// concurrent use.
type Statement struct {
	Text  string
	Slots []Slot // in the order the driver takes them
}

// Build numbers the parameters of a text put together from this builder's.
func (b *Builder) Build(text string) (Statement, error) {
	if b.err != nil {
		return Statement{}, b.err
	}
	var out strings.Builder
	st := Statement{}
	number := map[int]int{} // of each slot met so far
	for {
		before, rest, found := strings.Cut(text, mark)
		out.WriteString(before)
		if !found {
			break
		}
		digits, after, _ := strings.Cut(rest, mark)
		slot, err := strconv.Atoi(digits)
		if err != nil || slot >= len(b.slots) {
			return Statement{}, fmt.Errorf("sqlexpr: a text that is not this builder's")
		}
		text = after
		if b.dialect == MySQL { // knows no numbers: one parameter for each place
			out.WriteByte('?')
			st.Slots = append(st.Slots, b.slots[slot])
			continue
		}
		n, seen := number[slot]
		if !seen {
			st.Slots = append(st.Slots, b.slots[slot])
			n = len(st.Slots)
			number[slot] = n
		}
		out.WriteByte("?$"[b.dialect])
		out.WriteString(strconv.Itoa(n))
	}
	st.Text = out.String()
	return st, nil
}

// all joins conditions that are not empty.
func all(conditions ...string) string { return join(" AND ", conditions) }

func join(sep string, conditions []string) string {
	kept := conditions[:0:0]
	for _, c := range conditions {
		if c != "" {
			kept = append(kept, c)
		}
	}
	return strings.Join(kept, sep)
}

// either joins two conditions of which the second may be empty, which is true.
func either(a, b string) string {
	if b == "" {
		return ""
	}
	return "(" + a + " OR " + b + ")"
}
