package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// grouped runs a test with shared commits and without.
func grouped(t *testing.T, test func(t *testing.T, opts ...Option)) {
	t.Run("sharing commits", func(t *testing.T) { test(t) })
	t.Run("without", func(t *testing.T) { test(t, WithoutGroupCommit()) })
}

const callers = 16

// together runs fn in that many goroutines at once.
func together(n int, fn func(i int)) {
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}

// Invariants H.1 and H.5: one winner among callers who name the same version, and the
// others are told what is.
func TestOneWinner(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r := open(t, counter, opts...)
		r.create(t, "1", nil)
		cycle := []string{"next", "more", "back"}
		to := map[string]string{"next": "b", "more": "c", "back": "a"}
		for round := range rounds(60, 400) {
			version := int64(round + 1)
			transition := cycle[round%len(cycle)]
			var won, lost int
			var mu sync.Mutex
			together(callers, func(int) {
				res, err := r.m.Fire(t.Context(), transition, "1", nil, engine.WithVersion(version))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil && res.Outcome == engine.Applied && res.Version == version+1 && res.To == to[transition]:
					won++
				case err == nil && res.Outcome == engine.AlreadyReached && res.State == to[transition] && res.Version == version+1:
					lost++ // version+1 is this transition's entry: an earlier run of the same
				default:
					t.Errorf("round %d: %+v, %v", round, res, err)
				}
			})
			if won != 1 || lost != callers-1 {
				t.Fatalf("round %d: %d won, %d lost", round, won, lost)
			}
		}
		r.whole(t)
	})
}

// Invariant H.2: four requests, each sent four times, on a transition that leaves the
// row where it is: the key alone tells them apart.
func TestOneEffectPerKey(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r := open(t, counter, opts...)
		n := rounds(30, 300)
		for round := range n {
			id := fmt.Sprint(round)
			r.create(t, id, nil)
			var mu sync.Mutex
			versions := map[string]int64{}
			applied := 0
			together(callers, func(i int) {
				key := fmt.Sprint("k", i%4)
				res, err := r.m.Fire(t.Context(), "add", id, engine.Args{"by": 1 << (i % 4)}, engine.WithKey(key))
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Errorf("%s: %v", key, err)
					return
				}
				if res.Outcome == engine.Applied {
					applied++
				}
				if v, ok := versions[key]; ok && v != res.Version {
					t.Errorf("%s: two results, %d and %d", key, v, res.Version)
				}
				versions[key] = res.Version
			})
			row, err := r.m.Get(t.Context(), id)
			check(t, err)
			if applied != 4 || row.Version != 5 || row.Row()["n"] != int64(15) {
				t.Fatalf("round %d: %d applied, %+v", round, applied, row)
			}
		}
		r.whole(t)
	})
}

// Case 34: thirty callers with one key, the winner slowed down by its effect.
func TestLosersOfASlowWinner(t *testing.T) {
	r := open(t, counter)
	for _, delay := range []time.Duration{300 * time.Millisecond, 0} {
		m := r.withEffect(t, func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			_, err := tx.ExecContext(ctx, "SELECT pg_sleep($1)", delay.Seconds())
			return err
		}, func() {})
		id := fmt.Sprint("slow", delay)
		r.create(t, id, nil)
		var mu sync.Mutex
		applied := 0
		together(30, func(int) {
			res, err := m.Fire(t.Context(), "next", id, nil, engine.WithKey("k"))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				t.Error(err)
			case res.Outcome == engine.Applied:
				applied++
			case res.Outcome != engine.Replayed || res.Version != 2:
				t.Errorf("%+v", res)
			}
		})
		if applied != 1 {
			t.Errorf("%d applied", applied)
		}
	}
	r.whole(t)
}

// Invariant H.4: a miss writes nothing and leaves no lock.
func TestMissLeavesNoLock(t *testing.T) {
	grouped(t, func(t *testing.T, opts ...Option) {
		r := open(t, order, opts...)
		r.create(t, "1", nil)
		for _, opts := range [][]engine.CallOption{nil, {engine.WithKey("k")}, {engine.WithVersion(9)}} {
			if _, err := r.m.Fire(t.Context(), "ship", "1", nil, opts...); err == nil {
				t.Fatal("it applied")
			}
			begun := time.Now()
			r.exec(t, "UPDATE orders SET payment_ref = 'x' WHERE id = '1'")
			if took := time.Since(begun); took > 100*time.Millisecond {
				t.Errorf("the row was locked for %v", took)
			}
		}
		var n int
		check(t, r.store.DB().GetContext(t.Context(), &n, "SELECT count(*) FROM fsm_journal"))
		if n != 1 {
			t.Errorf("%d entries, want the creation's", n)
		}
		r.whole(t)
	})
}

// The answer to a miss under a race names the winner's state: the CAS waits for the row
// lock, loses, and the diagnosis is read afterwards.
func TestTruthAfterALostRace(t *testing.T) {
	r := open(t, order)
	r.create(t, "1", nil)
	tx := r.begin(t, 0)
	_, err := r.m.In(tx).Fire(t.Context(), "cancel", "1", nil)
	check(t, err)
	got := make(chan error)
	go func() {
		_, err := r.m.Fire(t.Context(), "pay", "1", engine.Args{"payment_ref": "x"})
		got <- err
	}()
	waitForLock(t, r)
	check(t, tx.Commit())
	err = <-got
	var e *engine.Error
	if !errors.Is(err, engine.ErrNotAllowed) || !errors.As(err, &e) || e.State != "cancelled" || e.Version != 2 {
		t.Errorf("%v, want ErrNotAllowed from cancelled at version 2", err)
	}
	// and the source that several-source transitions report is the one that was left
	r.create(t, "2", nil)
	tx = r.begin(t, 0)
	_, err = r.m.In(tx).Fire(t.Context(), "pay", "2", engine.Args{"payment_ref": "x"})
	check(t, err)
	var res engine.Result
	go func() {
		var err error
		res, err = r.m.Fire(t.Context(), "cancel", "2", nil)
		got <- err
	}()
	waitForLock(t, r)
	check(t, tx.Commit())
	check(t, <-got)
	if res.From != "paid" || res.Version != 3 {
		t.Errorf("%+v, want from paid to version 3", res)
	}
	r.whole(t)
}

// Invariant H.14: whatever callers do to few rows at once, no deadlock.
func TestHammerWithoutDeadlock(t *testing.T) {
	r, log := recorded(t, counter, WithoutGroupCommit())
	for id := range 3 {
		r.create(t, fmt.Sprint(id), nil)
	}
	n := rounds(60, 600)
	together(callers, func(i int) {
		rng := rand.New(rand.NewPCG(uint64(i), 3)) //nolint:gosec // repeatable
		for k := range n {
			id := fmt.Sprint(rng.IntN(3))
			var opts []engine.CallOption
			transition, args := []string{"next", "more", "back", "add"}[rng.IntN(4)], engine.Args(nil)
			if transition == "add" {
				args = engine.Args{"by": 1}
				opts = []engine.CallOption{engine.WithKey(fmt.Sprint(i, "-", k%10))}
			}
			var err error
			if rng.IntN(3) == 0 {
				err = r.inOneTx(id, transition, args, opts)
			} else {
				_, err = r.m.Fire(context.Background(), transition, id, args, opts...)
			}
			if err != nil && !errors.Is(err, engine.ErrNotAllowed) && !errors.Is(err, engine.ErrBusy) {
				t.Error(err)
			}
		}
	})
	for _, e := range log.Events() {
		if e.Err != nil && (dialect{}).Classify(e.Err, "fsm_journal") != engine.ClassDuplicateKey {
			t.Errorf("%s: %v", e, e.Err)
		}
	}
	r.whole(t)
}

func (r *rig) inOneTx(id, transition string, args engine.Args, opts []engine.CallOption) error {
	tx, err := r.store.DB().Beginx()
	if err != nil {
		return err
	}
	if _, err := r.m.In(tx).Fire(context.Background(), transition, id, args, opts...); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}
