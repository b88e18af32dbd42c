package memory

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// rowKey names a row of a business table.
type rowKey struct{ table, id string }

// entityKey names the journal of one row of one machine.
type entityKey struct{ journal, machine, id string }

// entry is a journal row: what the engine reads, and the topic that a relay would.
type entry struct {
	engine.Entry
	topic string
}

// row is a business row by column. It is never changed: a write puts a new one.
type row map[string]any

// layer holds rows and journals that were changed over another layer. The lowest one
// is what is committed; each transaction, and each unit in one, has its own on top.
type layer struct {
	base    *layer
	rows    map[rowKey]row // nil: deleted
	entries map[entityKey][]entry
}

func newLayer(base *layer) *layer {
	return &layer{base: base, rows: map[rowKey]row{}, entries: map[entityKey][]entry{}}
}

// row finds a row; nil if there is none.
func (l *layer) row(k rowKey) row {
	for ; l != nil; l = l.base {
		if r, ok := l.rows[k]; ok {
			return r
		}
	}
	return nil
}

// journal lists the entries of a row in version order. The slice is not to be changed.
func (l *layer) journal(k entityKey) []entry {
	for ; l != nil; l = l.base {
		if entries, ok := l.entries[k]; ok {
			return entries
		}
	}
	return nil
}

// record adds an entry in version order.
func (l *layer) record(k entityKey, e entry) {
	entries := l.journal(k)
	if n := len(entries); n == 0 || entries[n-1].Version < e.Version {
		// The array may be shared with the layers below. They do not see beyond their
		// own length, and there is only one writer.
		l.entries[k] = append(entries, e)
		return
	}
	i := slices.IndexFunc(entries, func(old entry) bool { return old.Version > e.Version })
	l.entries[k] = slices.Insert(slices.Clone(entries), max(i, 0), e)
}

// all lists the rows of a table, by id.
func (l *layer) all(table string) map[string]row {
	var out map[string]row
	if l.base == nil {
		out = map[string]row{}
	} else {
		out = l.base.all(table)
	}
	for k, r := range l.rows {
		switch {
		case k.table != table:
		case r == nil:
			delete(out, k.id)
		default:
			out[k.id] = r
		}
	}
	return out
}

// merge moves the layer's changes into the one below.
func (l *layer) merge() {
	for k, r := range l.rows {
		if r == nil && l.base.base == nil { // nothing is below that a deletion must hide
			delete(l.base.rows, k)
			continue
		}
		l.base.rows[k] = r
	}
	maps.Copy(l.base.entries, l.entries)
}

// own copies what a caller could change later: bytes and JSON text.
func own(v any) any {
	switch v := v.(type) {
	case []byte:
		return append([]byte{}, v...)
	case json.RawMessage:
		return append(json.RawMessage{}, v...)
	}
	return v
}

// ownEntry copies an entry for a reader.
func ownEntry(e *entry) *engine.Entry {
	c := e.Entry
	c.Args = slices.Clone(e.Args)
	c.Meta = slices.Clone(e.Meta)
	return &c
}

// statusOf gives the raw status of a machine in a row. A machine that joined the table
// after the row was made finds its default there, as in a database.
func statusOf(def *definitions.Machine, r row) any {
	if raw, ok := r[def.Table.Status.Name]; ok {
		return raw
	}
	s, _ := def.State(def.Initial[0])
	return s.Value
}

// valueOf is a field of a row; where another machine made the row, the column's default.
func valueOf(f *definitions.Field, r row) any {
	v, ok := r[f.Column]
	if !ok && !f.Nullable && f.Default != nil {
		return f.Default.Value
	}
	return v
}
