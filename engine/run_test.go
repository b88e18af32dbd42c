package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var errDriver = errors.New("what the driver said")

// shipping is the call of most tests: paid -> shipped.
func (m *Machine) ship(ctx context.Context, opts ...CallOption) (Result, error) {
	return m.Fire(ctx, "ship", "o-1", nil, opts...)
}

func (m *Machine) change(from, to string, version int64) Change {
	return Change{OK: true, From: m.rules.byName[from], To: m.rules.byName[to], Version: version}
}

// mine is the entry that the last write sent would have left.
func (s *fakeStore) mine(from, to string, version int64) *Entry {
	c := s.calls[len(s.calls)-1]
	return &Entry{Version: version, Transition: "ship", From: from, To: to, Key: c.Key, Fingerprint: c.Fingerprint, Attempt: c.Attempt}
}

func TestApplied(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	s.apply = []reply{{change: m.change("paid", "shipped", 7)}}
	res, err := m.ship(context.Background(), WithKey("k"), WithActor("ann"), WithMeta(map[string]int{"n": 1}), WithVersion(6))
	if err != nil {
		t.Fatal(err)
	}
	if res.ID != "o-1" || res.From != "paid" || res.To != "shipped" || res.State != "shipped" || res.Version != 7 ||
		res.Outcome != Applied || res.Outcome.Duplicate() || res.Key != "k" || res.First != nil {
		t.Errorf("result %+v", res)
	}
	wantSent(t, s, "apply")
	c := s.calls[0]
	if c.ID != "o-1" || c.Version != 6 || !c.Now.Equal(noon) || c.Key != "k" || c.KeyOwn || c.Actor != "ann" || string(c.Meta) != `{"n":1}` || string(c.Record.Args) != "{}" {
		t.Errorf("sent call %+v", c)
	}
	if err := res.AfterCommit(context.Background()); err != nil {
		t.Errorf("AfterCommit with nothing to run: %v", err)
	}
}

// What was sent is not the caller's memory: a store may still read it when the caller has
// been told that the outcome is unknown.
func TestSentValuesAreOwn(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, `
machine: file
table: {name: files}
fields: {b: {type: bytes}, j: {type: json, nullable: true}}
initial: a
states: {a: , b: {final: true}}
transitions: {put: {from: a, to: b, args: {b: bytes, j: json}, set: {b: args.b, j: args.j}}}
`)
	s.apply, s.create = []reply{{change: m.change("a", "b", 2)}}, []reply{{change: Change{OK: true, From: -1, Version: 1}}}
	b, j := []byte("abc"), []byte(`{"a":1}`)
	if _, err := m.Create(context.Background(), Row{"id": "x", "b": b, "j": j}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Fire(context.Background(), "put", "x", Args{"b": b, "j": j}); err != nil {
		t.Fatal(err)
	}
	b[0], j[2] = 'X', 'X'
	for _, values := range [][]any{s.creations[0].Values, s.creations[0].Given, s.calls[1].Args} {
		if got := fmt.Sprintf("%s", values); got != `[abc {"a":1}]` {
			t.Errorf("sent %s", got)
		}
	}
}

// A retryable error means that nothing was applied: the same call again, and after
// the last try ErrBusy.
func TestRetryable(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	busy := reply{err: &Fault{Class: ClassRetryable, Err: errDriver}}
	s.apply = []reply{busy, busy, {change: m.change("paid", "shipped", 2)}}
	res, err := m.ship(context.Background())
	if err != nil || res.Outcome != Applied {
		t.Fatalf("result %+v, error %v", res, err)
	}
	wantSent(t, s, "apply", "apply", "apply")
	if s.calls[0].Key != s.calls[2].Key || s.calls[0].Attempt != s.calls[2].Attempt {
		t.Errorf("the tries had keys %q and %q, want one key", s.calls[0].Key, s.calls[2].Key)
	}

	s.sent, s.apply = nil, []reply{busy}
	_, err = m.ship(context.Background())
	var e *Error
	if !errors.Is(err, ErrBusy) || !errors.Is(err, errDriver) || !errors.As(err, &e) {
		t.Fatalf("error %v, want ErrBusy that wraps the driver's", err)
	}
	if s.count("apply") != 4 {
		t.Errorf("sent %v, want 4 tries", s.sent)
	}
	wantText(t, err, "given up after 4 tries")
}

// The store's hint says more than "given up".
func TestRetryableHint(t *testing.T) {
	s := &fakeStore{apply: []reply{{err: &Fault{Class: ClassRetryable, Err: errDriver, Hint: "another transaction holds the writer"}}}}
	_, err := machineOver(t, s, orderWith("")).ship(context.Background())
	wantText(t, err, "busy", "another transaction holds the writer", errDriver.Error())
}

// Between tries the call sleeps a random time that grows, up to the cap.
func TestRetryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{apply: []reply{{err: &Fault{Class: ClassRetryable, Err: errDriver}}}}
		m := machineOver(t, s, orderWith(""), WithRetry(Retry{Attempts: 12, Base: time.Millisecond, Cap: 50 * time.Millisecond}))
		seen := map[time.Duration]bool{}
		for range 20 {
			start := time.Now()
			if _, err := m.ship(context.Background()); !errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
			took := time.Since(start)
			seen[took] = true
			if limit := (1 + 2 + 4 + 8 + 16 + 32 + 50*5) * time.Millisecond; took > limit {
				t.Errorf("12 tries took %v, want at most %v", took, limit)
			}
		}
		if len(seen) < 10 {
			t.Errorf("20 calls waited %d different times: there is no jitter", len(seen))
		}
	})
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeStore{apply: []reply{{err: &Fault{Class: ClassRetryable, Err: errDriver}}}}
		m := machineOver(t, s, orderWith(""), WithRetry(Retry{Attempts: 1000, Base: time.Second, Cap: time.Second}))
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := m.ship(ctx)
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("returned after %v, want 5s", took)
		}
		if !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want ErrBusy that also matches the context's", err)
		}
	})
}

// The row fits, changed in between, fits again: once more, bounded, then ErrBusy.
func TestRowKeepsChanging(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	s.apply = []reply{{}}
	for version := range int64(4) {
		s.inspect = append(s.inspect, sight{snapshot: m.rowIn("paid", 2+version/2)}) // now and then it changes after the look
	}
	_, err := m.ship(context.Background())
	if !errors.Is(err, ErrBusy) || s.count("apply") != 4 || s.count("inspect") != 4 {
		t.Errorf("error %v after %v, want ErrBusy after four tries", err, s.sent)
	}
	wantText(t, err, "the row kept changing")
}

// The row fits, does not change, and the write does not change it either: nothing is won
// by more tries, each of which may run the trigger that drops the write.
func TestWriteIsDropped(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	s.apply, s.inspect = []reply{{}}, []sight{{snapshot: m.rowIn("paid", 2)}}
	_, err := m.ship(context.Background())
	if err == nil || errors.Is(err, ErrBusy) || s.count("apply") != 3 {
		t.Errorf("error %v after %v, want another than ErrBusy after three tries", err, s.sent)
	}
	wantText(t, err, "the UPDATE changed nothing", "trigger")
}

func TestMissIsAnswered(t *testing.T) {
	s := &fakeStore{apply: []reply{{}}}
	m := machineOver(t, s, orderWith(""))
	s.inspect = []sight{{snapshot: m.rowIn("shipped", 3)}}
	res, err := m.ship(context.Background())
	if err != nil || res.Outcome != AlreadyReached || !res.Outcome.Duplicate() || res.State != "shipped" || res.Version != 3 || res.ID != "o-1" {
		t.Errorf("result %+v, error %v", res, err)
	}
	wantSent(t, s, "apply", "inspect")
	if q := s.inquiries[0]; q.Key != "" || q.ID != "o-1" || q.Transition != m.rules.byTransit["ship"] {
		t.Errorf("inquiry %+v: a key that the engine just made cannot be in the journal", q)
	}
	if _, err := m.ship(context.Background(), WithKey("k"), WithVersion(3)); err != nil {
		t.Fatal(err)
	}
	if q := s.inquiries[1]; q.Key != "k" || q.Version != 3 {
		t.Errorf("inquiry %+v, want key and version", q)
	}
}

// Replayed: the result is the first run's, and State is where the row is now.
func TestReplayedResult(t *testing.T) {
	s := &fakeStore{apply: []reply{{err: fault(ClassDuplicateKey, "UNIQUE")}}}
	m := machineOver(t, s, orderWith(""))
	first := &Entry{Version: 3, Transition: "ship", From: "paid", To: "shipped", Key: "k", Fingerprint: m.rules.transitions[m.rules.byTransit["ship"]].fingerprint(nil), At: noon}
	s.inspect = []sight{{snapshot: m.rowIn("cancelled", 4, first)}}
	res, err := m.ship(context.Background(), WithKey("k"))
	if err != nil {
		t.Fatal(err)
	}
	if res.Outcome != Replayed || res.From != "paid" || res.To != "shipped" || res.Version != 3 || res.State != "cancelled" || res.First != first || res.Key != "k" {
		t.Errorf("result %+v", res)
	}
	wantSent(t, s, "apply", "inspect")
}

func TestConstraintPassesThrough(t *testing.T) {
	s := &fakeStore{apply: []reply{{err: &Fault{Class: ClassConstraint, Err: fmt.Errorf("driver: %w", errDriver)}}}}
	_, err := machineOver(t, s, orderWith("")).ship(context.Background())
	if !errors.Is(err, errDriver) {
		t.Errorf("error %v does not wrap the driver's", err)
	}
	for _, answer := range []error{ErrConflict, ErrBusy, ErrNotAllowed, ErrUnknownOutcome, ErrRejected} {
		if errors.Is(err, answer) {
			t.Errorf("a constraint of the table is read as %v", answer)
		}
	}
	wantSent(t, s, "apply")
}

func TestVersionTakenIsFatal(t *testing.T) {
	s := &fakeStore{apply: []reply{{err: &Fault{Class: ClassVersionTaken, Err: errDriver, Hint: "UPDATE orders SET version = 9"}}}}
	_, err := machineOver(t, s, orderWith("")).ship(context.Background())
	wantText(t, err, "already holds the version", "UPDATE orders SET version = 9")
	if errors.Is(err, ErrBusy) || errors.Is(err, ErrConflict) || !errors.Is(err, errDriver) {
		t.Errorf("error %v, want a fatal one", err)
	}
	wantSent(t, s, "apply")
}

func TestFatal(t *testing.T) {
	for _, err := range []error{fault(ClassFatal, "no such table"), errors.New("no such table")} {
		s := &fakeStore{apply: []reply{{err: err}}}
		_, got := machineOver(t, s, orderWith("")).ship(context.Background())
		var e *Error
		if !errors.Is(got, err) || !errors.As(got, &e) || errors.Is(got, ErrBusy) || errors.Is(got, ErrUnknownOutcome) {
			t.Errorf("error %v, want a plain one that wraps the driver's", got)
		}
		wantSent(t, s, "apply")
	}
}

// A miss whose reason cannot be read changed nothing.
func TestInspectFails(t *testing.T) {
	for class, want := range map[Class]error{ClassRetryable: ErrBusy, ClassUnknown: ErrBusy, ClassFatal: nil} {
		s := &fakeStore{apply: []reply{{}}, inspect: []sight{{err: &Fault{Class: class, Err: errDriver}}}}
		_, err := machineOver(t, s, orderWith("")).ship(context.Background())
		if !errors.Is(err, errDriver) || (want != nil) != errors.Is(err, ErrBusy) {
			t.Errorf("class %d: error %v, want %v", class, err, want)
		}
	}
}
