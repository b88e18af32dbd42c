package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func lostChecks() []check {
	return []check{
		{name: "the answer is lost after the write: Applied, once", run: func(e *env) { lostOnce(e, true) }},
		{name: "the answer is lost before the write: Applied, once", run: func(e *env) { lostOnce(e, false) }},
		{name: "a statement that arrives late is the same call", run: lostZombie},
		{name: "a constraint that the repeat meets does not hide the first run", run: lostConstraint},
		{name: "a guard that refuses the repeat says nothing of the first run", run: lostGuard},
		{name: "what cannot be settled is ErrUnknownOutcome, and its key settles it", run: lostForGood},
		{name: "a machine without journal settles by version or by its graph, or not at all", run: lostBare},
		{name: "what was certainly not applied is repeated, within bounds", run: lostRetry},
		{name: "inside a caller's transaction nothing is repeated", run: lostInTx},
		{name: "chaos: requests = applied = sum of versions", run: lostChaos},
	}
}

var errLost = errors.New("connection lost") //nolint:gochecknoglobals // a sentinel

func lost() *engine.Fault { return &engine.Fault{Class: engine.ClassUnknown, Err: errLost} }

// losing loses the answers of the first n writes, after or before they were done.
func losing(n int, after bool) func(engine.Store) engine.Store {
	lose := func(do func() (engine.Change, error)) (engine.Change, error) {
		if n == 0 {
			return do()
		}
		n--
		if after {
			if _, err := do(); err != nil {
				return engine.Change{}, err
			}
		}
		return engine.Change{}, lost()
	}
	return func(s engine.Store) engine.Store {
		return &faultyStore{
			Store:  s,
			apply:  func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) { return lose(do) },
			create: func(_ *engine.Creation, do func() (engine.Change, error)) (engine.Change, error) { return lose(do) },
		}
	}
}

func lostOnce(e *env, after bool) {
	e.openWith(losing(1, after), order)
	res := e.create(engine.Row{"id": "o", "amount": 1})
	e.wantResult(res, engine.Applied, "pending", 1)
	for _, call := range []struct {
		transition string
		args       engine.Args
		from, to   string
	}{{"pay", engine.Args{"payment_ref": "x"}, "pending", "paid"}, {"cancel", nil, "paid", "cancelled"}} {
		e.attach(losing(1, after))
		res := e.apply(call.transition, "o", call.args)
		if res.From != call.from || res.To != call.to || res.State != call.to || res.First != nil {
			e.Errorf("%s = %+v", call.transition, res)
		}
	}
	e.wantRow("o", "cancelled", 3)
	e.wantJournal("o", "", "pay", "cancel")
	// With a key of the caller's, and applied before by somebody else: a replay.
	e.create(engine.Row{"id": "p", "amount": 1})
	e.apply("pay", "p", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	e.attach(losing(1, after))
	e.wantReplay(e.fire("pay", "p", engine.Args{"payment_ref": "x"}, engine.WithKey("k")), "pending", "paid", 2, "paid")
}

// lostZombie: the statement is still on its way when its connection breaks.
func lostZombie(e *env) {
	var wg sync.WaitGroup
	first := true
	e.openWith(func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, apply: func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) {
			if first {
				first = false
				wg.Go(func() {
					time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
					_, _ = do()
				})
				return engine.Change{}, lost()
			}
			return do()
		}}
	}, ticket)
	for range rounds(10, 200) {
		id := e.fresh()
		e.create(engine.Row{"id": id})
		first = true
		res := e.fire("touch", id, engine.Args{"note": "n"})
		wg.Wait()
		e.wantResult(res, engine.Applied, "open", 2)
		e.wantRow(id, "open", 2)
		e.wantJournal(id, "", "touch")
	}
}

// lamps leads its row on where it is run again, into what another row holds.
const lamps = `
machine: lamp
table: {name: lamps}
fields: {code: {type: string, nullable: true}}
unique: [[code]]
initial: dark
states: {dark: , dim: , lit: {final: true}}
transitions:
  tick: {moves: [{from: dark, to: dim}, {from: dim, to: lit, set: {code: '"x"'}}]}
`

func lostConstraint(e *env) {
	e.open(lamps)
	e.create(engine.Row{"id": "other", "code": "x"})
	for _, opts := range [][]engine.CallOption{nil, {engine.WithKey("k")}} {
		id := e.fresh()
		e.attach(nil)
		e.create(engine.Row{"id": id})
		e.attach(losing(1, true))
		e.wantResult(e.fire("tick", id, nil, opts...), engine.Applied, "dim", 2)
		e.wantRow(id, "dim", 2)
		e.wantJournal(id, "", "tick")

		// The first run never came: nobody knows, since it may come yet.
		e.attach(losing(1, false))
		_, err := e.m.Fire(e.Context(), "tick", id, nil)
		detail := e.wantError(err, engine.ErrUnknownOutcome)
		e.attach(nil)
		if _, err = e.m.Fire(e.Context(), "tick", id, nil, engine.WithKey(detail.Key)); err == nil || errors.Is(err, engine.ErrUnknownOutcome) {
			e.Errorf("%v, want what the constraint says", err)
		}
		e.wantRow(id, "dim", 2)
	}
}

// lostGuard: the first run's COMMIT is on its way while the guard is asked again.
func lostGuard(e *env) {
	h := e.openCode()
	release, asked := make(chan struct{}), 0
	h.guard = func(context.Context, engine.Event) error {
		if asked++; asked > 1 {
			return errors.New("not any more")
		}
		return nil
	}
	var wg sync.WaitGroup
	e.attach(func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, apply: func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) {
			wg.Go(func() {
				<-release
				_, _ = do()
			})
			return engine.Change{}, lost()
		}}
	})
	_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
	detail := e.wantError(err, engine.ErrUnknownOutcome)
	if asked != 2 || !strings.Contains(err.Error(), "not any more") {
		e.Errorf("the guard was asked %d times, and the error is %v", asked, err)
	}
	close(release)
	wg.Wait()
	e.wantRow("t", "done", 2)
	e.attach(nil)
	e.wantResult(e.fire("settle", "t", engine.Args{"note": "n"}, engine.WithKey(detail.Key)), engine.Replayed, "done", 2)
}

func lostForGood(e *env) {
	e.open(order)
	pay := engine.Args{"payment_ref": "x"}
	for _, after := range []bool{false, true} {
		id := e.fresh()
		e.attach(nil)
		e.create(engine.Row{"id": id, "amount": 1})
		e.attach(losing(1<<30, after))
		ctx, cancel := context.WithTimeout(e.Context(), 50*time.Millisecond)
		begun := time.Now()
		_, err := e.m.Fire(ctx, "pay", id, pay)
		cancel()
		detail := e.wantError(err, engine.ErrUnknownOutcome)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errLost) || detail.Key == "" {
			e.Errorf("error is %v, key %q", err, detail.Key)
		}
		if took := time.Since(begun); took > 2*time.Second {
			e.Errorf("it took %v", took)
		}
		e.attach(nil)
		want, version := engine.Applied, int64(1)
		if after {
			want, version = engine.Replayed, 2
		}
		if got, err := e.m.Get(e.Context(), id); err != nil || got.Version != version {
			e.Errorf("the row is %+v, %v, want version %d", got, err, version)
		}
		e.wantResult(e.fire("pay", id, pay, engine.WithKey(detail.Key)), want, "paid", 2)
		e.wantJournal(id, "", "pay")
	}
}

func lostBare(e *env) {
	e.openWith(losing(1, true), bare)
	res, err := e.m.Create(e.Context(), engine.Row{"id": "x"})
	e.must(err)
	if res.Outcome != engine.Applied && res.Outcome != engine.AlreadyReached {
		e.Errorf("Create = %+v", res)
	}
	// Back to the source there is a way: running it again could apply twice.
	e.attach(losing(1, true))
	e.refuse(engine.ErrUnknownOutcome, "go", "x", nil)
	e.wantRow("x", "b", 2)
	e.attach(losing(1, true))
	e.wantResult(e.fire("back", "x", nil, engine.WithVersion(2)), engine.AlreadyReached, "a", 3)
	e.attach(losing(1, true))
	e.wantResult(e.fire("end", "x", nil), engine.AlreadyReached, "c", 4)
	e.create(engine.Row{"id": "y"})
	e.attach(losing(1, false))
	e.wantResult(e.fire("end", "y", nil), engine.Applied, "c", 2)
}

func lostRetry(e *env) {
	e.openWith(refuseFirst(4, engine.ClassRetryable), order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.wantResult(e.apply("pay", "o", engine.Args{"payment_ref": "x"}), engine.Applied, "paid", 2)
	e.attach(refuseFirst(1<<30, engine.ClassRetryable))
	e.within(5*time.Second, "bounded retries", func(ctx context.Context) {
		_, err := e.m.Fire(ctx, "ship", "o", nil)
		e.wantError(err, engine.ErrBusy)
	})
	ctx, cancel := context.WithTimeout(e.Context(), 5*time.Millisecond)
	defer cancel()
	_, err := e.m.Fire(ctx, "ship", "o", nil)
	e.wantError(err, engine.ErrBusy)
	for _, class := range []engine.Class{engine.ClassFatal, engine.ClassConstraint, engine.ClassVersionTaken} {
		e.attach(refuseFirst(1, class))
		_, err := e.m.Fire(e.Context(), "ship", "o", nil)
		var detail *engine.Error
		if !errors.As(err, &detail) {
			e.Errorf("class %d: %v", class, err)
		}
		for _, kind := range kinds() {
			if errors.Is(err, kind) {
				e.Errorf("class %d matches %q: %v", class, kind, err)
			}
		}
	}
	e.attach(nil)
	e.wantRow("o", "paid", 2)
}

func lostInTx(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	for _, class := range []engine.Class{engine.ClassRetryable, engine.ClassUnknown} {
		if e.eng == nil {
			e.openWith(refuseFirst(1, class), order)
			e.create(engine.Row{"id": "o", "amount": 1})
		}
		e.attach(refuseFirst(1, class))
		tx := e.begin(e.h.Features.Forms[0], 0)
		_, err := e.m.In(tx.Tx).Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "x"})
		e.wantError(err, engine.ErrBusy)
		e.must(tx.Rollback())
	}
	e.wantRow("o", "pending", 1)
}

// lostChaos cuts 15 % of the answers before the write, 15 % after it, and lets 2 %
// of the calls run into their deadline.
func lostChaos(e *env) {
	e.openWith(func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, apply: func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) {
			switch n := rand.IntN(100); {
			case n < 15:
				return engine.Change{}, lost()
			case n < 30:
				_, _ = do()
				return engine.Change{}, lost()
			}
			return do()
		}}
	}, ticket)
	const rows, callers = 4, 8
	requests := rounds(10, 250) // per caller
	for i := range rows {
		e.create(engine.Row{"id": fmt.Sprint(i)})
	}
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for r := range requests {
				e.chaosRequest(fmt.Sprint((c+r)%rows), fmt.Sprintf("%d-%d", c, r))
			}
		})
	}
	wg.Wait()
	e.attach(nil)
	var sum int64
	for i := range rows {
		got, err := e.m.Get(e.Context(), fmt.Sprint(i))
		e.must(err)
		sum += got.Version - 1
	}
	if sum != int64(callers*requests) {
		e.Errorf("%d requests, versions rose by %d", callers*requests, sum)
	}
}

// chaosRequest repeats one request under its key until it is answered.
func (e *env) chaosRequest(id, key string) {
	for try := range 50 {
		ctx, cancel := context.WithCancel(e.Context())
		if rand.IntN(100) < 2 {
			cancel()
			ctx, cancel = context.WithTimeout(e.Context(), time.Duration(rand.IntN(500))*time.Microsecond)
		}
		res, err := e.m.Fire(ctx, "touch", id, engine.Args{"note": key}, engine.WithKey(key))
		cancel()
		if err == nil {
			if try == 0 && res.Outcome != engine.Applied {
				e.Errorf("the first run of %s is %v", key, res.Outcome)
			}
			return
		}
	}
	e.Errorf("request %s was never answered", key)
}
