package memory

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// entryOf is the journal entry that records a call.
func entryOf(r *engine.Record, version int64) entry {
	return entry{topic: r.Topic, Entry: engine.Entry{
		Version: version, Key: r.Key, Actor: r.Actor,
		Args: slices.Clone(r.Args), Meta: slices.Clone(r.Meta), Fingerprint: r.Fingerprint, Attempt: r.Attempt,
	}}
}

// record adds an entry to the machine's journal, whose keys and versions are unique.
func (t *table) record(l *layer, id string, e entry) error {
	if !t.def.Journal.Enabled {
		return nil
	}
	k := t.entityKey(t.def.Name, id)
	if old := t.keySeen(l, id, e.Key); old != nil {
		return &engine.Fault{Class: engine.ClassDuplicateKey, Err: fmt.Errorf("memory: the journal of %q holds key %q", id, e.Key)}
	}
	if slices.ContainsFunc(l.journal(k), func(old entry) bool { return old.Version == e.Version }) {
		last := t.lastVersion(l, id)
		return &engine.Fault{
			Class: engine.ClassVersionTaken, Err: fmt.Errorf("memory: the journal of %q holds version %d", id, e.Version),
			Hint: fmt.Sprintf("the row is at version %d and its journal at %d: UPDATE it to version %d", e.Version-1, last, last),
		}
	}
	t.s.seq++
	e.Seq = t.s.seq
	l.record(k, e)
	return nil
}

// lastVersion is the last version any machine of the table has reached on the row.
func (t *table) lastVersion(l *layer, id string) int64 {
	if !t.def.Journal.Enabled {
		return 0
	}
	last, known := int64(math.MinInt64), false
	for _, machine := range t.s.machines.Machines(t.def.Table.Name) {
		if entries := l.journal(t.entityKey(machine, id)); len(entries) > 0 {
			last, known = max(last, entries[len(entries)-1].Version), true
		}
	}
	if !known {
		return 0
	}
	return last
}

// keySeen finds the entry with a key.
func (t *table) keySeen(l *layer, id, key string) *engine.Entry {
	if key == "" || !t.def.Journal.Enabled {
		return nil
	}
	entries := l.journal(t.entityKey(t.def.Name, id))
	if i := slices.IndexFunc(entries, func(e entry) bool { return e.Key == key }); i >= 0 {
		return ownEntry(&entries[i])
	}
	return nil
}

// Journal returns the entries of a row in version order.
func (t *table) Journal(_ context.Context, tx engine.Tx, id string) (out []engine.Entry, err error) {
	err = t.s.view(tx, func(l *layer) error {
		for _, e := range l.journal(t.entityKey(t.def.Name, id)) {
			out = append(out, *ownEntry(&e))
		}
		return nil
	})
	return out, err
}

// Inspect reads the row and its journal together. For a creation, a row that holds a
// declared unique key stands for the one under the id.
func (t *table) Inspect(_ context.Context, tx engine.Tx, q engine.Inquiry) (s engine.Snapshot, err error) {
	err = t.s.view(tx, func(l *layer) error {
		if s, err = t.inspect(l, q); err != nil || q.Transition >= 0 || s.Found || s.ByKey != nil {
			return err
		}
		if twin := t.twin(l, q.ID, q.Values); twin != "" {
			q.ID = twin
			s, err = t.inspect(l, q)
		}
		return err
	})
	return s, err
}

func (t *table) inspect(l *layer, q engine.Inquiry) (s engine.Snapshot, err error) {
	if r := l.row(t.rowKey(q.ID)); r != nil {
		if s.Row, err = t.state(q.ID, r); err != nil {
			return s, err
		}
		s.Found = true
	}
	if t.def.Journal.Enabled {
		s.ByKey = t.keySeen(l, q.ID, q.Key)
		t.history(&s, l, q)
	}
	return s, nil
}

// history fills in what the journal knows since the row's last creation. What was
// before belongs to an earlier row of the same id.
func (t *table) history(s *engine.Snapshot, l *layer, q engine.Inquiry) {
	s.Creation = t.creation(l, q.ID)
	since := int64(math.MinInt64)
	if s.Creation != nil {
		since = s.Creation.Version
	}
	entries := l.journal(t.entityKey(t.def.Name, q.ID))
	for i := range entries {
		e := &entries[i]
		if (e.From != e.To || e.Transition == "") && e.Version >= since {
			s.Entered = ownEntry(e)
		}
		if q.Transition < 0 || e.Version <= since {
			continue
		}
		def := &t.def.Transitions[q.Transition]
		if s.Own != nil && t.leaves(def, e.To) {
			s.Undone = true
		}
		if e.Transition == def.Name {
			s.Own, s.Undone = ownEntry(e), false
		}
		if q.Version != engine.AnyVersion && e.Version == q.Version+1 {
			s.Next = ownEntry(e)
		}
	}
}

// creation is the row's last creation, by whichever machine of the table.
func (t *table) creation(l *layer, id string) *engine.Entry {
	var last *entry
	for _, machine := range t.s.machines.Machines(t.def.Table.Name) {
		entries := l.journal(t.entityKey(machine, id))
		for i := range entries {
			if e := &entries[i]; e.Transition == "" && (last == nil || e.Version > last.Version) {
				last = e
			}
		}
	}
	if last == nil {
		return nil
	}
	return ownEntry(last)
}

// leaves reports whether the state a journal entry names, maybe by an old name, is a
// source of a transition.
func (t *table) leaves(def *definitions.Transition, name string) bool {
	i, ok := t.rules.StateIndex(name)
	if !ok {
		if i, ok = t.rules.StateOf(name); !ok {
			return false
		}
	}
	return slices.ContainsFunc(def.Moves, func(mv definitions.Move) bool { return slices.Contains(mv.From, t.def.States[i].Name) })
}
