// Package combine lets concurrent callers of one process share a commit.
//
// It never sleeps to wait for more calls: whoever finds nobody at work does its own call in
// its own goroutine; what queues up meanwhile is worked off batch by batch. A lone
// caller pays one mutex. Every member is answered after its own batch. One that is
// still queued when its context ends leaves, and was never run; one whose batch is
// under way then is told so a little later, and the batch goes on without it.
package combine

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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
	timer  *time.Timer
	leader bool // runs alone, in its own goroutine, so nobody has to tell it
	apart  func(m *Member[J]) error
	raised any // what its batch panicked with
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

// Apart removes batch[i] and gives it the answer of fn, which runs outside of the
// batch: it may take long, and nobody else waits for it.
func Apart[J any](batch []*Member[J], i int, fn func(m *Member[J]) error) {
	m := batch[i]
	batch[i] = nil
	if m.leader { // has a goroutine of its own, which comes to it after the batch
		m.apart = fn
		return
	}
	go func() {
		m.Err = fn(m)
		m.answer()
	}()
}

// Shared is the context of those of a batch that run together. It ends late after the
// contexts of all of them have: one alone must not end the others' calls, and nobody
// waits for a network that died. No batch takes longer than limit.
func Shared[J any](batch []*Member[J], members []int, limit, late time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.Background(), limit) //nolint:forbidigo // see above
	for _, i := range members {
		if batch[i].Ctx.Done() == nil { // it has no end
			return ctx, cancel
		}
	}
	var left atomic.Int32
	left.Store(int32(len(members))) //nolint:gosec // a batch is small
	stops := make([]func() bool, 0, len(members))
	for _, i := range members {
		stops = append(stops, context.AfterFunc(batch[i].Ctx, func() {
			if left.Add(-1) == 0 {
				time.AfterFunc(late, cancel)
			}
		}))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
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
	Open(ctx context.Context) (Session[J], error)
}

// Session is what one batch runs on.
type Session[J any] interface {
	// Run executes a batch and sets every member's Err. A member that went by [Leave]
	// or [Apart] is nil and must not be touched again. Nor may a job touch what is its
	// caller's: he may have gone with [ErrUntold].
	Run(batch []*Member[J])
	// Close ends what Open began.
	Close()
}

// Combiner combines the calls of one store. One batch runs at a time.
type Combiner[J any] struct {
	work  Work[J]
	limit int
	wait  time.Duration
	// patience is how long a lone call may keep the others waiting, where it can be
	// held up by a lock; 0: for ever.
	patience time.Duration

	mu    sync.Mutex
	busy  bool
	lone  *lone // the call that runs alone, where others shall not wait for it for long
	queue []*Member[J]
	spare []*Member[J] // the list of a batch that was answered
	last  int          // how many were in it
	pool  sync.Pool
}

// Where fewer wait than few, a batch gives way to those just answered, so that their next
// calls join it; at most for as long as returning.
const (
	few       = 16
	returning = 50 * time.Microsecond
)

// ErrWaited is the answer of a call that was queued for as long as it may be.
var ErrWaited = errors.New("the calls ahead of it took too long")

// ErrUntold is the answer of a call whose context ended while its batch was under way.
// It may be applied, or not, or be applied yet.
var ErrUntold = errors.New("the context ended while the commit that the call shares was on its way")

// grace is how much longer than its context a member waits for its batch: nearly always
// that is all but over, or is being stopped, and an answer is worth more.
const grace = 200 * time.Millisecond

// ErrPanicked is what the others of a batch hear that has panicked.
var ErrPanicked = errors.New("BUG: the batch it was in panicked under another caller; please report it")

// New returns a combiner whose batches have at most limit members. A call is queued
// for at most wait. One that runs alone holds up those behind it for at most patience;
// 0: as long as it takes.
func New[J any](work Work[J], limit int, wait, patience time.Duration) *Combiner[J] {
	return &Combiner[J]{work: work, limit: limit, wait: wait, patience: patience, pool: sync.Pool{New: func() any {
		timer := time.NewTimer(time.Hour)
		timer.Stop()
		return &Member[J]{done: make(chan struct{}, 1), timer: timer}
	}}}
}

// Do runs job in a batch and returns its answer. left is true where ctx, or the time to
// wait, ended while the job was still queued: it was not run, and never will be.
func (c *Combiner[J]) Do(ctx context.Context, job J) (left bool, err error) {
	m, _ := c.pool.Get().(*Member[J]) // it holds nothing else
	m.Job, m.Ctx, m.Err, m.leader = job, ctx, nil, false
	m.state.Store(waiting)
	c.mu.Lock()
	if !c.busy {
		c.busy = true
		m.state.Store(taken)
		c.mu.Unlock()
		if !c.lead(ctx, m) {
			return false, ErrUntold
		}
		if m.apart != nil {
			m.Err = m.apart(m)
		}
		return false, c.release(m)
	}
	c.queue = append(c.queue, m)
	c.noticed()
	c.mu.Unlock()
	m.timer.Reset(c.wait)
	answered := false
	select {
	case <-m.done:
		answered = true
	case <-ctx.Done():
		err = ctx.Err()
	case <-m.timer.C:
		err = ErrWaited
	}
	m.timer.Stop() // before m may be another's
	switch {
	case answered:
	case m.state.CompareAndSwap(waiting, gone):
		return true, err // the queue still points at m: it is not reused
	case !m.answered(ctx):
		return false, ErrUntold
	}
	return false, c.release(m)
}

// answered waits for the batch. Where it is false m is the batch's, and not reused.
func (m *Member[J]) answered(ctx context.Context) bool {
	select {
	case <-m.done:
		return true
	case <-ctx.Done():
	}
	m.timer.Reset(grace)
	defer m.timer.Stop()
	select {
	case <-m.done:
		return true
	case <-m.timer.C:
		return false
	}
}

func (c *Combiner[J]) release(m *Member[J]) error {
	err, raised := m.Err, m.raised
	var none J
	m.Job, m.Ctx, m.Err, m.apart, m.raised = none, nil, nil, nil, nil
	c.pool.Put(m)
	if raised != nil {
		panic(raised)
	}
	return err
}

// answerAll tells the members of a batch, and keeps its list for another.
func (c *Combiner[J]) answerAll(batch []*Member[J]) {
	for _, m := range batch {
		if m != nil {
			m.answer()
		}
	}
	last := len(batch)
	clear(batch)
	c.mu.Lock()
	c.spare, c.last = batch[:0], last
	c.mu.Unlock()
}

// lead runs the batch of a caller who found nobody at work: in his goroutine where he is
// alone. It reports whether he was told.
func (c *Combiner[J]) lead(ctx context.Context, m *Member[J]) bool {
	var batch []*Member[J]
	charge, handed := true, false
	defer func() { // also when it panics, which its caller sees
		if !handed {
			c.over(batch, charge)
		}
	}()
	m.leader = true
	session, err := c.work.Open(ctx)
	if err != nil {
		m.Err = err
		return true
	}
	if batch = c.take(m, math.MaxInt); len(batch) > 1 {
		handed, m.leader = true, false
		go c.runFor(m, session, batch)
		return m.answered(ctx)
	}
	c.run(session, batch, &charge)
	return true
}

// runFor runs a batch that m leads, who waits for it as the others do. A panic is his, or
// nobody's where he has his answer.
func (c *Combiner[J]) runFor(m *Member[J], session Session[J], batch []*Member[J]) {
	charge := true
	defer func() {
		raised := recover()
		waits := slices.Contains(batch, m)
		if waits {
			m.raised = raised
		}
		c.over(batch, charge)
		if raised != nil && !waits {
			panic(raised)
		}
	}()
	c.run(session, batch, &charge)
}

// over hands the work on, where it is still ours, before the members of a batch are
// answered, so that nothing waits for them.
func (c *Combiner[J]) over(batch []*Member[J], charge bool) {
	if charge {
		c.mu.Lock()
		c.next()
		c.mu.Unlock()
	}
	c.answerAll(batch)
}

// lone is a call that runs alone. Whoever queues up behind it starts the timer.
type lone struct{ timer *time.Timer }

// run executes a batch. charge becomes false where whoever called it has lost the charge
// of the queue: with a lone call that took too long.
func (c *Combiner[J]) run(session Session[J], batch []*Member[J], charge *bool) {
	ran := false
	defer func() {
		if !ran { // it panics
			panicked(batch)
		}
		session.Close()
	}()
	if c.patience > 0 && len(batch) == 1 {
		l := c.alone()
		defer func() { *charge = c.together(l) }()
	}
	session.Run(batch)
	ran = true
}

// panicked: nobody knows how far the batch came.
func panicked[J any](batch []*Member[J]) {
	for _, m := range batch {
		if m != nil {
			m.Err = ErrPanicked
		}
	}
}

// alone begins a call that runs alone.
func (c *Combiner[J]) alone() *lone {
	l := &lone{}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lone = l
	c.noticed()
	return l
}

// together ends it, and reports whether it was not too long.
func (c *Combiner[J]) together(l *lone) (charge bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if charge = c.lone == l; charge {
		c.lone = nil
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	return charge
}

// noticed starts the time that those who queue up have patience for. c.mu is held.
func (c *Combiner[J]) noticed() {
	l := c.lone
	if l == nil || l.timer != nil || len(c.queue) == 0 {
		return
	}
	l.timer = time.AfterFunc(c.patience, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.lone == l {
			c.lone = nil
			c.next()
		}
	})
}

// next hands the work on to those who queued up meanwhile, or ends it. c.mu is held.
func (c *Combiner[J]) next() {
	c.busy = len(c.queue) > 0
	if c.busy {
		go c.drain()
	}
}

// drain works off the queue until it is empty, or until a lone call takes too long.
func (c *Combiner[J]) drain() {
	for n := c.waiting(); n > 0; n = c.waiting() {
		session, err := c.work.Open(context.Background()) //nolint:forbidigo // no member's context may end the others' batch
		if err == nil {
			n = math.MaxInt // also those who came meanwhile
		}
		batch := c.take(nil, n)
		charge := true
		switch {
		case err != nil:
			for _, m := range batch {
				m.Err = err
			}
		case len(batch) == 0: // they have left
			session.Close()
		default:
			c.run(session, batch, &charge)
		}
		c.answerAll(batch)
		if !charge {
			return
		}
	}
}

// waiting reports how many are queued, and ends the work where nobody is.
func (c *Combiner[J]) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Those just answered are on their way back. Without them the callers would come in two
	// halves for ever, one of which queues up while the other is served.
	want := min(len(c.queue)+c.last, few)
	for since := time.Now(); len(c.queue) < want && time.Since(since) < returning; { //nolint:forbidigo // it measures
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.busy = len(c.queue) > 0
	return len(c.queue)
}

// take removes a batch from the queue, of the first most in it, behind its leader if it has
// one.
func (c *Combiner[J]) take(leader *Member[J], most int) []*Member[J] {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.spare
	c.spare = nil
	if leader != nil {
		batch = append(batch, leader)
	}
	n := 0
	for _, m := range c.queue {
		if len(batch) == c.limit || n == most {
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
