package workflowtest

import (
	"context"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
)

const wrapping = `
machine: wrap
table: {name: wraps}
initial: a
states: {a: , b: {final: true}}
transitions: {go: {from: a, to: b, effect: inner}}
`

// TestFailedCallLeavesNothing: a call in a transaction whose journal entry is refused has
// taken back its UPDATE, so that whoever ignores its error and commits commits nothing of it.
func TestFailedCallLeavesNothing(t *testing.T) {
	for _, k := range kinds() {
		for _, way := range []string{"effect", "InTx"} {
			t.Run(k.name+", "+way, func(t *testing.T) {
				t.Parallel()
				s := bind(t, k.name, k.open(t), parse(t, attacked))
				_, err := s.m.Create(t.Context(), engine.Row{"id": "x"})
				check(t, err)
				_, err = s.m.Fire(t.Context(), "add", "x", nil, engine.WithKey("k"))
				check(t, err)
				check(t, s.Update(t.Context(), s.m.Definition(), "x", engine.Row{"version": int64(1)})) // by hand, behind its journal
				var inner error
				call := func(ctx context.Context, tx engine.Tx) error {
					_, inner = s.m.In(tx).Fire(ctx, "pay", "x", nil)
					return nil
				}
				if way == "InTx" {
					_ = s.eng.InTx(t.Context(), call)
				} else {
					if s, ok := s.Store().(*persistence.Store); ok {
						check(t, s.Migrate(t.Context(), parse(t, wrapping)))
					}
					wrap, err := s.eng.Machine(t.Context(), parse(t, wrapping), engine.Code{"inner": {Effect: func(ctx context.Context, tx engine.Tx, _ engine.Event) error { return call(ctx, tx) }}})
					check(t, err)
					_, err = wrap.Create(t.Context(), engine.Row{"id": "o"})
					check(t, err)
					_, _ = wrap.Fire(t.Context(), "go", "o", nil)
				}
				if inner == nil {
					t.Fatal("the journal holds version 2: the call inside must fail")
				}
				if row, err := s.m.Get(t.Context(), "x"); err != nil || row.State != "a" || row.Version != 1 {
					t.Errorf("the call inside said %v; the row is %+v, %v", inner, row, err)
				}
			})
		}
	}
}
