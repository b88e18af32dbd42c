package engine

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// call is a request as a test writes it.
type call struct {
	fire    string
	args    Args
	version int64
	key     string // "": one that the engine makes
}

// requestFor makes a request as prepare does.
func requestFor(t *testing.T, r *Rules, c call) *request {
	t.Helper()
	i, ok := r.byTransit[c.fire]
	if !ok {
		t.Fatalf("no transition %q", c.fire)
	}
	tr := &r.transitions[i]
	values, err := tr.order(c.args)
	if err == nil {
		err = tr.coerceArgs(values)
	}
	if err != nil {
		t.Fatal(err)
	}
	version := c.version
	if version == 0 {
		version = AnyVersion
	}
	q := newRequest(Call{ID: "o-1", Transition: i, Args: values, Now: noon, Version: version})
	q.derived = tr.def.Key.Derived()
	if r.def.Journal.Enabled {
		q.call.Record = Record{Key: c.key, Attempt: "this call", Fingerprint: tr.fingerprint(values)}
		switch {
		case q.derived:
			q.call.Key = tr.derivedKey(values)
		case c.key == "":
			q.call.Key, q.call.KeyOwn = "#generated", true
		}
		q.asks.Key, q.keyOwn = q.call.Key, q.call.KeyOwn
	}
	return q
}

// entry is a journal entry; its version is its place in the journal.
func entry(transition, from, to string) Entry {
	return Entry{Transition: transition, From: from, To: to, Key: "#" + transition + to, Attempt: "an earlier call"}
}

// of completes an entry with what the request that wrote it was.
func (e Entry) of(t *testing.T, r *Rules, c call) Entry {
	t.Helper()
	q := requestFor(t, r, c)
	e.Key, e.Fingerprint, e.Args = q.call.Key, q.call.Fingerprint, r.transitions[q.call.Transition].argsJSON(q.call.Args)
	return e
}

// view is a row with its journal.
type view struct {
	state   string // "": the row is gone; "?x": the unknown value x
	version int64  // 0: that of the last entry
	fields  Row
	journal []Entry
}

// snapshot is what a store reads of the view for a request.
func (v view) snapshot(t *testing.T, r *Rules, q *request) *Snapshot {
	t.Helper()
	s := &Snapshot{Row: RowState{ID: "o-1", State: -1, Version: v.version, Values: make([]any, len(r.def.Fields))}}
	tr := &r.def.Transitions[q.call.Transition]
	for i := range v.journal {
		e := &v.journal[i]
		e.Version = int64(i + 1)
		if e.Key == q.call.Key && !q.call.KeyOwn {
			s.ByKey = e
		}
		switch {
		case e.Transition == "":
			s.Creation, s.Own, s.Undone, s.Next = e, nil, false, nil
		case e.Transition == tr.Name:
			s.Own, s.Undone = e, false
		case s.Own != nil && tr.Leaves(e.To):
			s.Undone = true
		}
		if e.From != e.To {
			s.Entered = e
		}
		if q.asks.Version != 0 && e.Version == q.asks.Version+1 {
			s.Next = e
		}
	}
	if s.Row.Version == 0 {
		s.Row.Version = max(1, int64(len(v.journal)))
	}
	for name, value := range v.fields {
		s.Row.Values[r.fields[name]] = value
	}
	s.Found = v.state != ""
	if i, ok := r.byName[v.state]; ok {
		s.Row.State, s.Row.Raw = i, v.state
	} else if s.Found {
		s.Row.Raw = v.state[1:]
	}
	return s
}

// errAgain is the verdict that the call fits now.
var errAgain = errors.New("once more")

// judgement is one row of a table: the verdict on a call in view of a row.
type judgement struct {
	name  string
	call  call
	view  view
	want  any // an Outcome, a sentinel, or again
	first int64
	says  []string
}

func (j judgement) check(t *testing.T, r *Rules) {
	t.Helper()
	q := requestFor(t, r, j.call)
	s := j.view.snapshot(t, r, q)
	v := r.classify(q, s)
	switch want := j.want.(type) {
	case Outcome:
		if v.err != nil || v.again || v.outcome != want {
			t.Fatalf("outcome %v, again %v, error %v; want %v", v.outcome, v.again, v.err, want)
		}
		var first int64
		if v.first != nil {
			first = v.first.Version
		}
		if first != j.first {
			t.Errorf("first is the entry of version %d, want %d", first, j.first)
		}
	case error:
		if want == errAgain { //nolint:errorlint // a marker
			if !v.again || v.err != nil {
				t.Fatalf("outcome %v, error %v; want once more", v.outcome, v.err)
			}
			return
		}
		if v.err == nil || !errors.Is(v.err, want) {
			t.Fatalf("outcome %v, again %v, error %v; want %v", v.outcome, v.again, v.err, want)
		}
		wantText(t, v.err, j.says...)
		wantFields(t, r, v.err, q, s)
	}
}

// wantFields checks what every answer carries.
func wantFields(t *testing.T, r *Rules, err *Error, q *request, s *Snapshot) {
	t.Helper()
	want := Error{Machine: r.def.Name, Transition: r.def.Transitions[q.call.Transition].Name, ID: "o-1", Key: q.call.Key}
	if s.Found {
		want.Version, want.State = s.Row.Version, s.Row.Raw.(string)
		if s.Row.State >= 0 {
			want.Allowed = r.def.Allowed(want.State)
		}
	}
	got := Error{Machine: err.Machine, Transition: err.Transition, ID: err.ID, Key: err.Key, Version: err.Version, State: err.State, Allowed: err.Allowed}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Error{})); diff != "" {
		t.Errorf("fields of %v (-want +got):\n%s", err, diff)
	}
}

func checkAll(t *testing.T, r *Rules, table []judgement) {
	t.Helper()
	for _, j := range table {
		t.Run(j.name, func(t *testing.T) {
			t.Parallel()
			j.view.journal = slices.Clone(j.view.journal)
			j.check(t, r)
		})
	}
}

// then gives a journal with more entries, and leaves the one it begins with alone.
func then(journal []Entry, more ...Entry) []Entry { return slices.Concat(journal, more) }

// Journals that several tests begin with.
var (
	created   = []Entry{entry("", "", "pending")}
	paid      = then(created, entry("pay", "pending", "paid"))
	shipped   = then(paid, entry("ship", "paid", "shipped"))
	cancelled = then(created, entry("cancel", "pending", "cancelled"))
	disputed  = then(paid, entry("dispute", "paid", "disputed"))
	resolved  = then(disputed, entry("resolve", "disputed", "paid"))
	reopened  = then(disputed, entry("reopen", "disputed", "pending"))
	undone    = then(reopened, entry("cancel", "pending", "cancelled"))
)

// TestClassify is the table of DESIGN 4 with `duplicates: accept`.
func TestClassify(t *testing.T) {
	r := rulesOf(t, orderWith(""))
	pay := call{fire: "pay", args: Args{"amount": 10}}
	checkAll(t, r, []judgement{
		{"no row", pay, view{}, ErrNotFound, 0, []string{"orders"}},
		{"no row any more", pay, view{journal: shipped}, ErrNotFound, 0, nil},
		{"unknown state", pay, view{state: "?archived_v1"}, ErrUnknownState, 0, []string{`"o-1"`, `"archived_v1"`}},
		{"empty state", pay, view{state: "? "}, ErrUnknownState, 0, []string{`" "`}},
		{"unknown state comes before a version", call{fire: "pay", args: pay.args, version: 9}, view{state: "?x"}, ErrUnknownState, 0, nil},

		{"source, all fits", pay, view{state: "pending", fields: Row{"amount": int64(10)}, journal: created}, errAgain, 0, nil},
		{"source, condition false", pay, view{state: "pending", fields: Row{"amount": int64(7)}, journal: created}, ErrRejected, 0, []string{"amount == args.amount", "7", "10"}},
		{"source, other version", call{fire: "ship", version: 1}, view{state: "paid", journal: paid}, ErrConflict, 0, []string{"version 1", "version 2", "paid"}},
		{"source, version of the future", call{fire: "ship", version: 3}, view{state: "paid", journal: paid}, ErrConflict, 0, nil},
		{"source, that version", call{fire: "ship", version: 2}, view{state: "paid", journal: paid}, errAgain, 0, nil},
		{"source, other version before a false condition", call{fire: "pay", args: pay.args, version: 5}, view{state: "pending", journal: created}, ErrConflict, 0, nil},

		{"target", pay, view{state: "paid", journal: paid}, AlreadyReached, 2, nil},
		{"target, without journal", pay, view{state: "paid", version: 9}, AlreadyReached, 0, nil},
		{"target, entered by another", pay, view{state: "paid", journal: resolved}, AlreadyReached, 4, nil},
		{"target, entered by hand", pay, view{state: "paid", version: 2, journal: created}, AlreadyReached, 0, nil},
		{"target, left by hand since", pay, view{state: "paid", journal: shipped}, AlreadyReached, 0, nil},

		{"passed by the graph", pay, view{state: "shipped", journal: shipped}, AlreadyPassed, 3, nil},
		{"passed by the graph, without journal", pay, view{state: "disputed", version: 4}, AlreadyPassed, 0, nil},
		{"passed by its entry", pay, view{state: "cancelled", journal: then(paid, entry("cancel", "paid", "cancelled"))}, AlreadyPassed, 3, nil},
		{"not passed: no entry", pay, view{state: "cancelled", journal: cancelled}, ErrNotAllowed, 0, []string{"cancelled (version 2)", "nothing"}},
		{"not passed: without journal", pay, view{state: "cancelled", version: 2}, ErrNotAllowed, 0, nil},
		{"not passed: its entry was undone", pay, view{state: "cancelled", journal: undone}, ErrNotAllowed, 0, nil},
		{"passed: undone, and done again", pay, view{state: "cancelled", journal: then(reopened, entry("pay", "pending", "paid"), entry("cancel", "paid", "cancelled"))}, AlreadyPassed, 6, nil},
		{"not passed: an earlier row of this id", pay, view{state: "cancelled", journal: then(shipped, entry("", "", "pending"), entry("cancel", "pending", "cancelled"))}, ErrNotAllowed, 0, nil},

		{"anything else", call{fire: "ship"}, view{state: "pending", journal: created}, ErrNotAllowed, 0, []string{"pending (version 1)", "cancel", "pay"}},
		{"anything else: behind a way back", call{fire: "resolve"}, view{state: "shipped", journal: shipped}, ErrNotAllowed, 0, nil},
	})
}

func TestClassifyNamedVersion(t *testing.T) {
	r := rulesOf(t, orderWith(""))
	at := func(version int64) call { return call{fire: "pay", args: Args{"amount": 10}, version: version} }
	checkAll(t, r, []judgement{
		{"the next entry is this transition", at(1), view{state: "paid", journal: paid}, AlreadyReached, 2, nil},
		{"the next entry is this transition, and the row went on", at(1), view{state: "shipped", journal: shipped}, AlreadyPassed, 3, nil},
		{"the next entry is another", at(1), view{state: "cancelled", journal: cancelled}, ErrConflict, 0, []string{"version 1", "version 2", "cancelled"}},
		{"reached, but not from this version", at(2), view{state: "paid", journal: resolved}, ErrConflict, 0, nil},
		{"the row's own version in the target", at(2), view{state: "paid", journal: paid}, AlreadyReached, 2, nil},
		{"the row's own version, not allowed", at(2), view{state: "cancelled", journal: cancelled}, ErrNotAllowed, 0, nil},
		{"a version to come", at(7), view{state: "paid", journal: paid}, ErrConflict, 0, nil},
		{"no journal of that version", at(4), view{state: "paid", version: 5}, ErrConflict, 0, nil},
		{"the entry belongs to an earlier row", at(1), view{state: "cancelled", journal: then(shipped, entry("", "", "pending"), entry("cancel", "pending", "cancelled"))}, ErrConflict, 0, nil},
	})
}
