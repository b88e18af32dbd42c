package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestNewRefuses(t *testing.T) {
	for name, opts := range map[string][]Option{
		"a nil option":               {nil},
		"a nil clock":                {WithClock(nil)},
		"a nil observer":             {WithObserver(nil)},
		"no attempts":                {WithRetry(Retry{Attempts: 0, Base: 1, Cap: 1})},
		"no base":                    {WithRetry(Retry{Attempts: 1, Base: 0, Cap: 1})},
		"a cap below base":           {WithRetry(Retry{Attempts: 1, Base: 2, Cap: 1})},
		"a good one, then a bad one": {WithClock(atNoon), nil},
	} {
		if eng, err := New(&fakeStore{}, opts...); err == nil || eng != nil {
			t.Errorf("%s: engine %v, error %v, want an error alone", name, eng, err)
		}
	}
	if _, err := New(nil); err == nil {
		t.Error("New(nil) must say that there is no store")
	}
	var none *Engine
	if _, err := none.Machine(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "engine.New") {
		t.Errorf("Machine of no engine: %v", err)
	}
	eng, err := New(&fakeStore{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Machine(context.Background(), nil); err == nil {
		t.Error("Machine(nil) must be an error")
	}
}

// observed keeps what an observer was told.
type observed []Observation

func (o *observed) Observe(_ context.Context, seen Observation) { *o = append(*o, seen) }

func TestObservers(t *testing.T) {
	var first, second observed
	now := noon
	clock := func() time.Time { now = now.Add(time.Millisecond); return now }
	s := &fakeStore{apply: []reply{{err: fault(ClassRetryable, "locked")}, {}}}
	m := machineOver(t, s, orderWith(""), WithObserver(&first), WithObserver(&second), WithClock(clock))
	s.inspect = []sight{{snapshot: m.rowIn("shipped", 3)}}
	s.create = []reply{{change: Change{OK: true, From: -1, Version: 1}}}
	ctx := context.Background()
	if _, err := m.ship(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(ctx, Row{"id": "o-2"}); err != nil {
		t.Fatal(err)
	}
	_, refused := m.Fire(ctx, "fly", "o-1", nil)
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("observed %d and %d calls, want 3 each", len(first), len(second))
	}
	fire, create, invalid := first[0], first[1], first[2]
	if fire.Machine != "order" || fire.Transition != "ship" || fire.ID != "o-1" || fire.Attempts != 2 || fire.Result.Outcome != AlreadyReached || fire.Err != nil || fire.Took <= 0 {
		t.Errorf("fire observed as %+v", fire)
	}
	if create.Transition != "" || create.ID != "o-2" || create.Attempts != 1 || create.Result.Outcome != Applied || create.Took <= 0 {
		t.Errorf("create observed as %+v", create)
	}
	if !errors.Is(invalid.Err, ErrInvalidArgs) || invalid.Err != refused || invalid.Attempts != 0 { //nolint:errorlint // the same
		t.Errorf("a refused call observed as %+v", invalid)
	}
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[Outcome]string{0: "none", Applied: "Applied", AlreadyReached: "AlreadyReached", AlreadyPassed: "AlreadyPassed", Replayed: "Replayed", 9: "none"} {
		if o.String() != want {
			t.Errorf("Outcome(%d) is %q, want %q", o, o, want)
		}
	}
	if Applied.Duplicate() || !AlreadyReached.Duplicate() || !Replayed.Duplicate() {
		t.Error("only Applied is no duplicate")
	}
}
