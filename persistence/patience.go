package persistence

import (
	"context"
	"math/rand/v2"
	"time"
)

// Patiently repeats do while its error says that a lock is held by somebody else:
// a short random sleep between tries keeps several processes fair, and the context
// is honoured while waiting. When ctx ends the fault says that nothing was sent;
// after limit it says who holds what.
func Patiently(ctx context.Context, limit time.Duration, locked func(error) bool, do func() error) error {
	err := do()
	if err == nil || !locked(err) {
		return err
	}
	deadline := time.Now().Add(limit)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(10*time.Microsecond + rand.N(490*time.Microsecond)) //nolint:gosec // jitter needs no secrecy
		select {
		case <-ctx.Done():
			return Unsent(ctx, err, Locked)
		case <-timer.C:
		}
		if err = do(); err == nil || !locked(err) {
			return err
		}
		if time.Now().After(deadline) {
			return Waited(err, Locked)
		}
	}
}
