package sqlite_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// Contexts that end at any moment of the call: what was reported as not applied was
// not applied, and the repeat under the key leaves one journal row.
func TestContextsThatEndAnywhere(t *testing.T) {
	t.Parallel()
	store := open(t)
	m, bare := machineOn(t, store, orderText), machineOn(t, store, bareText)
	calls := 300
	if *long {
		calls = 10_000
	}
	applied, given := 0, 0
	for i := range calls {
		id := fmtInt(i)
		mustCreate(t, m, id)
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(600))*time.Microsecond)
		res, err := m.Fire(ctx, "pay", id, engine.Args{"payment_ref": id}, engine.WithKey("k"))
		cancel()
		e, getErr := m.Get(context.Background(), id)
		if getErr != nil {
			t.Fatal(getErr)
		}
		switch {
		case err == nil && res.Outcome == engine.Applied:
			applied++
			if e.State != "paid" || e.Version != 2 {
				t.Errorf("call %d was acknowledged, the row is %+v", i, e)
			}
		case err == nil:
			t.Errorf("call %d: %v, want Applied or an error", i, res.Outcome)
		case errors.Is(err, engine.ErrUnknownOutcome):
		default:
			given++
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("call %d: %v, want the context's error", i, err)
			}
			if e.State != "pending" || e.Version != 1 {
				t.Errorf("call %d said %v, and the row is %+v", i, err, e)
			}
		}
		if res, err := m.Fire(context.Background(), "pay", id, engine.Args{"payment_ref": id}, engine.WithKey("k")); err != nil || res.Version != 2 {
			t.Errorf("repeat of call %d: %+v, %v", i, res, err)
		}
		if entries, err := m.Journal(context.Background(), id); err != nil || len(entries) != 2 {
			t.Errorf("call %d left %d entries, %v, want 2", i, len(entries), err)
		}
		wantBareTold(t, bare, id)
	}
	t.Logf("%d applied, %d given up, of %d", applied, given, calls)
	if given == 0 || applied == 0 {
		t.Logf("this machine was too fast or too slow for the test to see both")
	}
}

// wantBareTold does the same without a journal.
func wantBareTold(t *testing.T, bare *engine.Machine, id string) {
	t.Helper()
	mustCreate(t, bare, id)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(100))*time.Microsecond)
	defer cancel()
	_, err := bare.Fire(ctx, "switch_on", id, nil, engine.WithVersion(1))
	e, getErr := bare.Get(context.Background(), id)
	if getErr != nil {
		t.Fatal(getErr)
	}
	if on := e.State == "on"; on != (err == nil) && !errors.Is(err, engine.ErrUnknownOutcome) {
		t.Errorf("bare call %s said %v, and the row is %+v", id, err, e)
	}
}

// The same in company: many callers, each with its own deadline, on few rows.
func TestContextsThatEndInCompany(t *testing.T) {
	t.Parallel()
	store := open(t)
	m := machineOn(t, store, lampText)
	mustCreate(t, m, "a", "b")
	var mu sync.Mutex
	applied := map[string]int64{}
	var wg sync.WaitGroup
	for w := range 32 {
		wg.Go(func() {
			for i := range 20 {
				id := []string{"a", "b"}[(w+i)%2]
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rand.IntN(3000))*time.Microsecond)
				res, err := m.Fire(ctx, []string{"switch_on", "switch_off"}[w/2%2], id, nil)
				cancel()
				switch {
				case err == nil && res.Outcome == engine.Applied:
					mu.Lock()
					applied[id]++
					mu.Unlock()
				case errors.Is(err, engine.ErrUnknownOutcome):
					t.Errorf("nothing is unknown on SQLite: %v", err)
				case err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, engine.ErrNotAllowed) && !errors.Is(err, engine.ErrBusy):
					t.Errorf("error %v", err)
				}
			}
		})
	}
	wg.Wait()
	for id, n := range applied {
		entries, err := m.Journal(context.Background(), id)
		if err != nil || int64(len(entries)) != n+1 {
			t.Errorf("%s: %d entries for %d applied calls and the creation, %v", id, len(entries), n, err)
		}
		if e, err := m.Get(context.Background(), id); err != nil || e.Version != n+1 || e.State != entries[len(entries)-1].To {
			t.Errorf("%s: row %+v after %d applied calls, %v", id, e, n, err)
		}
	}
}
