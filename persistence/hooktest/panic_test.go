package hooktest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// panics makes a call and gives what it panicked with.
func panics(call func()) (p any) {
	defer func() { p = recover() }()
	call()
	return nil
}

func TestPanicInGuardIsRaisedAgain(t *testing.T) {
	onEach(t, func(s *site) {
		s.guard = func(context.Context, engine.Event) error { panic("guard") }
		if p := panics(func() { _, _ = s.fire(t.Context(), s.m, "finish") }); p != "guard" {
			s.Errorf("recovered %v", p)
		}
		s.idle()
		s.row("open", 1)
		s.guard = nil
		_, err := s.fire(t.Context(), s.m, "finish")
		s.must(err) // a poisoned machine of looplab's would refuse
		s.row("done", 2)
	})
}

func TestPanicInEffectRollsBack(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			_, err := s.m.In(tx).Create(ctx, engine.Row{"id": "inner"})
			s.must(err)
			panic("effect")
		}
		if p := panics(func() { _, _ = s.fire(t.Context(), s.m, "finish") }); p != "effect" {
			s.Errorf("recovered %v", p)
		}
		s.idle()
		s.row("open", 1)
		if _, err := s.m.Get(t.Context(), "inner"); !errors.Is(err, engine.ErrNotFound) {
			s.Errorf("what the effect wrote is there: %v", err)
		}
		s.effect = nil
		_, err := s.fire(t.Context(), s.m, "finish")
		s.must(err)
		s.row("done", 2)
	})
}

// A caller may survive the panic of an effect inside its own transaction: the call is
// taken back, and the rest of the transaction stands.
func TestPanicInEffectInsideTheCallersTransaction(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = func(context.Context, engine.Tx, engine.Event) error { panic("effect") }
		tx := s.begin()
		_, err := s.fire(t.Context(), s.m.In(tx), "note", engine.WithKey("k"))
		s.must(err)
		if p := panics(func() { _, _ = s.fire(t.Context(), s.m.In(tx), "finish") }); p != "effect" {
			s.Errorf("recovered %v", p)
		}
		s.effect = nil
		res, err := s.fire(t.Context(), s.m.In(tx), "finish")
		s.must(err)
		s.must(tx.Commit())
		s.must(res.AfterCommit(t.Context()))
		s.row("done", 3)
		if got := strings.Join(s.said, ", "); got != "finish v3" {
			s.Errorf("after ran as %s", got)
		}
	})
}

func TestPanicInAfterFailsNothing(t *testing.T) {
	onEach(t, func(s *site) {
		s.told = func(_ context.Context, e engine.Event) error {
			if e.Transition == "finish" {
				panic("after")
			}
			return errors.New("no mail today")
		}
		res, err := s.fire(t.Context(), s.m, "finish")
		if err != nil || res.Outcome != engine.Applied || res.AfterErr == nil || !strings.Contains(res.AfterErr.Error(), "panic: after") {
			s.Errorf("%+v, %v", res, err)
		}
		s.row("done", 2)
		err = s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
			_, err := s.fire(ctx, s.m.In(tx), "close")
			return err
		})
		if err != nil || len(s.after) != 1 || !strings.Contains(s.after[0].Error(), "no mail today") {
			s.Errorf("InTx: %v, and the observer was told %v", err, s.after)
		}
		s.row("closed", 3)
	})
}
