package engine

import (
	"context"
	"errors"
	"testing"
)

// machineWith is machineOver for a definition that names Go code.
func machineWith(t *testing.T, s *fakeStore, text string, code Code) *Machine {
	t.Helper()
	m := machineOver(t, s, orderWith(""))
	bound, err := m.eng.Machine(t.Context(), define(t, text), code)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// The repeat of a call whose answer was lost meets a constraint of the table. The first
// try may have been applied, and then the journal knows the call, whoever made its key.
func TestConstraintAfterALostAnswer(t *testing.T) {
	for name, opts := range map[string][]CallOption{"own key": nil, "the caller's key": {WithKey("k")}} {
		s := &fakeStore{apply: []reply{lost, {err: &Fault{Class: ClassConstraint, Err: errDriver}}}}
		m := machineOver(t, s, orderWith(""))
		s.onApply = func() { s.inspect = []sight{{snapshot: m.rowIn("shipped", 3, s.mine("paid", "shipped", 3))}} }
		res, err := m.ship(context.Background(), opts...)
		if err != nil || res.Outcome != Applied || res.Version != 3 {
			t.Errorf("%s: result %+v, error %v, want Applied", name, res, err)
		}

		s = &fakeStore{create: []reply{lost, {err: &Fault{Class: ClassConstraint, Err: errDriver}}}}
		m = machineOver(t, s, orderWith(""))
		s.onCreate = func() {
			c := s.calls[len(s.calls)-1]
			s.inspect = []sight{{snapshot: m.rowIn("pending", 1, &Entry{Version: 1, To: "pending", Key: c.Key, Fingerprint: c.Fingerprint, Attempt: c.Attempt})}}
		}
		if res, err = m.Create(context.Background(), Row{"id": "o-1"}, opts...); err != nil || res.Outcome != Applied || res.Version != 1 {
			t.Errorf("create, %s: result %+v, error %v, want Applied", name, res, err)
		}
	}
}

// A database error of the repeat says nothing of the first try, which may land later.
func TestErrorsOfTheRepeatSettleNothing(t *testing.T) {
	for _, class := range []Class{ClassConstraint, ClassVersionTaken, ClassFatal} {
		for name, opts := range map[string][]CallOption{"own key": nil, "the caller's key": {WithKey("k")}} {
			again := reply{err: &Fault{Class: class, Err: errors.New("refused")}}
			s := &fakeStore{apply: []reply{lost, again}, create: []reply{lost, again}}
			m := machineOver(t, s, orderWith(""))
			s.inspect = []sight{{snapshot: m.rowIn("paid", 2)}}
			_, err := m.ship(context.Background(), opts...)
			t.Logf("class %d, %s", class, name)
			wantUnknown(t, s, err)
			wantText(t, err, "refused")

			s.calls = nil
			_, err = m.Create(context.Background(), Row{"id": "o-1"}, opts...)
			wantUnknown(t, s, err)
			wantText(t, err, "refused")
		}
	}
}

// A guard that says no to the repeat has vetoed only that: the first COMMIT may still be
// on its way.
func TestGuardRefusesTheRepeat(t *testing.T) {
	no := errors.New("no")
	asked := 0
	guard := Hook{Guard: func(context.Context, Event) error {
		if asked++; asked > 1 {
			return no
		}
		return nil
	}}
	s := &fakeStore{apply: []reply{lost}}
	m := machineWith(t, s, orderWith(", guard: ok"), Code{"ok": guard})
	s.inspect = []sight{{snapshot: m.rowIn("pending", 1)}}
	s.inspect[0].snapshot.Row.Values[0] = int64(5)
	_, err := m.Fire(context.Background(), "pay", "o-1", Args{"amount": 5})
	wantUnknown(t, s, err)
	wantText(t, err, "guard ok", "no")
	if errors.Is(err, ErrRejected) || errors.Is(err, no) || asked != 2 {
		t.Errorf("asked %d times, %v: it is an answer, and the first write may be applied", asked, err)
	}
}
