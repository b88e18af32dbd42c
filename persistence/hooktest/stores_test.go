package hooktest

import (
	"context"
	"errors"
	"slices"
	"testing"

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
