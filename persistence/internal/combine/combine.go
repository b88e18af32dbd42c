// Package combine lets concurrent callers of one process share a commit.
//
// It never waits for more calls: whoever finds nobody at work does its own call in
// its own goroutine and takes along what is queued; what queues up meanwhile is
// worked off batch by batch. A lone caller pays one mutex. Every member is answered
// after its own batch, and a member that is still queued may leave.
package combine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Member is one call in a batch.
type Member[J any] struct {
	Job J
	// Ctx is the member's own. A batch never runs under it.
	Ctx context.Context //nolint:containedctx // the member waits with it, the batch only asks whether it ended
	// Err is the member's answer, set by the batch.
	Err error

	state  atomic.Int32
	done   chan struct{}
	leader bool // runs the batch itself, so nobody has to tell it
}

// The states of a member.
const (
	waiting int32 = iota
	taken
	gone
)

// Leave answers batch[i] before the rest of its batch, and removes it.
func Leave[J any](batch []*Member[J], i int, err error) {
	m := batch[i]
	batch[i] = nil
	m.Err = err
	m.answer()
}

func (m *Member[J]) answer() {
	if !m.leader {
		m.done <- struct{}{}
	}
}

// Work executes batches.
type Work[J any] interface {
	// Open gets ready for one batch, under the context of the caller who leads it,
	// or one without end where nobody does.
	Open(ctx context.Context) error
	// Run executes a batch between Open and Close and sets every member's Err. A
	// member that went by [Leave] is nil and must not be touched again.
	Run(batch []*Member[J])
	// Close ends what Open began.
	Close()
}

// Combiner combines the calls of one store. One batch runs at a time.
type Combiner[J any] struct {
	work  Work[J]
	limit int

	mu    sync.Mutex
	busy  bool
	queue []*Member[J]
	pool  sync.Pool
}

// few is how many waiting members are worth one yield: those just answered come
// back, and their calls join the batch.
const few = 16

// New returns a combiner whose batches have at most limit members.
func New[J any](work Work[J], limit int) *Combiner[J] {
	return &Combiner[J]{work: work, limit: limit, pool: sync.Pool{New: func() any {
		return &Member[J]{done: make(chan struct{}, 1)}
	}}}
}

// Do runs job in a batch and returns its answer. left is true where ctx ended while
// the job was still queued: it was not run, and never will be.
func (c *Combiner[J]) Do(ctx context.Context, job J) (err error, left bool) { //nolint:revive // left qualifies the error
	m := c.pool.Get().(*Member[J])
	m.Job, m.Ctx, m.Err, m.leader = job, ctx, nil, false
	m.state.Store(waiting)
	c.mu.Lock()
	if !c.busy {
		c.busy = true
		m.leader = true
		m.state.Store(taken)
		c.mu.Unlock()
		c.lead(m)
		return c.release(m), false
	}
	c.queue = append(c.queue, m)
	c.mu.Unlock()
	select {
	case <-m.done:
		return c.release(m), false
	case <-ctx.Done():
	}
	if m.state.CompareAndSwap(waiting, gone) {
		return ctx.Err(), true // the queue still points at m: it is not reused
	}
	<-m.done // its fate is being decided
	return c.release(m), false
}

func (c *Combiner[J]) release(m *Member[J]) error {
	err := m.Err
	var none J
	m.Job, m.Ctx, m.Err = none, nil, nil
	c.pool.Put(m)
	return err
}

// lead runs the batch of a caller who found nobody at work.
func (c *Combiner[J]) lead(m *Member[J]) {
	var batch []*Member[J]
	if err := c.work.Open(m.Ctx); err != nil {
		m.Err = err
	} else {
		batch = c.take(m)
		c.work.Run(batch)
		c.work.Close()
	}
	c.mu.Lock()
	more := len(c.queue) > 0
	c.busy = more
	c.mu.Unlock()
	if more { // before the others are answered, so that nothing waits for them
		go c.drain()
	}
	for _, other := range batch {
		if other != nil {
			other.answer()
		}
	}
}

// drain works off the queue until it is empty.
func (c *Combiner[J]) drain() {
	for {
		if !c.waiting() {
			return
		}
		err := c.work.Open(context.Background()) //nolint:forbidigo // no member's context may end the others' batch
		batch := c.take(nil)
		if err == nil {
			if len(batch) > 0 {
				c.work.Run(batch)
			}
			c.work.Close()
		}
		for _, m := range batch {
			if m == nil {
				continue
			}
			if err != nil {
				m.Err = err
			}
			m.answer()
		}
	}
}

// waiting reports whether anybody is queued, and else ends the work.
func (c *Combiner[J]) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.queue); n < few {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.busy = len(c.queue) > 0
	return c.busy
}

// take removes a batch from the queue, behind its leader if it has one.
func (c *Combiner[J]) take(leader *Member[J]) []*Member[J] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var batch []*Member[J]
	if leader != nil {
		batch = append(batch, leader)
	}
	n := 0
	for _, m := range c.queue {
		if len(batch) == c.limit {
			break
		}
		n++
		if m.state.CompareAndSwap(waiting, taken) {
			batch = append(batch, m)
		}
	}
	rest := copy(c.queue, c.queue[n:])
	clear(c.queue[rest:])
	c.queue = c.queue[:rest]
	return batch
}
