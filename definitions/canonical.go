package definitions

import (
	"bytes"
	"fmt"

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

// checkWrittenOut holds that the canonical form is within the limits of a file: generated
// code holds it, and reads it when it starts.
func (l *loader) checkWrittenOut() {
	w := &jsonWriter{limit: maxFileSize}
	l.m.write(w)
	text := w.buf.Bytes()
	size := len(text) + 1 + bytes.Count(text, []byte("`"))*len(`u0060`) // as in the literal that holds it
	switch {
	case size > maxFileSize:
		l.report(pos{1, 1}, finding{rule: ruleTooLarge}, "written out in full, as generated code holds it, the definition is larger than 1 MiB; shorten docs and lists of sources, or write \"*\" for them")
	case parts(text) > maxParts:
		l.report(pos{1, 1}, finding{rule: ruleTooLarge}, "written out in full, as generated code holds it, the definition has more than %d lines and list entries", maxParts)
	}
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
	m.Journal.write(w, m.Table.Name)
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

func (j Journal) write(w *jsonWriter, table string) {
	switch {
	case !j.Enabled:
		w.key("journal")
		w.buf.WriteString("false")
	case j.Table != defaultJournal(table):
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
