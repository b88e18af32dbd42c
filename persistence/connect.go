package persistence

import (
	"context"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// Connect takes a connection of a pool by take, its Conn or Connx, and waits at most
// limit for one. Every error is a fault with a class: as nothing was sent, none is
// unknown.
func Connect[C any](ctx context.Context, d Dialect, limit time.Duration, take func(context.Context) (C, error)) (C, error) {
	wait := &patient{Context: ctx, limit: limit}
	conn, err := take(wait)
	over := wait.end()
	if err == nil {
		return conn, nil
	}
	var none C
	if ctx.Err() != nil || over {
		return none, Unsent(ctx, err, NoConnection)
	}
	class := d.Classify(err, DefaultJournal)
	if class == engine.ClassUnknown {
		class = engine.ClassRetryable
	}
	return none, &engine.Fault{Class: class, Err: err}
}

// patient is the context of one wait for a connection. Nearly always one is free, and a
// timer for each call would cost more than it is worth. A pool looks at Done once before
// it takes what is free, and again only where it waits or opens a connection: there the
// timer starts. So Done does not answer the same twice, as that of others does.
type patient struct {
	context.Context //nolint:containedctx // it is one
	limit           time.Duration

	mu     sync.Mutex
	asked  bool
	timed  context.Context //nolint:containedctx // what it becomes
	cancel context.CancelFunc
}

// Done starts the timer when it is called again.
func (p *patient) Done() <-chan struct{} {
	p.mu.Lock()
	if p.asked && p.timed == nil {
		p.timed, p.cancel = context.WithTimeout(p.Context, p.limit)
	}
	p.asked = true
	p.mu.Unlock()
	return p.now().Done()
}

// now is the context that counts.
func (p *patient) now() context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		return p.Context
	}
	return p.timed
}

// Deadline, Err and Value are those of the context that counts.
func (p *patient) Deadline() (time.Time, bool) { return p.now().Deadline() }

// Err is nil until the caller's context or the wait is over.
func (p *patient) Err() error { return p.now().Err() }

// Value is what lets a driver derive contexts without a goroutine.
func (p *patient) Value(key any) any { return p.now().Value(key) }

// end stops the timer, and reports whether the time was up.
func (p *patient) end() (over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		return false
	}
	over = p.timed.Err() != nil
	p.cancel()
	return over
}
