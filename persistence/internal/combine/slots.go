package combine

import (
	"context"
	"time"
)

// Slots bound how many calls wait in the database for what somebody else has locked, so
// that they do not take every connection of a pool from those who need nothing of it. The
// zero value has no bound.
type Slots struct{ taken chan struct{} }

// HalfOf gives slots for half of a pool's connections; 0 means as many as are asked for. One
// connection is not to be shared out.
func HalfOf(connections int) Slots {
	if connections < 2 {
		return Slots{}
	}
	return Slots{make(chan struct{}, connections/2)}
}

// Try takes a slot if there is one.
func (s Slots) Try() bool {
	if s.taken == nil {
		return true
	}
	select {
	case s.taken <- struct{}{}:
		return true
	default:
		return false
	}
}

// Take waits for a slot, for as long as wait, and reports an end of ctx or ErrWaited.
func (s Slots) Take(ctx context.Context, wait time.Duration) error {
	if s.Try() {
		return nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case s.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ErrWaited
	}
}

// Give gives a slot back.
func (s Slots) Give() {
	if s.taken != nil {
		<-s.taken
	}
}
