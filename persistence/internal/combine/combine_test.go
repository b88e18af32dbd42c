package combine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/persistence/internal/combine"
)

// job is a call of the tests: what it is to be answered, and how long it takes.
type job struct {
	answer error
	block  <-chan struct{}
	apart  bool
	panics any
}

// works counts batches and runs them one at a time, which it proves.
type works struct {
	openErr error
	gate    chan struct{} // where not nil, Run waits for it once
	running atomic.Int32
	overlap atomic.Bool
	mu      sync.Mutex
	sizes   []int
}

func (w *works) Open(ctx context.Context) (combine.Session[job], error) {
	if w.openErr != nil {
		return nil, w.openErr
	}
	return w, ctx.Err()
}

func (w *works) Close() {}

func (w *works) Run(batch []*combine.Member[job]) {
	if w.running.Add(1) > 1 {
		w.overlap.Store(true)
	}
	defer w.running.Add(-1)
	w.mu.Lock()
	w.sizes = append(w.sizes, len(batch))
	w.mu.Unlock()
	if w.gate != nil {
		<-w.gate
	}
	for i, m := range batch {
		if m.Job.block != nil {
			<-m.Job.block
		}
		if m.Job.panics != nil {
			panic(m.Job.panics)
		}
		if m.Job.apart {
			combine.Apart(batch, i, func(m *combine.Member[job]) error { return m.Job.answer })
			continue
		}
		m.Err = m.Job.answer
	}
}

func TestEveryMemberGetsItsOwnAnswer(t *testing.T) {
	t.Parallel()
	w := &works{}
	c := combine.New(w, 8, time.Minute, 0)
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			want := errors.New("mine")
			for n := range 50 {
				left, err := c.Do(t.Context(), job{answer: want, apart: n%7 == 0})
				if !errors.Is(err, want) || left {
					t.Errorf("got %v, left %v", err, left)
				}
			}
		})
	}
	wg.Wait()
	if w.overlap.Load() {
		t.Error("two batches ran at once")
	}
	for _, n := range w.sizes {
		if n > 8 {
			t.Errorf("a batch of %d, the limit is 8", n)
		}
	}
}

func TestQueuedMemberLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	w := &works{gate: make(chan struct{})}
	c := combine.New(w, 8, time.Minute, 0)
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = c.Do(context.Background(), job{})
	}()
	for w.running.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	left, err := c.Do(ctx, job{answer: errors.New("it ran")})
	if !left || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, left %v", err, left)
	}
	close(w.gate)
	<-first
	if left, err := c.Do(t.Context(), job{}); err != nil || left {
		t.Errorf("afterwards: %v, %v", err, left)
	}
	for _, n := range w.sizes {
		if n != 1 {
			t.Errorf("the member that left was in a batch: %v", w.sizes)
		}
	}
}

// TestMemberOfABatchUnderWayIsTold: whoever's context ends while his batch is under way
// hears that, be it his goroutine that began it or not; the batch goes on.
func TestMemberOfABatchUnderWayIsTold(t *testing.T) {
	t.Parallel()
	w := &works{}
	c := combine.New(&gathering{works: w, want: 4}, 8, time.Minute, 0)
	block := make(chan struct{})
	answers := make(chan error, 4)
	for i := range 4 {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(150+i)*time.Millisecond)
			defer cancel()
			left, err := c.Do(ctx, job{block: block})
			if left {
				err = errors.New("it left")
			}
			answers <- err
		}()
	}
	for range 4 {
		select {
		case err := <-answers:
			if !errors.Is(err, combine.ErrUntold) {
				t.Errorf("got %v, want ErrUntold", err)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("somebody waits for a batch that does not end")
		}
	}
	close(block)
	if left, err := c.Do(t.Context(), job{}); err != nil || left {
		t.Errorf("afterwards: %v, %v", err, left)
	}
	if w.sizes[0] != 4 {
		t.Errorf("they were not in one batch: %v", w.sizes)
	}
}

func TestLoneCallThatIsHeldUpHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := &works{}
	c := combine.New(w, 8, time.Minute, 5*time.Millisecond)
	block := make(chan struct{})
	held := make(chan struct{})
	go func() {
		defer close(held)
		_, _ = c.Do(context.Background(), job{block: block})
	}()
	for w.running.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if left, err := c.Do(ctx, job{}); err != nil || left {
			t.Errorf("got %v, left %v", err, left)
		}
		cancel()
	}
	close(block)
	<-held
}

// The same for one that was queued itself, and so runs alone in nobody's goroutine.
func TestQueuedCallThatIsHeldUpHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w := &works{}
	c := combine.New(w, 8, time.Minute, 5*time.Millisecond)
	first, second := make(chan struct{}), make(chan struct{})
	var held sync.WaitGroup
	held.Go(func() { _, _ = c.Do(context.Background(), job{block: first}) })
	for w.running.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	held.Go(func() { _, _ = c.Do(context.Background(), job{block: second}) })
	for w.running.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if left, err := c.Do(ctx, job{}); err != nil || left {
			t.Errorf("got %v, left %v", err, left)
		}
		cancel()
	}
	close(first)
	close(second)
	held.Wait()
	if left, err := c.Do(t.Context(), job{}); err != nil || left {
		t.Errorf("afterwards: %v, %v", err, left)
	}
}

func TestErrorOfOpenIsAnswered(t *testing.T) {
	t.Parallel()
	want := errors.New("no connection")
	c := combine.New(&works{openErr: want}, 8, time.Minute, 0)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := c.Do(t.Context(), job{}); !errors.Is(err, want) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
}

func TestQueuedMemberDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	w := &works{gate: make(chan struct{})}
	c := combine.New(w, 8, 10*time.Millisecond, 0)
	first := make(chan struct{})
	go func() {
		defer close(first)
		_, _ = c.Do(context.Background(), job{})
	}()
	for w.running.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	if left, err := c.Do(t.Context(), job{}); !left || !errors.Is(err, combine.ErrWaited) {
		t.Errorf("got %v, left %v", err, left)
	}
	close(w.gate)
	<-first
}

// TestPanicOfABatch: a batch that panics under one caller raises it there. The others hear
// an error, and who comes after them finds somebody at work.
func TestPanicOfABatch(t *testing.T) {
	t.Parallel()
	for name, patience := range map[string]time.Duration{"in a batch": 0, "alone": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &works{}
			c := combine.New(w, 8, time.Minute, patience)
			start, raised := make(chan struct{}), make(chan any, 1)
			go func() {
				defer func() { raised <- recover() }()
				_, _ = c.Do(context.Background(), job{block: start, panics: "a bug"})
			}()
			for w.running.Load() == 0 {
				time.Sleep(time.Millisecond)
			}
			var others sync.WaitGroup
			for range 3 {
				others.Go(func() {
					if _, err := c.Do(t.Context(), job{}); err != nil {
						t.Errorf("a call behind it: %v", err)
					}
				})
			}
			time.Sleep(20 * time.Millisecond)
			close(start)
			if got := <-raised; got != "a bug" {
				t.Errorf("the caller saw %v", got)
			}
			ended(t, others.Wait)
		})
	}
}

// TestPanicOverOthers: the same, with others in the batch itself.
func TestPanicOverOthers(t *testing.T) {
	t.Parallel()
	w := &works{}
	c := combine.New(&gathering{works: w, want: 4}, 8, time.Minute, 0)
	var wg sync.WaitGroup
	var raised, told atomic.Int32
	for range 4 {
		wg.Go(func() {
			defer func() {
				if recover() != nil {
					raised.Add(1)
				}
			}()
			if left, err := c.Do(context.Background(), job{panics: "a bug"}); errors.Is(err, combine.ErrPanicked) && !left {
				told.Add(1)
			}
		})
	}
	ended(t, wg.Wait)
	if raised.Load() != 1 || told.Load() != 3 {
		t.Errorf("%d callers saw the panic and %d were told of it, want 1 and 3", raised.Load(), told.Load())
	}
	if left, err := c.Do(t.Context(), job{}); err != nil || left {
		t.Errorf("afterwards: %v, %v", err, left)
	}
}

// gathering opens only when so many have come.
type gathering struct {
	*works
	want int32
}

func (g *gathering) Open(ctx context.Context) (combine.Session[job], error) {
	if g.want > 0 {
		time.Sleep(100 * time.Millisecond) // the others queue up
		g.want = 0
	}
	return g.works.Open(ctx)
}

// ended fails the test where wait does not return.
func ended(t *testing.T, wait func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); wait() }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("somebody waits for ever")
	}
}

// TestErrorOfOpenIsForThoseWhoWaited: whoever comes while somebody waits for a connection
// in vain has a wait of its own before it.
func TestErrorOfOpenIsForThoseWhoWaited(t *testing.T) {
	t.Parallel()
	w := &opening{works: &works{}, begun: make(chan struct{}), fail: make(chan error)}
	c := combine.New(w, 8, time.Minute, 0)
	want := errors.New("no connection")
	var wg sync.WaitGroup
	call := func(j job, wants error) {
		wg.Go(func() {
			if _, err := c.Do(t.Context(), j); !errors.Is(err, wants) {
				t.Errorf("got %v, want %v", err, wants)
			}
		})
		time.Sleep(20 * time.Millisecond) // until it is queued
	}
	first := make(chan struct{})
	call(job{block: first}, nil)
	w.opens(nil)
	call(job{}, want)
	call(job{}, want)
	close(first)
	<-w.begun
	call(job{}, nil)
	w.fail <- want
	w.opens(nil)
	ended(t, wg.Wait)
}

// opening opens, or fails, when it is told to.
type opening struct {
	*works
	begun chan struct{}
	fail  chan error
}

func (o *opening) Open(context.Context) (combine.Session[job], error) {
	o.begun <- struct{}{}
	return o.works, <-o.fail
}

func (o *opening) opens(err error) {
	<-o.begun
	o.fail <- err
}
