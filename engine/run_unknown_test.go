package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var lost = reply{err: &Fault{Class: ClassUnknown, Err: errDriver}}

// The reply is lost, but the write was applied: the same call again finds itself.
func TestUnknownSettledAsApplied(t *testing.T) {
	s := &fakeStore{apply: []reply{lost, {err: fault(ClassDuplicateKey, "UNIQUE")}}}
	m := machineOver(t, s, orderWith(""))
	s.onApply = func() { s.inspect = []sight{{snapshot: m.rowIn("cancelled", 4, s.mine("paid", "shipped", 3))}} }
	res, err := m.ship(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != Applied || res.From != "paid" || res.To != "shipped" || res.Version != 3 {
		t.Errorf("result %+v, want Applied by this call", res)
	}
	wantSent(t, s, "apply", "apply", "inspect")
	if a, b := s.calls[0], s.calls[1]; a.Key != b.Key || a.Attempt != b.Attempt || a.Key == "" {
		t.Errorf("keys %q and %q, want the same call again", a.Key, b.Key)
	}
	if q := s.inquiries[0]; q.Key != s.calls[0].Key {
		t.Errorf("inquiry %+v: after a lost reply the generated key can be in the journal", q)
	}
}

// The second try misses, and the journal knows the first.
func TestUnknownSettledByMiss(t *testing.T) {
	s := &fakeStore{apply: []reply{lost, {}}}
	m := machineOver(t, s, orderWith(""))
	s.onApply = func() { s.inspect = []sight{{snapshot: m.rowIn("shipped", 3, s.mine("paid", "shipped", 3))}} }
	if res, err := m.ship(context.Background(), WithKey("k")); err != nil || res.Outcome != Applied || res.Key != "k" {
		t.Errorf("result %+v, error %v, want Applied", res, err)
	}
}

func TestUnknownSettledAsNotApplied(t *testing.T) {
	s := &fakeStore{apply: []reply{lost, lost, {}}}
	m := machineOver(t, s, orderWith(""))
	s.inspect = []sight{{snapshot: m.rowIn("cancelled", 4)}}
	if _, err := m.ship(context.Background()); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("error %v, want ErrNotAllowed: the key is not in the journal", err)
	}
}

// Attempts do not bound a lost reply, the deadline does.
func TestUnknownUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{apply: []reply{lost}}
		m := machineOver(t, s, orderWith(""), WithRetry(Retry{Attempts: 2, Base: time.Millisecond, Cap: 50 * time.Millisecond}))
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := m.ship(ctx)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("returned after %v, want at the deadline", took)
		}
		wantUnknown(t, s, err)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v does not match the context's", err)
		}
		if n := s.count("apply"); n < 10 {
			t.Errorf("sent %d times, want until the deadline", n)
		}
	})
}

func wantUnknown(t *testing.T, s *fakeStore, err error) {
	t.Helper()
	var e *Error
	if !errors.Is(err, ErrUnknownOutcome) || !errors.Is(err, errDriver) || !errors.As(err, &e) {
		t.Fatalf("error %v, want ErrUnknownOutcome that wraps the driver's", err)
	}
	if e.Key == "" || e.Key != s.calls[0].Key {
		t.Errorf("key %q, want the one that was sent: %q", e.Key, s.calls[0].Key)
	}
	if err := checkKey(e.Key); err != nil {
		t.Errorf("the key cannot be given back with WithKey: %v", err)
	}
	for _, other := range []error{ErrBusy, ErrConflict, ErrNotAllowed} {
		if errors.Is(err, other) {
			t.Errorf("error %v also matches %v", err, other)
		}
	}
	wantText(t, err, "WithKey")
}

// Without a deadline a lost reply is not asked for for ever.
func TestUnknownWithoutDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{apply: []reply{lost}, create: []reply{lost}}
		m := machineOver(t, s, orderWith(""), WithRetry(Retry{Attempts: 2, Base: time.Millisecond, Cap: 50 * time.Millisecond}))
		start := time.Now()
		_, err := m.ship(context.Background())
		if took := time.Since(start); took < settleWithin || took > settleWithin+time.Second {
			t.Errorf("returned after %v, want %v", took, settleWithin)
		}
		wantUnknown(t, s, err)
		_, err = m.Create(context.Background(), Row{"id": "o-1"})
		if !errors.Is(err, ErrUnknownOutcome) {
			t.Errorf("Create: %v, want ErrUnknownOutcome", err)
		}
	})
}

// Whatever goes wrong while a lost reply is asked for, the outcome stays unknown.
func TestUnknownStaysUnknown(t *testing.T) {
	for name, s := range map[string]*fakeStore{
		"the repeat fails for good":    {apply: []reply{lost, {err: fault(ClassFatal, "read-only")}}},
		"the repeat is no fault":       {apply: []reply{lost, {err: errors.New("odd")}}},
		"the repeat is never sent":     {apply: []reply{lost, {err: fault(ClassUnsent, "waiting")}}},
		"the diagnosis cannot be read": {apply: []reply{lost, {}}, inspect: []sight{{err: fault(ClassFatal, "no")}}},
	} {
		_, err := machineOver(t, s, orderWith("")).ship(context.Background())
		t.Log(name)
		wantUnknown(t, s, err)
	}
	for name, s := range map[string]*fakeStore{
		"the repeat fails for good":    {create: []reply{lost, {err: fault(ClassFatal, "read-only")}}},
		"the repeat is never sent":     {create: []reply{lost, {err: fault(ClassUnsent, "waiting")}}},
		"the diagnosis cannot be read": {create: []reply{lost, {}}, inspect: []sight{{err: fault(ClassFatal, "no")}}},
	} {
		_, err := machineOver(t, s, orderWith("")).Create(context.Background(), Row{"id": "o-1"})
		t.Log("create: " + name)
		wantUnknown(t, s, err)
	}
}

// Without a journal no key settles a lost reply: a named version does, or a graph
// that does not lead back.
func TestUnknownBare(t *testing.T) {
	const loop = `
machine: lamp
table: {name: lamps}
initial: off
states: {off: , on: , broken: {final: true}}
transitions:
  switch_on:  {from: off, to: on}
  switch_off: {from: on, to: off}
  break:      {from: [off, on], to: broken}
  touch:      {from: on, to: on}
journal: false
`
	row := func(m *Machine, state string, version int64) []sight {
		return []sight{{snapshot: m.rowIn(state, version)}}
	}
	for _, c := range []struct {
		name, fire string
		version    int64
		state      string // of the row when the repeat missed
		rowVersion int64
		want       any
		applies    int
	}{
		{"a way back, no version", "switch_on", 0, "on", 2, ErrUnknownOutcome, 1},
		{"a way back, a version: reached", "switch_on", 1, "on", 2, AlreadyReached, 2},
		{"a way back, a version: moved on since", "switch_on", 1, "off", 3, ErrUnknownOutcome, 2},
		{"a way back, a version: another took it", "switch_on", 1, "broken", 2, ErrConflict, 2},
		{"a way back, a version: not even reached", "switch_on", 5, "broken", 4, ErrConflict, 2},
		{"onto itself, a version: one on", "touch", 1, "on", 2, ErrUnknownOutcome, 2},
		{"no way back: reached", "break", 0, "broken", 2, AlreadyReached, 2},
		{"the row is gone", "break", 0, "", 0, ErrUnknownOutcome, 2},
	} {
		s := &fakeStore{apply: []reply{lost, {}}}
		m := machineOver(t, s, loop)
		s.inspect = []sight{{}}
		if c.state != "" {
			s.inspect = row(m, c.state, c.rowVersion)
		}
		var opts []CallOption
		if c.version != 0 {
			opts = append(opts, WithVersion(c.version))
		}
		res, err := m.Fire(context.Background(), c.fire, "o-1", nil, opts...)
		if s.count("apply") != c.applies {
			t.Errorf("%s: sent %v, want %d writes", c.name, s.sent, c.applies)
		}
		switch want := c.want.(type) {
		case Outcome:
			if err != nil || res.Outcome != want {
				t.Errorf("%s: result %+v, error %v, want %v", c.name, res, err, want)
			}
		case error:
			if !errors.Is(err, want) {
				t.Errorf("%s: error %v, want %v", c.name, err, want)
			}
			if errors.Is(want, ErrUnknownOutcome) && (errors.Is(err, ErrConflict) || errors.Is(err, ErrNotAllowed) || errors.Is(err, ErrNotFound)) {
				t.Errorf("%s: error %v matches an answer as well", c.name, err)
			}
		}
	}
}

// In a transaction that was none any more nobody can roll back what was sent.
func TestStrayCallIsUnknown(t *testing.T) {
	f := &Fault{Class: ClassStray, Err: errDriver, Hint: "the transaction is gone"}
	s := &fakeStore{apply: []reply{{err: f}}}
	_, err := machineOver(t, s, orderWith("")).In(fakeTx{}).Fire(context.Background(), "pay", "o-1", Args{"amount": 5, "ref": "x"}, WithKey("k"))
	if !errors.Is(err, ErrUnknownOutcome) || errors.Is(err, ErrBusy) || !errors.Is(err, errDriver) {
		t.Errorf("%v, want ErrUnknownOutcome", err)
	}
	wantText(t, err, f.Hint)
	wantSent(t, s, "apply in tx")
}
