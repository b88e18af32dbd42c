package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// table runs the calls of one machine.
type table struct {
	s     *Store
	rules *engine.Rules
	def   *definitions.Machine
}

// CanonicalID gives id back: ids compare by bytes.
func (t *table) CanonicalID(id string) (string, error) { return id, nil }

func (t *table) rowKey(id string) rowKey { return rowKey{t.def.Table.Name, id} }

func (t *table) entityKey(machine, id string) entityKey {
	return entityKey{t.def.Journal.Table, machine, id}
}

// Apply makes the transition, its journal entry and its effect one atomic unit.
func (t *table) Apply(ctx context.Context, tx engine.Tx, call *engine.Call) (change engine.Change, err error) {
	var effect func(ctx context.Context, tx engine.Tx) error
	if call.Effect != nil {
		effect = func(ctx context.Context, tx engine.Tx) error { return call.Effect(ctx, tx, change) }
	}
	err = t.s.unit(ctx, tx, effect, func(l *layer) (bool, error) {
		change, err = t.apply(l, call)
		return change.OK, err
	})
	if err != nil {
		return engine.Change{}, t.fault(err)
	}
	return change, nil
}

// fault gives an error the class of what it wraps. That of an effect is fatal unless
// it wraps one that has a class; its own text and chain are kept.
func (t *table) fault(err error) error {
	var f *engine.Fault
	if !errors.As(err, &f) {
		return fatal(err)
	}
	return &engine.Fault{Class: f.Class, Err: err, Hint: f.Hint}
}

// apply is the CAS. A row that does not fit is a miss: the zero Change.
func (t *table) apply(l *layer, call *engine.Call) (engine.Change, error) {
	r := l.row(t.rowKey(call.ID))
	if r == nil {
		return engine.Change{}, nil
	}
	before, err := t.state(call.ID, r)
	if err != nil || before.State < 0 || before.Version == math.MaxInt64 || (call.Version != engine.AnyVersion && call.Version != before.Version) {
		return engine.Change{}, nil //nolint:nilerr // the inspection says it
	}
	in := t.rules.Input(call.Transition, before.Values, call.Args, call.Now)
	move, target, err := t.rules.Target(call.Transition, before.State, in)
	if err != nil || move < 0 {
		return engine.Change{}, nil //nolint:nilerr // the classification explains it
	}
	values, err := t.rules.Assign(call.Transition, move, in, before.Values)
	if err != nil {
		return engine.Change{}, nil //nolint:nilerr // the classification explains it
	}
	if err := t.constraints(l, call.ID, values); err != nil {
		return engine.Change{}, err
	}
	change := engine.Change{OK: true, From: before.State, To: target, Version: before.Version + 1}
	e := entryOf(&call.Record, change.Version)
	e.Transition, e.From, e.To, e.At = t.def.Transitions[call.Transition].Name, t.def.States[before.State].Name, t.def.States[target].Name, call.Now
	if err := t.record(l, call.ID, e); err != nil {
		return engine.Change{}, err
	}
	t.put(l, call.ID, r, target, change.Version, values)
	return change, nil
}

// put writes a row over the one it was.
func (t *table) put(l *layer, id string, was row, state int, version int64, values []any) {
	r := maps.Clone(was)
	if r == nil {
		r = row{}
	}
	r[t.def.Table.Status.Name] = t.def.States[state].Value
	r[t.def.Table.Version] = version
	for i := range t.def.Fields {
		r[t.def.Fields[i].Column] = own(values[i])
	}
	l.rows[t.rowKey(id)] = r
}

// constraints holds a row's new values against what a table would refuse.
func (t *table) constraints(l *layer, id string, values []any) error {
	for i := range t.def.Fields {
		if values[i] == nil && !t.def.Fields[i].Nullable {
			return constraint("column %s is NULL, and NOT NULL", t.def.Fields[i].Column)
		}
	}
	if twin := t.twin(l, id, values); twin != "" {
		return constraint("a declared unique key is that of row %q", twin)
	}
	return nil
}

func constraint(format string, args ...any) error {
	return &engine.Fault{Class: engine.ClassConstraint, Err: fmt.Errorf("memory: "+format, args...)}
}

// twin finds another row with the same values in a declared unique key. NULL equals
// nothing, as in the databases.
func (t *table) twin(l *layer, id string, values []any) string {
	if len(t.def.Unique) == 0 {
		return ""
	}
	rows := l.all(t.def.Table.Name)
	for _, key := range t.def.Unique {
		first := ""
		for other, r := range rows {
			if other != id && t.sameKey(key, values, r) && (first == "" || other < first) {
				first = other
			}
		}
		if first != "" {
			return first
		}
	}
	return ""
}

func (t *table) sameKey(key []string, values []any, r row) bool {
	for i := range t.def.Fields {
		f := &t.def.Fields[i]
		for _, name := range key {
			if name != f.Name {
				continue
			}
			if was := valueOf(f, r); values[i] == nil || was == nil || !expr.Equal(f.Type, values[i], was) {
				return false
			}
		}
	}
	return true
}

// Create inserts the row and its journal entry as one atomic unit.
func (t *table) Create(ctx context.Context, tx engine.Tx, call *engine.Creation) (change engine.Change, err error) {
	err = t.s.unit(ctx, tx, nil, func(l *layer) (bool, error) {
		change, err = t.create(l, call)
		return change.OK, err
	})
	if err != nil {
		return engine.Change{}, t.fault(err)
	}
	return change, nil
}

func (t *table) create(l *layer, call *engine.Creation) (engine.Change, error) {
	if l.row(t.rowKey(call.ID)) != nil || t.twin(l, call.ID, call.Values) != "" {
		return engine.Change{}, nil
	}
	if err := t.constraints(l, call.ID, call.Values); err != nil {
		return engine.Change{}, err
	}
	last := t.lastVersion(l, call.ID)
	if last == math.MaxInt64 {
		return engine.Change{}, &engine.Fault{
			Class: engine.ClassFatal, Err: fmt.Errorf("memory: the journal of %q ends at version %d", call.ID, last),
			Hint: "an earlier row of this id was at the last version there is, none follows; nothing was created: use another id",
		}
	}
	change := engine.Change{OK: true, From: -1, To: call.State, Version: last + 1}
	e := entryOf(&call.Record, change.Version)
	e.To, e.At = t.def.States[call.State].Name, call.Now
	if err := t.record(l, call.ID, e); err != nil {
		return engine.Change{}, err
	}
	t.put(l, call.ID, nil, call.State, change.Version, call.Values)
	return change, nil
}

// Get reads the row.
func (t *table) Get(_ context.Context, tx engine.Tx, id string) (out engine.RowState, found bool, err error) {
	err = t.s.view(tx, func(l *layer) (err error) {
		if r := l.row(t.rowKey(id)); r != nil {
			out, err = t.state(id, r)
			found = err == nil
		}
		return err
	})
	return out, found, err
}

// state reads a row as the machine sees it.
func (t *table) state(id string, r row) (engine.RowState, error) {
	out := engine.RowState{ID: id, State: -1, Raw: statusOf(t.def, r), Values: make([]any, len(t.def.Fields))}
	version, ok := r[t.def.Table.Version].(int64)
	if !ok {
		return out, fatal(fmt.Errorf("row %q has NULL in version column %s: Put it with a version", id, t.def.Table.Version))
	}
	out.Version = version
	if i, ok := t.rules.StateOf(out.Raw); ok {
		out.State = i
	}
	for i := range t.def.Fields {
		out.Values[i] = own(valueOf(&t.def.Fields[i], r))
	}
	return out, nil
}
