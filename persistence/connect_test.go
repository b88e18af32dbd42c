package persistence

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// anyError classifies everything as unknown.
type anyError struct{ Dialect }

func (anyError) Classify(error, string) engine.Class { return engine.ClassUnknown }

// waits takes a connection as a pool does whose connections are all taken.
func waits(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	default:
	}
	<-ctx.Done()
	return 0, ctx.Err()
}

var errCause = errors.New("the caller's cause")

// TestConnectWaits: for a connection is waited until the caller's context ends, or for as
// long as the limit says, and nothing was sent.
func TestConnectWaits(t *testing.T) {
	for name, c := range map[string]struct {
		ends time.Duration // of the caller's context
		took time.Duration
		want error
	}{
		"no end":    {0, time.Second, context.DeadlineExceeded},
		"a later":   {time.Hour, time.Second, context.DeadlineExceeded},
		"a sooner":  {time.Millisecond, time.Millisecond, errCause},
		"it is now": {-1, 0, errCause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := context.Background()
				if c.ends != 0 {
					timed, cancel := context.WithTimeoutCause(ctx, c.ends, errCause)
					defer cancel()
					ctx = timed
				}
				start := time.Now()
				_, err := Connect(ctx, anyError{}, time.Second, waits)
				var f *engine.Fault
				if !errors.As(err, &f) || f.Class != engine.ClassUnsent || !errors.Is(err, c.want) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want %v, unsent", err, c.want)
				}
				if took := time.Since(start); took != c.took {
					t.Errorf("took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// TestConnectFails: without a connection nothing was sent, so no error leaves it open
// whether something was applied.
func TestConnectFails(t *testing.T) {
	broken := errors.New("broken")
	_, err := Connect(t.Context(), anyError{}, time.Second, func(context.Context) (int, error) { return 0, broken })
	var f *engine.Fault
	if !errors.As(err, &f) || f.Class != engine.ClassRetryable || !errors.Is(err, broken) {
		t.Errorf("%v, want a retryable fault", err)
	}
}
