package engine

import (
	"context"
	"errors"
	"testing"
)

const shipmentText = `
machine: shipment
table: {name: shipments}
fields:
  weight:  {type: int}
  carrier: {type: string, default: post}
  note:    {type: string, nullable: true}
  route:   {type: string, nullable: true}
initial: [draft, booked]
states: {draft: , booked: , sent: {final: true}}
transitions:
  book: {from: draft, to: booked}
  send: {from: booked, to: sent, args: {route: string}, set: {route: args.route}}
`

// creationFor makes a creation as Create does.
func creationFor(t *testing.T, m *Machine, row Row, key string) *creation {
	t.Helper()
	id, state, values, err := m.splitRow(row)
	if err != nil {
		t.Fatal(err)
	}
	q := &creation{Creation: Creation{ID: id, Given: values, Now: noon}}
	o := callOptions{key: key, hasKey: key != ""}
	if err := m.fill(q, state, &o); err != nil {
		t.Fatal(err)
	}
	return q
}

// created is the entry that a creation leaves.
func (q *creation) entry(m *Machine) *Entry {
	return &Entry{Version: 1, To: m.rules.stateName(q.State), Key: q.Key, Fingerprint: q.Fingerprint, Attempt: "an earlier call", Args: q.Args}
}

func TestClassifyCreation(t *testing.T) {
	m := machineOver(t, &fakeStore{}, shipmentText)
	r := m.rules
	first := Row{"id": "s-1", "weight": 5, "note": "fragile"}
	made := creationFor(t, m, first, "k").entry(m)
	transition := &Entry{Version: 2, Transition: "book", From: "draft", To: "booked", Key: "k2", Fingerprint: "f"}
	row := func(state string, weight int64, carrier string, note, route any) RowState {
		return RowState{ID: "s-1", State: r.byName[state], Raw: state, Version: 3, Values: values(r, Row{"weight": weight, "carrier": carrier, "note": note, "route": route})}
	}
	moved := row("sent", 99, "dhl", nil, "north")
	for _, c := range []struct {
		name string
		row  Row
		key  string
		view Snapshot
		want any
		says []string
	}{
		{"key seen", first, "k", Snapshot{Found: true, Row: moved, ByKey: made}, Replayed, nil},
		{"key seen, the row is gone", first, "k", Snapshot{ByKey: made}, Replayed, nil},
		{"key seen, a default left out and written out differ", Row{"id": "s-1", "weight": 5, "note": "fragile", "carrier": "post"}, "k", Snapshot{ByKey: made}, ErrKeyReused, []string{`"k"`, `"weight":5`}},
		{"key seen, other row", Row{"id": "s-1", "weight": 6}, "k", Snapshot{Found: true, Row: moved, ByKey: made}, ErrKeyReused, nil},
		{"key seen, of a transition", first, "k2", Snapshot{Found: true, Row: moved, ByKey: transition}, ErrKeyReused, []string{"book"}},
		{"no row, no key", first, "k", Snapshot{}, errAgain, nil},

		{"the same row", first, "", Snapshot{Found: true, Row: moved, Creation: made}, AlreadyReached, nil},
		{"the same row, its default written out", Row{"id": "s-1", "weight": 5, "carrier": "post"}, "", Snapshot{Found: true, Row: moved, Creation: made}, AlreadyReached, nil},
		{"the same row, less given", Row{"id": "s-1", "weight": 5}, "", Snapshot{Found: true, Row: moved, Creation: made}, AlreadyReached, nil},
		{"another value", Row{"id": "s-1", "weight": 6}, "", Snapshot{Found: true, Row: moved, Creation: made}, ErrMismatch, []string{"weight", "5", "6"}},
		{"another value than the default", Row{"id": "s-1", "weight": 5, "carrier": "dhl"}, "", Snapshot{Found: true, Row: moved, Creation: made}, ErrMismatch, []string{"carrier", `"post"`, `"dhl"`}},
		{"a value where there was NULL", Row{"id": "s-1", "weight": 5, "route": "north"}, "", Snapshot{Found: true, Row: moved, Creation: made}, ErrMismatch, []string{"route", "nil", `"north"`}},
		{"the state it was created in", Row{"id": "s-1", "weight": 5, "status": "draft"}, "", Snapshot{Found: true, Row: moved, Creation: made}, AlreadyReached, nil},
		{"another initial state", Row{"id": "s-1", "weight": 5, "status": "booked"}, "", Snapshot{Found: true, Row: moved, Creation: made}, ErrMismatch, []string{"draft", "booked"}},

		{"made elsewhere, fields that no transition sets", Row{"id": "s-1", "weight": 5}, "", Snapshot{Found: true, Row: row("sent", 5, "dhl", "x", "north")}, AlreadyReached, nil},
		{"made elsewhere, another value", Row{"id": "s-1", "weight": 6}, "", Snapshot{Found: true, Row: row("sent", 5, "dhl", "x", "north")}, ErrMismatch, nil},
		{"made elsewhere, a field that a transition sets", Row{"id": "s-1", "weight": 5, "route": "south"}, "", Snapshot{Found: true, Row: row("sent", 5, "dhl", "x", "north")}, AlreadyReached, nil},
		{"made elsewhere, the state says nothing", Row{"id": "s-1", "weight": 5, "status": "booked"}, "", Snapshot{Found: true, Row: row("draft", 5, "dhl", "x", nil)}, AlreadyReached, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := r.classifyCreation(creationFor(t, m, c.row, c.key), &c.view)
			switch want := c.want.(type) {
			case Outcome:
				if v.err != nil || v.outcome != want {
					t.Fatalf("outcome %v, again %v, error %v; want %v", v.outcome, v.again, v.err, want)
				}
				if wantFirst := c.view.ByKey; wantFirst == nil && v.first != c.view.Creation {
					t.Errorf("first is %v, want the creation", v.first)
				}
			case error:
				if want == errAgain { //nolint:errorlint // a marker
					if !v.again {
						t.Fatalf("outcome %v, error %v; want once more", v.outcome, v.err)
					}
					return
				}
				if v.err == nil || !errors.Is(v.err, want) {
					t.Fatalf("outcome %v, again %v, error %v; want %v", v.outcome, v.again, v.err, want)
				}
				wantText(t, v.err, c.says...)
			}
		})
	}
}

func TestClassifyCreationOwnAttempt(t *testing.T) {
	m := machineOver(t, &fakeStore{}, shipmentText)
	q := creationFor(t, m, Row{"id": "s-1", "weight": 5}, "")
	e := q.entry(m)
	e.Attempt = q.Attempt
	if v := m.rules.classifyCreation(q, &Snapshot{ByKey: e}); v.err != nil || v.outcome != Applied {
		t.Errorf("outcome %v, error %v, want Applied", v.outcome, v.err)
	}
}

// What Create refuses before anything is sent.
func TestCreateInvalid(t *testing.T) {
	store := &fakeStore{}
	m := machineOver(t, store, shipmentText)
	good := func(more Row) Row {
		row := Row{"id": "s-1", "weight": 1}
		for k, v := range more {
			row[k] = v
		}
		return row
	}
	for name, c := range map[string]struct {
		row  Row
		opts []CallOption
		says string
	}{
		"no id":                   {Row{"weight": 1}, nil, "the id is empty"},
		"id of another type":      {good(Row{"id": 1.5}), nil, "id: want a string or an integer"},
		"unknown field":           {good(Row{"wieght": 1}), nil, `no field "wieght"`},
		"missing field":           {Row{"id": "s-1"}, nil, "field weight (int) is missing"},
		"ill-typed field":         {good(Row{"weight": "5"}), nil, "field weight"},
		"a state not initial":     {good(Row{"status": "sent"}), nil, `status "sent" is not initial; initial are draft, booked`},
		"a state of no machine":   {good(Row{"status": "nowhere"}), nil, "is not initial"},
		"ill-typed status":        {good(Row{"status": 3}), nil, "status"},
		"a version":               {good(nil), []CallOption{WithVersion(1)}, "WithVersion"},
		"an option that is nil":   {good(nil), []CallOption{nil}, "an option is nil"},
		"an empty key":            {good(nil), []CallOption{WithKey("")}, "the key is empty"},
		"meta that is no JSON":    {good(nil), []CallOption{WithMeta(func() {})}, "meta"},
		"an actor too long":       {good(nil), []CallOption{WithActor(long(256))}, "the actor has 256 bytes"},
		"NUL in a field's string": {good(Row{"note": "a\x00b"}), nil, "field note"},
	} {
		_, err := m.Create(context.Background(), c.row, c.opts...)
		if !errors.Is(err, ErrInvalidArgs) {
			t.Errorf("%s: error %v, want ErrInvalidArgs", name, err)
			continue
		}
		wantText(t, err, c.says)
	}
	if len(store.sent) != 0 {
		t.Errorf("sent %v, want nothing", store.sent)
	}
}
