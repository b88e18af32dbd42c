package hooktest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// closes is an effect that fires close on the same row.
func (s *site) closes(m func(tx engine.Tx) *engine.Machine) func(context.Context, engine.Tx, engine.Event) error {
	return func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		_, err := s.fire(ctx, m(tx), "close")
		return err
	}
}

// TestCase02 (looplab/fsm#104, stateless#345): the hook of a same-state edge fires
// another transition. With In both are applied, in order.
func TestCase02HookFiresAgainWithIn(t *testing.T) {
	onEach(t, func(s *site) {
		s.onNote = s.closes(func(tx engine.Tx) *engine.Machine { return s.m.In(tx) })
		res, err := s.fire(t.Context(), s.m, "note", engine.WithKey("k"))
		s.must(err)
		if res.Version != 2 || res.To != "open" {
			s.Errorf("the outer call says %+v", res)
		}
		s.row("closed", 3)
		entries, err := s.m.Journal(t.Context(), "j")
		s.must(err)
		if entries[1].Transition != "note" || entries[1].To != "open" || entries[2].Transition != "close" || entries[2].From != "open" {
			s.Errorf("the journal has %+v", entries)
		}
		again, err := s.fire(t.Context(), s.m, "note", engine.WithKey("k"))
		if err != nil || again.Outcome != engine.Replayed || again.State != "closed" {
			s.Errorf("the repeat: %+v, %v", again, err)
		}
	})
}

// TestCase02 without In: refused at once, not waited for, and all rolled back.
func TestCase02HookFiresAgainWithoutIn(t *testing.T) {
	onEach(t, func(s *site) {
		s.onNote = s.closes(func(engine.Tx) *engine.Machine { return s.m })
		begun := time.Now()
		_, err := s.fire(t.Context(), s.m, "note", engine.WithKey("k"))
		if !errors.Is(err, engine.ErrBusy) || !strings.Contains(err.Error(), "use In(tx)") {
			s.Errorf("the error is %v", err)
		}
		if took := time.Since(begun); took > wait*4/5 {
			s.Errorf("it took %v to be refused", took)
		}
		s.idle()
		s.row("open", 1)
	})
}

// With a context that is not the hook's nobody can tell what the call belongs to: it
// ends with its deadline, or the bound on waiting. Where the outer call's deadline comes
// first, a server gives up the outer transaction and the inner call is one like any other;
// of the outer one nothing is left either way.
func TestCase02HookFiresAgainWithAnotherContext(t *testing.T) {
	onEach(t, func(s *site) {
		outer, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		s.onNote = func(context.Context, engine.Tx, engine.Event) error {
			ctx, cancel := context.WithTimeout(context.Background(), wait/2) //nolint:contextcheck // that is the mistake
			defer cancel()
			begun := time.Now()
			_, err := s.fire(ctx, s.m, "close")
			if err == nil && outer.Err() == nil {
				s.Error("the inner call succeeded beside the outer one")
			}
			if took := time.Since(begun); took > wait+4*time.Second {
				s.Errorf("the inner call took %v", took)
			}
			return err
		}
		begun := time.Now()
		_, err := s.fire(outer, s.m, "note", engine.WithKey("k"))
		if err == nil {
			s.Error("the outer call succeeded")
		}
		if took := time.Since(begun); took > wait+4*time.Second {
			s.Errorf("the outer call took %v", took)
		}
		s.idle()
		entries, err := s.m.Journal(t.Context(), "j")
		s.must(err)
		for _, e := range entries {
			if e.Transition == "note" {
				s.Errorf("the outer call is in the journal: %+v", e)
			}
		}
	})
}

func TestEffectOpensATransactionOfItsOwn(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = func(ctx context.Context, _ engine.Tx, _ engine.Event) error {
			begun := time.Now()
			err := s.eng.InTx(ctx, func(context.Context, engine.Tx) error {
				s.Error("there is a second transaction")
				return nil
			})
			if took := time.Since(begun); took > wait*4/5 {
				s.Errorf("it took %v to be refused", took)
			}
			return err
		}
		_, err := s.fire(t.Context(), s.m, "finish")
		if !errors.Is(err, engine.ErrBusy) {
			s.Errorf("the error is %v", err)
		}
		s.idle()
		s.row("open", 1)
	})
}

// A chain of transitions in one transaction: after hooks run when it has committed, in
// the order of the transitions, each once.
func TestChainRunsAfterInOrder(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			_, err := s.fire(ctx, s.m.In(tx), "close")
			if len(s.said) != 0 {
				s.Errorf("before COMMIT there ran %v", s.said)
			}
			return err
		}
		_, err := s.fire(t.Context(), s.m, "finish")
		s.must(err)
		s.row("closed", 3)
		if got := strings.Join(s.said, ", "); got != "finish v2, close v3" {
			s.Errorf("after ran as %s", got)
		}
	})
}

// What an effect undoes takes the hooks of the chain with it.
func TestUndoneChainRunsNoAfter(t *testing.T) {
	onEach(t, func(s *site) {
		no := errors.New("no")
		s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			_, err := s.fire(ctx, s.m.In(tx), "close")
			return errors.Join(err, no)
		}
		err := s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
			if _, err := s.fire(ctx, s.m.In(tx), "finish"); !errors.Is(err, no) {
				s.Errorf("the effect's error is %v", err)
			}
			_, err := s.fire(ctx, s.m.In(tx), "close") // the transaction is usable
			return err
		})
		s.must(err)
		s.row("closed", 2)
		if got := strings.Join(s.said, ", "); got != "close v2" {
			s.Errorf("after ran as %s", got)
		}
	})
}
