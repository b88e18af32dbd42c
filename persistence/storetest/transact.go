package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func transactChecks() []check {
	return []check{
		{name: "commits what fn did", run: transactCommits},
		{name: "an error of fn is returned as it is, after ROLLBACK", run: transactError},
		{name: "a panic of fn rolls back and goes on", run: transactPanic},
		{name: "fn runs again when nothing was applied, and only its last run counts", run: transactRetry},
		{name: "retries are bounded", run: transactBounded},
		{name: "an unknown COMMIT is ErrUnknownOutcome, and fn does not run again", run: transactUnknown},
		{name: "a call with fn's context without In is refused at once", run: transactMarked},
		{name: "a context that ends in fn leaves nothing", run: transactContext},
		{name: "many at once", run: transactMany},
	}
}

func (e *env) pay(ctx context.Context, tx engine.Tx, id string) error {
	_, err := e.m.In(tx).Fire(ctx, "pay", id, engine.Args{"payment_ref": "x"})
	return err
}

func transactCommits(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.must(e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		if err := e.pay(ctx, tx, "o"); err != nil {
			return err
		}
		got, err := e.m.In(tx).Get(ctx, "o")
		if err != nil || got.State != "paid" {
			return fmt.Errorf("inside: %+v, %w", got, err)
		}
		_, err = e.m.In(tx).Create(ctx, engine.Row{"id": "p", "amount": 1})
		return err
	}))
	e.wantRow("o", "paid", 2)
	e.wantRow("p", "pending", 1)
}

func transactError(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	upstream := fmt.Errorf("risk service: %w", context.DeadlineExceeded) // its deadline, not ours
	for _, want := range []error{errors.New("no stock"), upstream, context.Canceled} {
		runs := 0
		err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
			runs++
			if err := e.pay(ctx, tx, "o"); err != nil {
				return err
			}
			return want
		})
		if err != want || runs != 1 { //nolint:errorlint // as it is
			e.Errorf("InTx = %v after %d runs, want %v after one", err, runs, want)
		}
	}
	// An answer of the engine is an error of fn like any other.
	runs := 0
	err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		_, err := e.m.In(tx).Fire(ctx, "ship", "o", nil)
		return err
	})
	e.wantError(err, engine.ErrNotAllowed)
	if runs != 1 {
		e.Errorf("fn ran %d times for an answer", runs)
	}
	e.wantRow("o", "pending", 1)
	e.wantJournal("o", "")
}

func transactPanic(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				e.Errorf("recovered %v, want the panic of fn", p)
			}
		}()
		_ = e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
			e.must(e.pay(ctx, tx, "o"))
			panic("boom")
		})
	}()
	e.checkIdle()
	e.wantRow("o", "pending", 1)
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
}

// refuseFirst makes a store whose first n writes are certainly not applied.
func refuseFirst(n int, class engine.Class) func(engine.Store) engine.Store {
	return func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, apply: func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) {
			if n > 0 {
				n--
				return engine.Change{}, &engine.Fault{Class: class, Err: errors.New("a lock was held")}
			}
			return do()
		}}
	}
}

func transactRetry(e *env) {
	e.openWith(refuseFirst(2, engine.ClassRetryable), order)
	e.create(engine.Row{"id": "o", "amount": 1})
	runs := 0
	e.must(e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		if _, err := e.m.In(tx).Create(ctx, engine.Row{"id": fmt.Sprint("run", runs), "amount": 1}); err != nil {
			return err
		}
		return e.pay(ctx, tx, "o")
	}))
	if runs != 3 {
		e.Errorf("fn ran %d times, want 3", runs)
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	if _, ok := rows["run3"]; !ok || len(rows) != 2 {
		e.Errorf("rows are %v, want those of the last run", rows)
	}
	e.wantRow("o", "paid", 2)
}

func transactBounded(e *env) {
	e.openWith(refuseFirst(1000, engine.ClassRetryable), order)
	e.create(engine.Row{"id": "o", "amount": 1})
	runs := 0
	err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		return e.pay(ctx, tx, "o")
	})
	e.wantError(err, engine.ErrBusy)
	if runs < 2 || runs > 50 {
		e.Errorf("fn ran %d times", runs)
	}
	e.wantRow("o", "pending", 1)
}

func transactUnknown(e *env) {
	lost := errors.New("connection lost at COMMIT")
	e.openWith(func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, commit: func(err error) error {
			if err != nil {
				return err
			}
			return &engine.Fault{Class: engine.ClassUnknown, Err: lost}
		}}
	}, order)
	e.create(engine.Row{"id": "o", "amount": 1})
	runs := 0
	err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		runs++
		return e.pay(ctx, tx, "o")
	})
	e.wantError(err, engine.ErrUnknownOutcome)
	if !errors.Is(err, lost) || runs != 1 {
		e.Errorf("InTx = %v after %d runs", err, runs)
	}
	e.wantRow("o", "paid", 2)
}

func transactMarked(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.must(e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		begun := time.Now()
		_, fire := e.m.Fire(ctx, "cancel", "o", nil)
		_, create := e.m.Create(ctx, engine.Row{"id": "p", "amount": 1})
		_, get := e.m.Get(ctx, "o")
		nested := e.eng.InTx(ctx, func(context.Context, engine.Tx) error { return errors.New("fn ran") })
		if took := time.Since(begun); took > e.h.Features.Wait/2+50*time.Millisecond {
			e.Errorf("the refusals took %v", took)
		}
		for name, err := range map[string]error{"Fire": fire, "Create": create, "Get": get, "InTx": nested} {
			if !errors.Is(err, engine.ErrBusy) {
				e.Errorf("%s with the context of an open transaction: %v", name, err)
			}
		}
		if !contains(fire.Error(), "In(tx)") {
			e.Errorf("the error does not say what to do: %v", fire)
		}
		return e.pay(ctx, tx, "o")
	}))
	e.wantRow("o", "paid", 2)
}

func transactContext(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	runs := 0
	err := e.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
		runs++
		if err := e.pay(ctx, tx, "o"); err != nil {
			return err
		}
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || runs != 1 {
		e.Errorf("InTx = %v after %d runs, want the context's error after one", err, runs)
	}
	e.checkIdle()
	e.wantRow("o", "pending", 1)
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
}

func transactMany(e *env) {
	e.open(ticket, order)
	e.create(engine.Row{"id": "shared"})
	const callers = 8
	each := rounds(3, 25)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
					if _, err := e.m.In(tx).Fire(ctx, "touch", "shared", engine.Args{"note": fmt.Sprint(i, "-", j)}); err != nil {
						return err
					}
					_, err := e.machines["order"].In(tx).Create(ctx, engine.Row{"id": fmt.Sprint(i, "-", j), "amount": i})
					return err
				})
				if err != nil {
					e.Errorf("InTx: %v", err)
				}
			}
		})
	}
	wg.Wait()
	e.wantRow("shared", "open", int64(1+callers*each))
	rows, err := e.b.Rows(e.Context(), e.machines["order"].Definition())
	e.must(err)
	if len(rows) != callers*each {
		e.Errorf("%d orders, want %d", len(rows), callers*each)
	}
}
