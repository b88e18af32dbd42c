package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func cancelChecks() []check {
	return []check{
		{name: "what was reported as not applied was not applied", run: cancelFire},
		{name: "creations", run: cancelCreate},
		{name: "transactions", run: cancelInTx},
		{name: "waiting for somebody else's transaction honours the deadline", run: cancelWaiting},
	}
}

// soon is a context that ends within 600 µs.
func (e *env) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.Context(), time.Duration(rand.IntN(600))*time.Microsecond)
}

// wantCancelled: the error of a call whose context ended is the context's own, or
// says that nothing was applied, or that nobody knows.
func (e *env) wantCancelled(err error) {
	e.Helper()
	if !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("error %v does not match the context's", err)
	}
	var detail *engine.Error
	if errors.As(err, &detail) && !errors.Is(err, engine.ErrBusy) && !errors.Is(err, engine.ErrUnknownOutcome) {
		e.Errorf("error %v is neither ErrBusy nor ErrUnknownOutcome", err)
	}
}

func cancelFire(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	version := int64(1)
	for i := range rounds(300, 10000) {
		key, args := fmt.Sprint("k", i), engine.Args{"note": fmt.Sprint(i)}
		ctx, cancel := e.soon()
		res, err := e.m.Fire(ctx, "touch", "t", args, engine.WithKey(key))
		cancel()
		got, readErr := e.m.Get(e.Context(), "t")
		e.must(readErr)
		switch {
		case err == nil:
			version++
			e.wantResult(res, engine.Applied, "open", version)
		case errors.Is(err, engine.ErrUnknownOutcome):
			e.wantCancelled(err)
		default:
			e.wantCancelled(err)
			if got.Version != version {
				e.Fatalf("call %d was reported as not applied (%v), the row went from version %d to %d", i, err, version, got.Version)
			}
		}
		// The repeat settles it.
		again := e.fire("touch", "t", args, engine.WithKey(key))
		if err == nil && again.Outcome != engine.Replayed {
			e.Fatalf("the repeat of applied call %d is %v", i, again.Outcome)
		}
		if err != nil {
			version++
		}
		if again.Version != version {
			e.Fatalf("the repeat of call %d is at version %d, want %d", i, again.Version, version)
		}
	}
	e.wantRow("t", "open", version)
	e.checkIdle()
}

func cancelCreate(e *env) {
	e.open(order)
	for range rounds(60, 1000) {
		id := e.fresh()
		row := engine.Row{"id": id, "amount": 1}
		ctx, cancel := e.soon()
		_, err := e.m.Create(ctx, row, engine.WithKey("k"))
		cancel()
		_, readErr := e.m.Get(e.Context(), id)
		if err == nil {
			e.must(readErr)
		} else {
			e.wantCancelled(err)
			if !errors.Is(err, engine.ErrUnknownOutcome) {
				e.wantError(readErr, engine.ErrNotFound)
			}
		}
		res, err2 := e.m.Create(e.Context(), row, engine.WithKey("k"))
		e.must(err2)
		if err == nil && res.Outcome != engine.Replayed {
			e.Fatalf("Create again = %v", res.Outcome)
		}
		e.wantJournal(id, "")
	}
	e.checkIdle()
}

func cancelInTx(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	version := int64(1)
	for range rounds(60, 1000) {
		ctx, cancel := e.soon()
		err := e.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
			_, err := e.m.In(tx).Fire(ctx, "touch", "t", engine.Args{"note": "n"})
			return err
		})
		cancel()
		got, readErr := e.m.Get(e.Context(), "t")
		e.must(readErr)
		switch {
		case err == nil:
			version++
		case errors.Is(err, engine.ErrUnknownOutcome):
			version = got.Version
		default:
			e.wantCancelled(err)
		}
		if got.Version != version {
			e.Fatalf("InTx = %v, the row is at version %d, want %d", err, got.Version, version)
		}
	}
	e.checkIdle()
}

// cancelWaiting: several callers wait for a row that a transaction holds; each
// returns at its deadline, and none of them writes later.
func cancelWaiting(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	tx := e.begin(e.h.Features.Forms[0], 0)
	_, err := e.m.In(tx.Tx).Fire(e.Context(), "touch", "t", engine.Args{"note": "holder"})
	e.must(err)
	const limit = 60 * time.Millisecond
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(e.Context(), limit)
			defer cancel()
			begun := time.Now()
			_, err := e.m.Fire(ctx, "touch", "t", engine.Args{"note": fmt.Sprint(i)})
			took := time.Since(begun)
			if err == nil {
				e.Error("a call passed a row that is held")
				return
			}
			e.wantCancelled(err)
			if took > time.Second {
				e.Errorf("a deadline of %v returned after %v", limit, took)
			}
		})
	}
	wg.Wait()
	e.must(tx.Commit())
	time.Sleep(2 * limit)
	e.wantRow("t", "open", 2)
	e.checkIdle()
}
