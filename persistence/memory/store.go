package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/registry"
)

// Store keeps machines in memory. It is safe for concurrent use.
type Store struct {
	wait     time.Duration
	writer   chan struct{} // holds a token while somebody writes
	machines registry.Registry

	mu        sync.Mutex // guards everything below, and is never held while waiting
	committed *layer
	seq       int64
}

// Option configures New.
type Option func(*Store)

// WithWait bounds how long a call waits for another transaction to end; default 5 s.
// It panics unless d is positive.
func WithWait(d time.Duration) Option {
	if d <= 0 {
		panic(fmt.Sprintf("memory: WithWait(%v): want a positive duration", d))
	}
	return func(s *Store) { s.wait = d }
}

// New returns an empty store.
func New(opts ...Option) *Store {
	s := &Store{wait: 5 * time.Second, writer: make(chan struct{}, 1), committed: newLayer(nil)}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Bind gives the port of one machine. Every table exists and fits; machines that share
// one must share a journal.
func (s *Store) Bind(ctx context.Context, rules *engine.Rules) (engine.Table, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	def := rules.Definition()
	if err := s.machines.Join(def); err != nil {
		return nil, err
	}
	return &table{s: s, rules: rules, def: def}, nil
}

// markKey marks a context as belonging to an open transaction of a store.
type markKey struct{ s *Store }

// Marked reports whether ctx comes from a transaction of this store.
func (s *Store) Marked(ctx context.Context) bool { return ctx.Value(markKey{s}) != nil }

// Transact runs fn once in a new transaction and commits it.
func (s *Store) Transact(ctx context.Context, fn func(ctx context.Context, tx engine.Tx) error) error {
	tx, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if err := fn(context.WithValue(ctx, markKey{s}, true), tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // past the deadline nothing may be committed
		return &engine.Fault{Class: engine.ClassRetryable, Err: err, Hint: "the context ended before the commit"}
	}
	return tx.Commit()
}

// acquire waits for the turn to write.
func (s *Store) acquire(ctx context.Context) error {
	select {
	case s.writer <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case s.writer <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &engine.Fault{Class: engine.ClassUnsent, Err: context.Cause(ctx), Hint: "the context ended while waiting for the writer"}
	case <-timer.C:
		return &engine.Fault{
			Class: engine.ClassUnsent, Err: fmt.Errorf("waited %v for another transaction", s.wait),
			Hint: "another transaction holds the writer; a call made while a transaction is open must go through In(tx)",
		}
	}
}

// release lets the next writer begin.
func (s *Store) release() { <-s.writer }

// open begins a transaction.
func (s *Store) open(ctx context.Context) (*Tx, error) {
	if err := s.acquire(ctx); err != nil {
		return nil, err
	}
	return &Tx{s: s, top: newLayer(s.committed)}, nil
}
