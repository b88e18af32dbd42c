package hooktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// outer gives an engine over a store that has nothing to do with the site's, and a
// machine on it whose effect is the function.
func (s *site) outer(effect func(ctx context.Context) error) (*engine.Engine, *engine.Machine) {
	s.Helper()
	def, err := definitions.Parse("outer.yaml", []byte(`
machine: outer
table: {name: outers}
initial: a
states: {a: , b: {final: true}}
transitions: {go: {from: a, to: b, effect: work}}
`))
	s.must(err)
	eng, err := engine.New(memory.New())
	s.must(err)
	m, err := eng.Machine(s.Context(), def, engine.Code{"work": {Effect: func(ctx context.Context, _ engine.Tx, _ engine.Event) error { return effect(ctx) }}})
	s.must(err)
	_, err = m.Create(s.Context(), engine.Row{"id": "o"})
	s.must(err)
	return eng, m
}

func (s *site) wantSaid(when string, want ...string) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.said, want) {
		s.Errorf("%s: after hooks said %v, want %v", when, s.said, want)
	}
}

// A call without In has committed when it returns, whatever becomes of a transaction of
// another store that it is made in.
func TestAfterBelongsToItsStore(t *testing.T) {
	undone := errors.New("undone")
	for place, run := range map[string]func(s *site, do func(ctx context.Context) error) error{
		"InTx": func(s *site, do func(ctx context.Context) error) error {
			eng, _ := s.outer(nil)
			return eng.InTx(s.Context(), func(ctx context.Context, _ engine.Tx) error { return do(ctx) })
		},
		"an effect": func(s *site, do func(ctx context.Context) error) error {
			_, m := s.outer(do)
			_, err := m.Fire(s.Context(), "go", "o", nil)
			return err
		},
	} {
		for _, end := range []error{nil, undone} {
			t.Run(place, func(t *testing.T) {
				onEach(t, func(s *site) {
					err := run(s, func(ctx context.Context) error {
						res, err := s.fire(ctx, s.m, "finish")
						s.must(err)
						s.must(res.AfterErr)
						s.wantSaid("on return", "finish v2")
						return end
					})
					if !errors.Is(err, end) {
						s.Errorf("%v, want %v", err, end)
					}
					s.wantSaid("in the end", "finish v2")
				})
			})
		}
	}
}

// A transaction of the caller's own commits when the caller says so, not when one of
// another store does.
func TestAfterOfACallersTransactionInAnother(t *testing.T) {
	onEach(t, func(s *site) {
		eng, _ := s.outer(nil)
		tx := s.begin()
		var res engine.Result
		s.must(eng.InTx(s.Context(), func(ctx context.Context, _ engine.Tx) (err error) {
			res, err = s.m.In(tx).Fire(ctx, "finish", "j", nil)
			return err
		}))
		s.wantSaid("before COMMIT")
		s.must(tx.Commit())
		s.must(res.AfterCommit(t.Context()))
		s.wantSaid("after COMMIT", "finish v2")
	})
}

// A call goes into the transaction it names, and not into the one whose context it is
// given: what its end does to it is the caller's to say.
func TestAfterBelongsToItsTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		if s.sql == nil || s.name == "sqlite" {
			s.Skip("one transaction at a time")
		}
		var res engine.Result
		other := func(ctx context.Context, end func(Tx) error) error {
			tx := s.begin()
			var err error
			if res, err = s.fire(ctx, s.m.In(tx), "finish"); err != nil {
				return errors.Join(err, tx.Rollback())
			}
			return end(tx)
		}
		s.must(s.eng.InTx(s.Context(), func(ctx context.Context, _ engine.Tx) error { return other(ctx, Tx.Rollback) }))
		s.wantSaid("InTx committed, the call's transaction did not")

		s.create("outer")
		s.effect = func(ctx context.Context, _ engine.Tx, e engine.Event) error {
			if e.Entity.ID != "outer" {
				return nil
			}
			return other(ctx, Tx.Rollback)
		}
		_, err := s.m.Fire(s.Context(), "finish", "outer", nil)
		s.must(err)
		s.wantSaid("the outer call committed, the inner one did not", "finish v2")

		s.must(s.eng.InTx(s.Context(), func(ctx context.Context, _ engine.Tx) error { return other(ctx, Tx.Commit) }))
		s.wantSaid("handed back", "finish v2")
		s.must(res.AfterCommit(s.Context()))
		s.wantSaid("after the COMMIT of the call's transaction", "finish v2", "finish v2")
	})
}

// A transaction has several faces.
func TestAfterKnowsItsTransaction(t *testing.T) {
	type traced struct{ *sqlx.Tx }
	type bare struct {
		engine.Tx
		_ []string // cannot be compared
	}
	onEach(t, func(s *site) {
		for i, face := range []func(tx engine.Tx) engine.Tx{
			func(tx engine.Tx) engine.Tx { return tx },
			func(tx engine.Tx) engine.Tx { return bare{Tx: tx} },
			func(tx engine.Tx) engine.Tx { return tx.(*sqlx.Tx).Tx },           //nolint:errcheck,forcetypeassert // it panics
			func(tx engine.Tx) engine.Tx { return &traced{Tx: tx.(*sqlx.Tx)} }, //nolint:errcheck,forcetypeassert // it panics
		} {
			if s.sql == nil && i > 0 {
				break // memory takes its own alone
			}
			s.said = nil
			id := fmt.Sprint("face", i)
			s.create(id)
			s.must(s.eng.InTx(s.Context(), func(ctx context.Context, tx engine.Tx) error {
				_, err := s.m.In(face(tx)).Fire(ctx, "finish", id, nil)
				return err
			}))
			s.wantSaid(id, "finish v2")
		}
	})
}
