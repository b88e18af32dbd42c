package engine

import (
	"context"
	"math/rand/v2"
	"time"
)

// wait sleeps before the next try: a random time up to Base·2ⁿ, at most Cap (full
// jitter keeps colliding callers apart). It reports whether ctx is still alive.
func (r Retry) wait(ctx context.Context, attempt int) bool {
	limit := r.Cap
	if shift := attempt - 1; shift < 20 && r.Base<<shift < r.Cap {
		limit = r.Base << shift
	}
	timer := time.NewTimer(rand.N(limit) + 1) //nolint:gosec // jitter needs no secrecy
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// settleWithin bounds how long a lost answer is asked for again where the caller's
// context has no deadline.
const settleWithin = 30 * time.Second

// patient reports whether a call whose answer was lost at since is worth another try.
func (e *Engine) patient(ctx context.Context, since time.Time) bool {
	_, bounded := ctx.Deadline()
	return bounded || time.Since(since) < e.settle
}
