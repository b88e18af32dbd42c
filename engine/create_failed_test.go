package engine

import (
	"context"
	"errors"
	"testing"
)

// A creation that fails says what the database's adapter knows of it, as a transition does.
func TestCreateKeepsHints(t *testing.T) {
	ctx := context.Background()
	for _, class := range []Class{ClassRetryable, ClassUnsent} {
		f := &Fault{Class: class, Err: errDriver, Hint: "another transaction has just recorded this key"}
		m := machineOver(t, &fakeStore{create: []reply{{err: f}}}, orderWith(""))
		_, err := m.Create(ctx, Row{"id": "o-1"})
		if !errors.Is(err, ErrBusy) || !errors.Is(err, errDriver) {
			t.Errorf("class %d: %v, want ErrBusy", class, err)
		}
		wantText(t, err, f.Hint)
		_, err = m.In(fakeTx{}).Create(ctx, Row{"id": "o-1"})
		if !errors.Is(err, ErrBusy) {
			t.Errorf("class %d: %v, want ErrBusy", class, err)
		}
		wantText(t, err, f.Hint)
	}
	m := machineOver(t, &fakeStore{create: []reply{{}}, inspect: []sight{{err: &Fault{Class: ClassRetryable, Err: errDriver, Hint: "your snapshot is older than the row"}}}}, orderWith(""))
	_, err := m.In(fakeTx{}).Create(ctx, Row{"id": "o-1"})
	wantText(t, err, "busy", "your snapshot is older than the row")
}

// What refused the row is met by a creation that the journal knows: it is a repeat.
func TestCreateIsSeenBehindARefusal(t *testing.T) {
	for _, class := range []Class{ClassVersionTaken, ClassConstraint} {
		s := &fakeStore{create: []reply{{err: &Fault{Class: class, Err: errDriver}}}}
		m := machineOver(t, s, orderWith(""))
		s.onCreate = func() {
			c := s.calls[0]
			s.inspect = []sight{{snapshot: m.rowIn("paid", 2, &Entry{Version: 1, To: "pending", Key: c.Key, Fingerprint: c.Fingerprint, Attempt: "an earlier call"})}}
		}
		res, err := m.Create(context.Background(), Row{"id": "o-1"}, WithKey("k"))
		if err != nil || res.Outcome != Replayed || res.Version != 1 || res.State != "paid" {
			t.Errorf("class %d: %+v, %v, want Replayed", class, res, err)
		}
	}
}

// In a caller's transaction a row that is there for the INSERT and gone for the reader is
// looked for once more; there is nothing to lock it by.
func TestCreateInTxMissesTwice(t *testing.T) {
	s := &fakeStore{create: []reply{{}}, inspect: []sight{{}}}
	_, err := machineOver(t, s, orderWith("")).In(fakeTx{}).Create(context.Background(), Row{"id": "o-1"})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("%v, want ErrBusy", err)
	}
	wantText(t, err, "roll back")
	wantSent(t, s, "create in tx", "inspect in tx", "create in tx", "inspect in tx")
}

// Without a journal there is no key that could settle it.
func TestCreateBareUnknown(t *testing.T) {
	s := &fakeStore{create: []reply{lost, {err: fault(ClassFatal, "read-only")}}}
	_, err := machineOver(t, s, orderWith("", "journal: false\n")).Create(context.Background(), Row{"id": "o-1"})
	if !errors.Is(err, ErrUnknownOutcome) {
		t.Errorf("%v, want ErrUnknownOutcome", err)
	}
	wantText(t, err, "read the row")
}

// A creation starts behind the journal as it was read. Where another row of the id lived and
// died in between, it starts anew; which is no fault of anybody's.
func TestCreateBehindAJournalThatGrows(t *testing.T) {
	ctx := context.Background()
	taken := reply{err: fault(ClassVersionTaken, "duplicate version")}
	s := &fakeStore{create: []reply{taken, taken, {change: Change{OK: true, From: -1, Version: 3}}}}
	res, err := machineOver(t, s, orderWith("")).Create(ctx, Row{"id": "o-1"})
	if err != nil || res.Outcome != Applied || res.Version != 3 {
		t.Errorf("%+v, %v, want Applied at version 3", res, err)
	}
	wantSent(t, s, "create", "create", "create")

	_, err = machineOver(t, &fakeStore{create: []reply{taken}}, orderWith("")).Create(ctx, Row{"id": "o-1"})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("for ever: %v, want ErrBusy", err)
	}
	wantText(t, err, "come and go", "repeat the call", "duplicate version")

	s = &fakeStore{create: []reply{taken}}
	_, err = machineOver(t, s, orderWith("")).In(fakeTx{}).Create(ctx, Row{"id": "o-1"})
	if !errors.Is(err, ErrBusy) {
		t.Errorf("in a transaction: %v, want ErrBusy", err)
	}
	wantText(t, err, "come and go", "roll back")
	wantSent(t, s, "create in tx")
}
