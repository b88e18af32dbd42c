package hooktest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// late is how long a hook blocks that does not look at its context.
const late = 400 * time.Millisecond

func TestGuardBlocksPastTheDeadline(t *testing.T) {
	onEach(t, func(s *site) {
		s.guard = func(context.Context, engine.Event) error {
			time.Sleep(late)
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), late/4)
		defer cancel()
		_, err := s.fire(ctx, s.m, "finish")
		if err != context.DeadlineExceeded { //nolint:errorlint // nothing was sent: the context's own error, alone
			s.Errorf("the error is %v", err)
		}
		s.idle()
		s.row("open", 1)
	})
}

// Past the deadline the unit is rolled back as soon as the effect returns, whatever it
// returns.
func TestEffectBlocksPastTheDeadline(t *testing.T) {
	onEach(t, func(s *site) {
		s.effect = func(context.Context, engine.Tx, engine.Event) error {
			time.Sleep(late)
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), late/4)
		defer cancel()
		begun := time.Now()
		_, err := s.fire(ctx, s.m, "finish")
		if !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("the error is %v", err)
		}
		if took := time.Since(begun); took > late+5*time.Second {
			s.Errorf("the call took %v", took)
		}
		s.idle()
		s.row("open", 1)
		s.effect = nil
		_, err = s.fire(t.Context(), s.m, "finish")
		s.must(err)
		s.row("done", 2)
	})
}

// In a transaction of the caller's it is the call that is taken back. Its own deadline is no
// reason for InTx to run the whole again.
func TestEffectBlocksPastTheDeadlineInATransaction(t *testing.T) {
	onEach(t, func(s *site) {
		runs := 0
		s.effect = func(context.Context, engine.Tx, engine.Event) error {
			runs++
			time.Sleep(late)
			return nil
		}
		fire := func(ctx context.Context, tx engine.Tx) error {
			ctx, cancel := context.WithTimeout(ctx, late/4)
			defer cancel()
			_, err := s.fire(ctx, s.m.In(tx), "finish")
			return err
		}
		if err := s.eng.InTx(t.Context(), fire); !errors.Is(err, context.DeadlineExceeded) || runs != 1 {
			s.Errorf("the error is %v after %d runs, want that of the deadline after one", err, runs)
		}
		s.must(s.eng.InTx(t.Context(), func(ctx context.Context, tx engine.Tx) error {
			if err := fire(ctx, tx); !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("the error is %v", err)
			}
			return nil // and so what is left is committed
		}))
		s.row("open", 1)
	})
}

// After is not bound to the call's deadline: the row is committed, and what is left is
// to say so.
func TestAfterOutlivesTheDeadline(t *testing.T) {
	onEach(t, func(s *site) {
		ctx, cancel := context.WithCancel(t.Context())
		s.told = func(ctx context.Context, _ engine.Event) error {
			cancel()
			return ctx.Err()
		}
		res, err := s.fire(ctx, s.m, "finish")
		if err != nil || res.AfterErr != nil {
			s.Errorf("%v, after: %v", err, res.AfterErr)
		}
		s.row("done", 2)
	})
}
