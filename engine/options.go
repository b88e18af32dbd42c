package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Option configures an Engine.
type Option func(*Engine) error

// WithClock replaces the clock that gives now() and the journal's times.
func WithClock(now func() time.Time) Option {
	return func(e *Engine) error {
		if now == nil {
			return errors.New("engine: WithClock(nil)")
		}
		e.now = now
		return nil
	}
}

// Retry bounds how often a call is tried again after a lost race or a
// retryable database error. Between tries it sleeps a random time up to
// Base·2ⁿ, at most Cap.
type Retry struct {
	Attempts int           // default 12
	Base     time.Duration // default 1 ms
	Cap      time.Duration // default 50 ms
}

// WithRetry replaces the bounds on repeated tries.
func WithRetry(r Retry) Option {
	return func(e *Engine) error {
		if r.Attempts < 1 || r.Base <= 0 || r.Cap < r.Base {
			return fmt.Errorf("engine: WithRetry(%+v): want Attempts >= 1 and 0 < Base <= Cap", r)
		}
		e.retry = r
		return nil
	}
}

// Observation describes one finished call, or what the `after` hooks of an InTx returned.
type Observation struct {
	Machine    string // "" for InTx, of which Result.AfterErr alone is told
	Transition string // "" for Create and InTx
	ID         string
	Result     Result
	Err        error
	Attempts   int // how often the write was sent
	Took       time.Duration
}

// Observer is told of every finished Fire and Create. It runs in the caller's
// goroutine and must not block.
type Observer interface {
	Observe(ctx context.Context, o Observation)
}

// WithObserver adds an observer; it may be given several times.
func WithObserver(o Observer) Option {
	return func(e *Engine) error {
		if o == nil {
			return errors.New("engine: WithObserver(nil)")
		}
		e.observers = append(e.observers, o)
		return nil
	}
}

// CallOption configures one call.
type CallOption func(*callOptions)

type callOptions struct {
	key     string
	hasKey  bool
	version int64
	hasVer  bool
	actor   string
	meta    any
}

// WithKey brings the caller's idempotency key: 1 to 255 bytes of UTF-8. It may not begin
// with "=", nor with "#" but in the form that the engine generates, which is how
// [Error].Key settles an unknown outcome. A transition that derives its key from its
// arguments takes none. A key is applied once per row, for as long as the journal is kept.
func WithKey(key string) CallOption {
	return func(o *callOptions) { o.key, o.hasKey = key, true }
}

// WithVersion makes the call apply only to this version of the row. Versions of rows that
// the engine creates start at 1; those of rows made elsewhere may be 0 or negative.
func WithVersion(v int64) CallOption {
	return func(o *callOptions) { o.version, o.hasVer = v, true }
}

// WithActor records who called, at most 255 bytes.
func WithActor(actor string) CallOption {
	return func(o *callOptions) { o.actor = actor }
}

// WithMeta records meta, encoded as JSON, with the journal row.
func WithMeta(meta any) CallOption {
	return func(o *callOptions) { o.meta = meta }
}

// collect applies the options of one call.
func collect(opts []CallOption) (callOptions, error) {
	if len(opts) == 0 {
		return callOptions{}, nil // nothing that would live on the heap
	}
	var o callOptions
	for _, opt := range opts {
		if opt == nil {
			return o, errors.New("an option is nil")
		}
		opt(&o)
	}
	return o, nil
}
