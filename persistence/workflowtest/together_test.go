package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

// The members of a shared commit: each has rows of its own, and an answer of its own
// whatever happens to the others of its batch.
const lampWithLabel = `
machine: lamp
table: {name: lamps}
fields: {n: {type: int, default: 0}, label: {type: string, nullable: true}}
unique: [[label]]
initial: dark
states: {dark: , lit: , spent: {final: true}}
transitions:
  light: {from: dark, to: lit, set: {n: n + 1}}
  douse: {from: lit, to: dark}
  name:  {from: [dark, lit], to: spent, args: {label: string}, set: {label: args.label}}
`

// mates are calls that share commits: the good ones, and those that must harm nobody.
type mates struct {
	*site
	wg      sync.WaitGroup
	end     time.Time
	good    atomic.Int64
	slowest atomic.Int64
}

// TestOneMembersTroubleHarmsNoOther: a constraint error, a duplicate key, a miss, an
// ended context and a locked row beside calls that must simply succeed.
func TestOneMembersTroubleHarmsNoOther(t *testing.T) {
	onEach(t, databases(), func(s *site) {
		m := &mates{site: s, end: time.Now().Add(1500 * time.Millisecond)}
		if *long {
			m.end = time.Now().Add(30 * time.Second)
		}
		m.create("taken", engine.Row{"label": "taken"})
		for range 12 {
			m.goOn(m.switching)
		}
		m.goOn(m.constraint)
		m.goOn(m.duplicate)
		m.goOn(m.miss)
		m.goOn(m.ended)
		if s.name != "sqlite" { // where one transaction holds every row
			m.goOn(m.held)
		}
		m.wg.Wait()
		if m.good.Load() < 20 {
			s.t.Errorf("only %d calls beside the troubled ones", m.good.Load())
		}
		s.t.Logf("%d good calls, the slowest took %v", m.good.Load(), time.Duration(m.slowest.Load()))
	}, parse(t, lampWithLabel))
}

// TestLockedTableHoldsUpNoOther: calls on a table that somebody has locked as a whole wait,
// and those on another table, in the same batches and of the same pool, do not.
func TestLockedTableHoldsUpNoOther(t *testing.T) {
	lamps := parse(t, lampWithLabel)
	free := parse(t, strings.ReplaceAll(lampWithLabel, "lamp", "free"))
	locks := map[string][]string{
		"postgres": {"BEGIN", "LOCK TABLE lamps IN ACCESS EXCLUSIVE MODE", "ROLLBACK"},
		"mariadb":  {"LOCK TABLES lamps WRITE", "UNLOCK TABLES"},
	}
	onEach(t, databases()[1:], func(s *site) {
		m := &mates{site: s, end: time.Now().Add(time.Hour)}
		other := &mates{site: &site{t: s.t, m: s.machines["free"]}}
		ids := make([]string, 24)
		for i := range ids {
			ids[i] = fmt.Sprintf("x-%d", i)
			m.create(ids[i], nil)
			other.create(ids[i], nil)
		}
		release := holding(s.t, s.Store().(*persistence.Store), locks[s.name])
		for _, id := range ids[:12] {
			m.wg.Go(func() {
				if err := m.switching(id, 0); err != nil {
					s.t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Millisecond)
		for _, id := range ids {
			other.wg.Go(func() {
				for n := range 6 {
					if err := other.switching(id, n); err != nil {
						s.t.Error(err)
						return
					}
				}
			})
		}
		other.wg.Wait()
		release()
		m.wg.Wait()
		if slowest := time.Duration(other.slowest.Load()); slowest > time.Second {
			s.t.Errorf("a call on a table that nobody holds took %v", slowest)
		}
	}, lamps, free)
}

var mateIDs atomic.Int64

func (m *mates) goOn(member func(id string, n int) error) {
	id := fmt.Sprintf("row-%d", mateIDs.Add(1))
	m.create(id, nil)
	m.wg.Go(func() {
		for n := 0; time.Now().Before(m.end); n++ {
			if err := member(id, n); err != nil {
				m.t.Errorf("%s: %v", id, err)
				return
			}
		}
	})
}

func (m *mates) create(id string, row engine.Row) {
	all := engine.Row{"id": id}
	for k, v := range row {
		all[k] = v
	}
	if res, err := m.m.Create(m.t.Context(), all); err != nil || res.Outcome != engine.Applied {
		m.t.Errorf("create %s: %v %v", id, res, err)
	}
}

// switching is what must go on: every call is applied, at the version that is next.
func (m *mates) switching(id string, n int) error {
	transition := []string{"light", "douse"}[n%2]
	began := time.Now()
	res, err := m.m.Fire(m.t.Context(), transition, id, nil)
	if err != nil || res.Outcome != engine.Applied || res.Version != int64(n+2) {
		return fmt.Errorf("%s: %+v, %w", transition, res, err)
	}
	m.good.Add(1)
	for took := int64(time.Since(began)); ; {
		was := m.slowest.Load()
		if took <= was || m.slowest.CompareAndSwap(was, took) {
			return nil
		}
	}
}

// constraint meets a unique key of the table.
func (m *mates) constraint(id string, _ int) error {
	_, err := m.m.Fire(m.t.Context(), "name", id, engine.Args{"label": "taken"})
	var e *engine.Error
	if !errors.As(err, &e) || errors.Is(err, engine.ErrBusy) || errors.Is(err, engine.ErrUnknownOutcome) {
		return fmt.Errorf("want the constraint's error, got %w", err)
	}
	return m.at(id, "dark", 1)
}

// duplicate sends one key again and again.
func (m *mates) duplicate(id string, n int) error {
	res, err := m.m.Fire(m.t.Context(), "light", id, nil, engine.WithKey("once"))
	want := engine.Replayed
	if n == 0 {
		want = engine.Applied
	}
	if err != nil || res.Outcome != want {
		return fmt.Errorf("call %d: %+v, %w", n, res, err)
	}
	return nil
}

// miss names a version that the row has not.
func (m *mates) miss(id string, _ int) error {
	if _, err := m.m.Fire(m.t.Context(), "light", id, nil, engine.WithVersion(99)); !errors.Is(err, engine.ErrConflict) {
		return fmt.Errorf("want ErrConflict, got %w", err)
	}
	return nil
}

// ended gives its calls up at any moment, and learns the truth with the key.
func (m *mates) ended(id string, n int) error {
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(n*137%900)*time.Microsecond)
	defer cancel()
	key, transition := fmt.Sprintf("k-%d", n), []string{"light", "douse"}[n%2]
	_, err := m.m.Fire(ctx, transition, id, nil, engine.WithKey(key))
	res, again := m.m.Fire(m.t.Context(), transition, id, nil, engine.WithKey(key))
	if again != nil || (res.Outcome != engine.Applied && res.Outcome != engine.Replayed) || res.Version != int64(n+2) {
		return fmt.Errorf("%s, after %w: %+v, %w", transition, err, res, again)
	}
	if err == nil && res.Outcome == engine.Applied {
		return fmt.Errorf("%s was acknowledged, and then applied again", transition)
	}
	if err != nil && !errors.Is(err, engine.ErrUnknownOutcome) && res.Outcome == engine.Replayed {
		return fmt.Errorf("%s was reported as not applied (%w), and was", transition, err)
	}
	return nil
}

// held calls a row that a transaction holds for a while, and waits for it.
func (m *mates) held(id string, n int) error {
	tx, err := m.Begin(m.t.Context(), storetest.SqlxTx, 0)
	if err != nil {
		return err
	}
	transition := []string{"light", "douse"}[n%2]
	if _, err := m.m.In(tx.Tx).Fire(m.t.Context(), transition, id, nil); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	done := make(chan error, 1)
	go func() {
		res, err := m.m.Fire(m.t.Context(), transition, id, nil)
		if err == nil && res.Outcome != engine.Applied {
			err = fmt.Errorf("%+v", res)
		}
		done <- err
	}()
	time.Sleep(150 * time.Millisecond)
	if err := tx.Rollback(); err != nil {
		return err
	}
	return <-done
}

// at checks where a row is.
func (m *mates) at(id, state string, version int64) error {
	e, err := m.m.Get(m.t.Context(), id)
	if err != nil || e.State != state || e.Version != version {
		return fmt.Errorf("%s is %s at version %d, want %s at %d: %w", id, e.State, e.Version, state, version, err)
	}
	return nil
}
