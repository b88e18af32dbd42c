package definitions

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Canonical returns the definition in one fixed form: JSON, which is also YAML,
// with everything written out that differs from the defaults of the format. Parse
// reads it back to an equal machine. Two files that differ in the order of keys,
// in comments or in layout have one canonical form; states keep their order.
func (m *Machine) Canonical() []byte {
	w := &jsonWriter{}
	m.write(w)
	w.buf.WriteByte('\n')
	return w.buf.Bytes()
}

// jsonWriter writes JSON, one member of the outer two levels a line.
type jsonWriter struct {
	buf   bytes.Buffer
	depth int
	count []int // members written at each open level
}

func (w *jsonWriter) open(bracket byte) {
	w.buf.WriteByte(bracket)
	w.count = append(w.count, 0)
	w.depth++
}

func (w *jsonWriter) close(bracket byte) {
	w.depth--
	if w.depth < 2 && w.count[w.depth] > 0 {
		w.newline()
	}
	w.count = w.count[:w.depth]
	w.buf.WriteByte(bracket)
}

func (w *jsonWriter) newline() {
	w.buf.WriteByte('\n')
	w.buf.WriteString(strings.Repeat("  ", w.depth))
}

// next begins a member of the open object or array.
func (w *jsonWriter) next() {
	last := w.depth - 1
	if w.count[last] > 0 {
		w.buf.WriteByte(',')
		if w.depth > 2 {
			w.buf.WriteByte(' ')
		}
	}
	w.count[last]++
	if w.depth <= 2 {
		w.newline()
	}
}

func (w *jsonWriter) key(name string) {
	w.next()
	w.string(name)
	w.buf.WriteString(": ")
}

// string writes s so that JSON and YAML read the same text, and so that what
// cannot be seen is written as an escape.
func (w *jsonWriter) string(s string) {
	w.buf.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			w.buf.WriteByte('\\')
			w.buf.WriteRune(r)
		case r == '\n':
			w.buf.WriteString(`\n`)
		case r == '\t':
			w.buf.WriteString(`\t`)
		case isControl(r) || isInvisible(r):
			fmt.Fprintf(&w.buf, `\u%04x`, r)
		default:
			w.buf.WriteRune(r)
		}
	}
	w.buf.WriteByte('"')
}

func (w *jsonWriter) textMember(key, value string) {
	if value != "" {
		w.key(key)
		w.string(value)
	}
}

func (w *jsonWriter) flagMember(key string, value bool) {
	if value {
		w.key(key)
		w.buf.WriteString("true")
	}
}

func (w *jsonWriter) listMember(key string, list []string) {
	if len(list) > 0 {
		w.key(key)
		w.list(list)
	}
}

func (w *jsonWriter) list(list []string) {
	w.open('[')
	for _, s := range list {
		w.next()
		w.string(s)
	}
	w.close(']')
}

func (w *jsonWriter) scaleMember(scale int) {
	if scale >= 0 {
		w.key("scale")
		w.buf.WriteString(strconv.Itoa(scale))
	}
}

// oneOrList writes a single entry bare, as the short forms have it.
func (w *jsonWriter) oneOrList(list []string) {
	if len(list) == 1 {
		w.string(list[0])
		return
	}
	w.list(list)
}

func (m *Machine) write(w *jsonWriter) {
	w.open('{')
	w.textMember("machine", m.Name)
	w.textMember("doc", m.Doc)
	w.key("table")
	m.Table.write(w)
	if len(m.Fields) > 0 {
		w.key("fields")
		w.open('{')
		for i := range m.Fields {
			m.Fields[i].write(w)
		}
		w.close('}')
	}
	w.key("initial")
	w.oneOrList(m.Initial)
	if m.Create.Emit != "" {
		w.key("create")
		w.open('{')
		w.textMember("emit", m.Create.Emit)
		w.close('}')
	}
	m.writeStates(w)
	w.key("transitions")
	w.open('{')
	for i := range m.Transitions {
		m.Transitions[i].write(w)
	}
	w.close('}')
	m.writeUnique(w)
	m.Journal.write(w)
	w.close('}')
}

func (m *Machine) writeStates(w *jsonWriter) {
	w.key("states")
	w.open('{')
	for i := range m.States {
		m.States[i].write(w)
	}
	w.close('}')
	if len(m.Groups) == 0 {
		return
	}
	w.key("groups")
	w.open('{')
	for _, g := range m.Groups {
		w.key(g.Name)
		w.list(g.States)
	}
	w.close('}')
}

func (m *Machine) writeUnique(w *jsonWriter) {
	if len(m.Unique) == 0 {
		return
	}
	w.key("unique")
	w.open('[')
	for _, key := range m.Unique {
		w.next()
		w.list(key)
	}
	w.close(']')
}

func (t Table) write(w *jsonWriter) {
	w.open('{')
	w.textMember("name", t.Name)
	t.ID.write(w, "id")
	t.Status.write(w, "status")
	w.textMember("version", t.Version)
	w.close('}')
}

func (c Column) write(w *jsonWriter, key string) {
	w.key(key)
	w.open('{')
	w.textMember("column", c.Name)
	w.textMember("type", c.Type.String())
	w.close('}')
}

func (f *Field) write(w *jsonWriter) {
	w.key(f.Name)
	w.open('{')
	w.textMember("type", f.Type.String())
	if f.Column != f.Name {
		w.textMember("column", f.Column)
	}
	w.scaleMember(f.Scale)
	w.flagMember("nullable", f.Nullable)
	if f.Default != nil {
		w.key("default")
		w.string(f.Default.Text)
	}
	w.textMember("doc", f.Doc)
	w.close('}')
}

func (s *State) write(w *jsonWriter) {
	w.key(s.Name)
	w.open('{')
	w.flagMember("final", s.Final)
	if s.Value != s.Name {
		w.textMember("value", fmt.Sprint(s.Value))
	}
	var aliases []string
	for _, a := range s.Aliases {
		aliases = append(aliases, fmt.Sprint(a))
	}
	w.listMember("aliases", aliases)
	if s.Timeout != nil {
		w.key("timeout")
		w.open('{')
		w.textMember("after", s.Timeout.After.String())
		w.textMember("fire", s.Timeout.Fire)
		w.close('}')
	}
	w.textMember("doc", s.Doc)
	w.close('}')
}

func (j Journal) write(w *jsonWriter) {
	switch {
	case !j.Enabled:
		w.key("journal")
		w.buf.WriteString("false")
	case j.Table != defaultJournal:
		w.key("journal")
		w.open('{')
		w.textMember("table", j.Table)
		w.close('}')
	}
}

func (t *Transition) write(w *jsonWriter) {
	w.key(t.Name)
	w.open('{')
	w.textMember("doc", t.Doc)
	short := len(t.Moves) == 1 && t.Moves[0].When == nil && len(t.Moves[0].Set) == 0
	if short {
		t.Moves[0].write(w)
	}
	t.writeArgs(w)
	writeWhen(w, t.When)
	writeSet(w, t.Set)
	if !short {
		w.key("moves")
		w.open('[')
		for i := range t.Moves {
			w.next()
			w.open('{')
			t.Moves[i].write(w)
			writeWhen(w, t.Moves[i].When)
			writeSet(w, t.Moves[i].Set)
			w.close('}')
		}
		w.close(']')
	}
	t.writeKeys(w)
	w.textMember("emit", t.Emit)
	w.textMember("guard", t.Guard)
	w.textMember("effect", t.Effect)
	w.textMember("after", t.After)
	w.close('}')
}

func (t *Transition) writeKeys(w *jsonWriter) {
	switch {
	case t.Key.Required:
		w.textMember("key", "required")
	case t.Key.Derived():
		w.key("key")
		w.open('[')
		for _, name := range t.Key.Args {
			w.next()
			w.string("args." + name)
		}
		w.close(']')
	}
	w.listMember("identity", t.Identity)
	if t.DuplicatesSaid {
		w.textMember("duplicates", string(t.Duplicates))
	}
}

func (t *Transition) writeArgs(w *jsonWriter) {
	if len(t.Args) == 0 {
		return
	}
	w.key("args")
	w.open('{')
	for i := range t.Args {
		t.Args[i].write(w)
	}
	w.close('}')
}

func (a *Arg) write(w *jsonWriter) {
	if a.Doc == "" && !a.Secret && a.Scale < 0 {
		short := a.Type.String()
		if a.Optional {
			short += "?"
		}
		w.textMember(a.Name, short)
		return
	}
	w.key(a.Name)
	w.open('{')
	w.textMember("type", a.Type.String())
	w.scaleMember(a.Scale)
	w.flagMember("optional", a.Optional)
	w.flagMember("secret", a.Secret)
	w.textMember("doc", a.Doc)
	w.close('}')
}

func (m *Move) write(w *jsonWriter) {
	w.key("from")
	if m.Any {
		w.string("*")
	} else {
		w.oneOrList(m.From)
	}
	w.key("to")
	if len(m.Targets) == 1 && m.Targets[0].When == nil {
		w.string(m.Targets[0].State)
		return
	}
	w.open('[')
	for _, t := range m.Targets {
		w.next()
		w.open('{')
		w.textMember("state", t.State)
		writeWhen(w, t.When)
		w.close('}')
	}
	w.close(']')
}

func writeWhen(w *jsonWriter, e *expr.Expr) {
	if e != nil {
		w.textMember("when", e.Source)
	}
}

func writeSet(w *jsonWriter, set []Assignment) {
	if len(set) == 0 {
		return
	}
	w.key("set")
	w.open('{')
	for _, a := range set {
		w.textMember(a.Field, a.Value.Source)
	}
	w.close('}')
}
