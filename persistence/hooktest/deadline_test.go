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
