package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Create inserts a row in an initial state. A row that is already there under the
// id (or a declared unique key) with the same content is success:
// AlreadyReached, or Replayed with the key.
func (m *Machine) Create(ctx context.Context, row Row, opts ...CallOption) (Result, error) {
	id, state, values, err := m.splitRow(row)
	if err != nil {
		return Result{}, m.rules.invalidCreation(id, err)
	}
	return m.CreateValues(ctx, id, state, values, opts...)
}

// splitRow puts a row into the order of the definition.
func (m *Machine) splitRow(row Row) (id, state string, values []any, err error) {
	values = make([]any, len(m.rules.def.Fields))
	if v, ok := row["id"]; ok { // first: every other fault is one of this row
		if id, err = textID(v); err != nil {
			return id, state, nil, err
		}
	}
	for name, v := range row {
		switch name {
		case "id":
		case "status":
			text, err2 := expr.Coerce(expr.String, -1, v)
			if err2 != nil {
				err = fmt.Errorf("status: %w", err2)
			}
			state, _ = text.(string)
		default:
			i, ok := m.rules.fields[name]
			if !ok {
				return id, state, nil, fmt.Errorf("the definition has no field %q", name)
			}
			values[i] = v
		}
		if err != nil {
			return id, state, nil, err
		}
	}
	return id, state, values, nil
}

func textID(v any) (string, error) {
	if n, err := expr.Coerce(expr.Int, -1, v); err == nil && n != nil {
		return fmt.Sprint(n), nil
	}
	s, err := expr.Coerce(expr.String, -1, v)
	text, ok := s.(string)
	if err != nil || !ok {
		return "", fmt.Errorf("id: want a string or an integer, got %T", v)
	}
	return text, nil
}

// CreateValues is Create for generated code: fields are in the order of the
// definition, nil where not given; state "" is the default initial state. The
// slice is the engine's.
func (m *Machine) CreateValues(ctx context.Context, id, state string, fields []any, opts ...CallOption) (Result, error) {
	start := m.eng.now()
	res, attempts, err := m.create(ctx, id, state, fields, opts)
	if len(m.eng.observers) > 0 {
		m.observe(ctx, Observation{Machine: m.rules.def.Name, ID: id, Result: res, Err: err, Attempts: attempts, Took: m.eng.now().Sub(start)})
	}
	return res, err
}

func (m *Machine) create(ctx context.Context, id, state string, fields []any, opts []CallOption) (Result, int, error) {
	id, err := m.checkCall(ctx, "", opCreate, id)
	if err != nil {
		return Result{}, 0, err
	}
	o, err := collect(opts)
	if err != nil {
		return Result{}, 0, m.rules.invalidCreation(id, err)
	}
	q := &creation{Creation: Creation{ID: id, Given: fields, Now: m.eng.clock()}}
	if err := m.fill(q, state, &o); err != nil {
		return Result{}, 0, m.rules.invalidCreation(id, err)
	}
	res, err := m.send(ctx, q)
	return res, q.sends, err
}

// creation is one Create with everything classification must know of it.
type creation struct {
	attempt
	Creation
	stateSaid bool // the caller named the initial state
}

// fill checks a creation and completes it with defaults and its record.
func (m *Machine) fill(q *creation, state string, o *callOptions) error {
	def := m.rules.def
	if o.hasVer {
		return errors.New("WithVersion: a row that is created has no version yet")
	}
	if q.stateSaid = state != ""; !q.stateSaid {
		state = def.Initial[0]
	}
	if !slices.Contains(def.Initial, state) {
		return fmt.Errorf("status %q is not initial; initial are %s", state, listOr(def.Initial, "none"))
	}
	q.State = m.rules.byName[state]
	if len(q.Given) != len(def.Fields) {
		return fmt.Errorf("the definition has %d fields, got %d values", len(def.Fields), len(q.Given))
	}
	q.Values = make([]any, len(def.Fields))
	for i := range def.Fields {
		v, err := expr.Coerce(def.Fields[i].Type, def.Fields[i].Scale, q.Given[i])
		if err != nil {
			return fmt.Errorf("field %s: %w", def.Fields[i].Name, err)
		}
		if err := m.rules.limits[i].Check(def.Fields[i].Type, v); err != nil {
			return fmt.Errorf("field %s does not fit its column: %w", def.Fields[i].Name, err)
		}
		v = ownValue(v)
		q.Given[i] = v
		if q.Values[i], err = defaulted(&def.Fields[i], v, q); err != nil {
			return err
		}
	}
	q.asks = Inquiry{ID: q.ID, Transition: -1, Version: AnyVersion, Values: q.Values}
	if !def.Journal.Enabled {
		return bareOptions(o)
	}
	return m.recordCreation(q, state, o)
}

func defaulted(f *definitions.Field, v any, q *creation) (any, error) {
	switch {
	case v != nil:
		return v, nil
	case f.Default != nil && f.Default.Now:
		return q.Now, nil
	case f.Default != nil:
		return f.Default.Value, nil
	case !f.Nullable:
		return nil, fmt.Errorf("field %s (%s) is missing, and has no default", f.Name, f.Type)
	}
	return nil, nil
}

func (m *Machine) recordCreation(q *creation, state string, o *callOptions) error {
	def := m.rules.def
	record, err := recordOf(o, def.Create.Emit)
	if err != nil {
		return err
	}
	if err := record.chooseKey(o, "", false); err != nil {
		return err
	}
	h := hashed{}
	h.part(nil)
	if state != def.Initial[0] {
		h.part([]byte(state))
	}
	b := []byte{'{'}
	for i := range def.Fields {
		f := &def.Fields[i]
		if q.Given[i] != nil {
			h.value(f.Name, f.Type, q.Given[i], nil)
		}
		if q.Values[i] != nil {
			b = appendMember(b, f.Name, f.Type, q.Values[i])
		}
	}
	record.Fingerprint, record.Args = h.sum(), append(b, '}')
	q.Record = record
	q.asks.Key, q.keyOwn = record.Key, record.KeyOwn
	return nil
}

func (q *creation) write(ctx context.Context, m *Machine) (Change, error) {
	return m.table.Create(ctx, m.tx, &q.Creation)
}

func (q *creation) judge(m *Machine, s *Snapshot) verdict { return m.rules.classifyCreation(q, s) }

// classifyCreation decides what an existing row or key means for a Create.
func (r *Rules) classifyCreation(q *creation, s *Snapshot) verdict {
	if e := s.ByKey; e != nil {
		switch {
		case e.Attempt == q.Attempt:
			return verdict{outcome: Applied, first: e}
		case e.Transition == "" && e.Fingerprint == q.Fingerprint:
			return verdict{outcome: Replayed, first: e}
		}
		return r.answer(q, s, ErrKeyReused, fmt.Sprintf("key %q was applied at version %d for %s with args %s", q.Key, e.Version, entryName(e), e.Args))
	}
	if !s.Found {
		return verdict{again: true}
	}
	if c := s.Creation; c != nil && q.stateSaid && r.inJournal(c.To) != q.State {
		return r.answer(q, s, ErrMismatch, fmt.Sprintf("the row was created as %s, this call says %s", c.To, r.stateName(q.State)))
	}
	for i, given := range q.Given {
		if given == nil {
			continue
		}
		was, equal, err := r.createdWith(s, i)
		if err != nil {
			return r.answer(q, s, nil, err.Error())
		}
		f := &r.def.Fields[i]
		if equal != nil && !equal(f.Type, was, given) {
			return r.answer(q, s, ErrMismatch, fmt.Sprintf("the row exists with %s %s, this call gives %s", f.Name, expr.FormatValue(f.Type, was), expr.FormatValue(f.Type, given)))
		}
	}
	return verdict{outcome: AlreadyReached, first: s.Creation}
}

// createdWith gives a field's value at creation, and how to compare it: from the create
// entry, or for a row made elsewhere from the row itself if no transition writes the field.
func (r *Rules) createdWith(s *Snapshot, field int) (was any, equal func(t expr.Type, was, given any) bool, err error) {
	f := &r.def.Fields[field]
	switch {
	case s.Creation != nil && len(s.Creation.Args) > 0: // else they were erased
		was, err = argOf(s.Creation, f.Name, f.Type)
		return was, expr.Equal, err
	case r.written[field]:
		return nil, nil, nil
	}
	return s.Row.Values[field], equalStored, nil
}
