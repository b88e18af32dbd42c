package persistence

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

var errLocked, errOther = errors.New("locked"), errors.New("other")

func isLocked(err error) bool { return errors.Is(err, errLocked) }

// lockedFor answers that the database is locked until so much time has passed.
func lockedFor(d time.Duration, after error) (do func() error, tries *int) {
	start := time.Now()
	n := 0
	return func() error {
		if n++; time.Since(start) < d {
			return errLocked
		}
		return after
	}, &n
}

func TestPatientlyWaitsForTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []error{nil, errOther} {
			do, tries := lockedFor(100*time.Millisecond, want)
			start := time.Now()
			if err := Patiently(context.Background(), time.Second, isLocked, do); !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
			if took := time.Since(start); took > 101*time.Millisecond {
				t.Errorf("took %v, want to notice within half a millisecond", took)
			}
			if *tries < 200 {
				t.Errorf("%d tries in 100 ms: the waits are too long to be fair", *tries)
			}
		}
	})
}

func TestPatientlyGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		do, _ := lockedFor(time.Hour, nil)
		start := time.Now()
		err := Patiently(context.Background(), 300*time.Millisecond, isLocked, do)
		if took := time.Since(start); took < 300*time.Millisecond || took > 301*time.Millisecond {
			t.Errorf("gave up after %v, want 300 ms", took)
		}
		var f *engine.Fault
		if !errors.As(err, &f) || !errors.Is(err, errLocked) || f.Hint == "" {
			t.Errorf("error %v, want a fault with a hint that wraps the lock's", err)
		}
	})
}

func TestPatientlyEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("my reason")
		ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, mine)
		defer cancel()
		do, _ := lockedFor(time.Hour, nil)
		start := time.Now()
		err := Patiently(ctx, time.Minute, isLocked, do)
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("returned after %v, want at the deadline", took)
		}
		var f *engine.Fault
		if !errors.As(err, &f) || f.Class != engine.ClassUnsent || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, mine) {
			t.Errorf("error %v, want an unsent one that matches the context's and its cause", err)
		}
	})
}

func TestPatientlyAsksOnceWithoutLock(t *testing.T) {
	for _, want := range []error{nil, errOther} {
		tries := 0
		if err := Patiently(context.Background(), time.Second, isLocked, func() error { tries++; return want }); !errors.Is(err, want) || tries != 1 {
			t.Errorf("error %v after %d tries, want %v after one", err, tries, want)
		}
	}
}
