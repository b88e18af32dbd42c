package storetest

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
)

func versionChecks() []check {
	return []check{
		{name: "a named version applies to that version only", run: versionNamed},
		{name: "a version that is stale because of this very call is a duplicate", run: versionOwn},
		{name: "a version that is stale because of another call stays ErrConflict", run: versionOther},
		{name: "moved between the caller's read and the write", run: versionRace},
		{name: "rolled back versions are not used up", run: versionRolledBack},
		{name: "any version that a row holds can be named", run: versionAny},
		{name: "the last version there is, is told", run: versionLast},
		{name: "of a row created again after the last version there is, that is told", run: versionAfterLast},
		{name: "Go code is pinned to the version it saw, whichever that is", run: versionPinned},
	}
}

func versionNamed(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	detail := e.refuse(engine.ErrConflict, "pay", "o", engine.Args{"payment_ref": "x"}, engine.WithVersion(2))
	if detail.Version != 1 || detail.State != "pending" {
		e.Errorf("the conflict says %+v", detail)
	}
	e.wantResult(e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithVersion(1)), engine.Applied, "paid", 2)
	// Several sources.
	e.refuse(engine.ErrConflict, "cancel", "o", nil, engine.WithVersion(1))
	if res := e.apply("cancel", "o", nil, engine.WithVersion(2)); res.From != "paid" || res.Version != 3 {
		e.Errorf("cancel = %+v", res)
	}
	e.wantJournal("o", "", "pay", "cancel")
}

func versionOwn(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	e.apply("pay", "o", pay, engine.WithVersion(1))
	e.wantResult(e.fire("pay", "o", pay, engine.WithVersion(1)), engine.AlreadyReached, "paid", 2)
	e.wantResult(e.fire("pay", "o", pay, engine.WithVersion(2)), engine.AlreadyReached, "paid", 2)
	e.apply("ship", "o", nil, engine.WithVersion(2))
	e.wantResult(e.fire("pay", "o", pay, engine.WithVersion(1)), engine.AlreadyPassed, "shipped", 3)
	e.wantResult(e.fire("pay", "o", pay, engine.WithVersion(3)), engine.AlreadyPassed, "shipped", 3)
	e.refuse(engine.ErrConflict, "pay", "o", pay, engine.WithVersion(2))
	e.refuse(engine.ErrConflict, "ship", "o", nil, engine.WithVersion(1))
	e.refuse(engine.ErrConflict, "ship", "o", nil, engine.WithVersion(9))
	e.wantJournal("o", "", "pay", "ship")
}

func versionOther(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	e.apply("touch", "t", engine.Args{"note": "somebody else"})
	for range 2 { // also without a reload in between
		detail := e.refuse(engine.ErrConflict, "hold", "t", engine.Args{"by": "me"}, engine.WithVersion(1))
		if detail.Version != 2 || detail.State != "open" {
			e.Errorf("the conflict says %+v", detail)
		}
	}
	// Held by somebody at another version: not by this call.
	e.apply("hold", "t", engine.Args{"by": "them"})
	e.refuse(engine.ErrConflict, "hold", "t", engine.Args{"by": "me"}, engine.WithVersion(1))
	e.wantRow("t", "held", 3)
}

// versionRace moves the row after the engine was called and before its write.
func versionRace(e *env) {
	var before func()
	e.openWith(func(s engine.Store) engine.Store {
		return &faultyStore{Store: s, apply: func(_ *engine.Call, do func() (engine.Change, error)) (engine.Change, error) {
			if f := before; f != nil {
				before = nil
				f()
			}
			return do()
		}}
	}, order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
	before = func() { e.apply("cancel", "o", nil) }
	detail := e.refuse(engine.ErrConflict, "ship", "o", nil, engine.WithVersion(2))
	if detail.State != "cancelled" || detail.Version != 3 {
		e.Errorf("the conflict says %+v, want what the winner made", detail)
	}
	e.create(engine.Row{"id": "p", "amount": 1})
	before = func() { e.apply("cancel", "p", nil) }
	detail = e.refuse(engine.ErrNotAllowed, "pay", "p", engine.Args{"payment_ref": "x"})
	if detail.State != "cancelled" || detail.Version != 2 {
		e.Errorf("the refusal says %+v, want what the winner made", detail)
	}
	e.create(engine.Row{"id": "q", "amount": 1})
	before = func() { e.apply("pay", "q", engine.Args{"payment_ref": "x"}) }
	if res := e.apply("cancel", "q", nil); res.From != "paid" || res.Version != 3 {
		e.Errorf("cancel = %+v, want from the state the other call made", res)
	}
}

func versionRolledBack(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	tx := e.begin(e.h.Features.Forms[0], 0)
	res, err := e.m.In(tx.Tx).Fire(e.Context(), "pay", "o", pay, engine.WithVersion(1), engine.WithKey("k"))
	e.must(err)
	e.wantResult(res, engine.Applied, "paid", 2)
	e.must(tx.Rollback())
	e.wantRow("o", "pending", 1)
	e.wantResult(e.apply("pay", "o", pay, engine.WithVersion(1), engine.WithKey("k")), engine.Applied, "paid", 2)
}

// versionAny: rows made elsewhere begin at any version, and a journal that does is a
// history like any other.
func versionAny(e *env) {
	e.open(order, bare)
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	pay := engine.Args{"payment_ref": "x"}
	for _, version := range []int64{0, 1, -1, -2, -7, 1 << 40, math.MinInt64 + 1, math.MaxInt64 - 2} {
		id := fmt.Sprint("at", version)
		e.insert(engine.Row{"id": id, "status": "pending", "version": version, "amount": 5, "currency": "EUR"})
		e.refuse(engine.ErrConflict, "pay", id, pay, engine.WithVersion(version+1))
		e.refuse(engine.ErrConflict, "cancel", id, nil, engine.WithVersion(version+1))
		e.wantResult(e.apply("pay", id, pay, engine.WithVersion(version)), engine.Applied, "paid", version+1)
		res := e.fire("pay", id, pay, engine.WithVersion(version)) // its own doing
		if e.wantResult(res, engine.AlreadyReached, "paid", version+1); res.First == nil || res.First.Version != version+1 {
			e.Errorf("from version %d: First is %+v", version, res.First)
		}
		e.refuse(engine.ErrConflict, "ship", id, nil, engine.WithVersion(version))
		tx := e.begin(e.h.Features.Forms[0], 0)
		res, err := e.m.In(tx.Tx).Fire(e.Context(), "cancel", id, nil, engine.WithVersion(version+1))
		e.must(err)
		e.wantResult(res, engine.Applied, "cancelled", version+2)
		e.must(tx.Commit())
		e.wantResult(e.fire("pay", id, pay, engine.WithVersion(version)), engine.AlreadyPassed, "cancelled", version+2)
		e.wantJournal(id, "pay", "cancel")

		def := e.machines["bare"].Definition()
		e.must(e.b.Insert(e.Context(), def, engine.Row{"id": id, "status": "a", "version": version}))
		for _, want := range []engine.Outcome{engine.Applied, engine.AlreadyReached} {
			res, err := e.machines["bare"].Fire(e.Context(), "go", id, nil, engine.WithVersion(version))
			e.must(err)
			e.wantResult(res, want, "b", version+1)
		}
	}
}

// versionLast: no version follows the greatest one, which no database says alike.
func versionLast(e *env) {
	e.open(order, bare)
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.insert(engine.Row{"id": "o", "status": "pending", "version": int64(math.MaxInt64), "amount": 5, "currency": "EUR"})
	b := e.machines["bare"]
	e.must(e.b.Insert(e.Context(), b.Definition(), engine.Row{"id": "o", "status": "a", "version": int64(math.MaxInt64)}))
	refused := func(what string, err error) {
		e.Helper()
		if err == nil || !contains(err.Error(), "the last version there is") {
			e.Errorf("%s: %v", what, err)
			return
		}
		e.wantFatal(err)
	}
	for what, opts := range map[string][]engine.CallOption{"any": nil, "named": {engine.WithVersion(math.MaxInt64)}, "keyed": {engine.WithKey("k")}} {
		cancel := func(m *engine.Machine) error {
			_, err := m.Fire(e.Context(), "cancel", "o", nil, opts...)
			return err
		}
		refused(what, cancel(e.m))
		var together sync.WaitGroup
		for range 8 {
			together.Go(func() { refused(what+", together", cancel(e.m)) })
		}
		together.Wait()
		tx := e.begin(e.h.Features.Forms[0], 0)
		refused(what+", in a transaction", cancel(e.m.In(tx.Tx)))
		e.must(tx.Rollback())
		if what != "keyed" {
			_, err := b.Fire(e.Context(), "go", "o", nil, opts...)
			refused(what+", bare", err)
		}
	}
	e.wantRow("o", "pending", math.MaxInt64)
}

// versionAfterLast: a row that is created again goes on from its journal, which may have
// come to the end.
func versionAfterLast(e *env) {
	e.open(order)
	row := engine.Row{"id": "o", "amount": 5}
	e.insert(engine.Row{"id": "o", "status": "pending", "version": int64(math.MaxInt64 - 1), "amount": 5, "currency": "CNY"})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	again := func(m *engine.Machine, opts ...engine.CallOption) (engine.Result, error) {
		return m.Create(e.Context(), row, opts...)
	}
	res, err := again(e.m) // the row is there
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "paid", math.MaxInt64)
	e.remove("o")
	refused := func(what string, res engine.Result, err error) {
		e.Helper()
		if err == nil || !contains(err.Error(), "the last version there is") {
			e.Errorf("%s: %v at version %d, %v", what, res.Outcome, res.Version, err)
			return
		}
		e.wantFatal(err)
	}
	for what, opts := range map[string][]engine.CallOption{"plain": nil, "keyed": {engine.WithKey("k2")}} {
		res, err := again(e.m, opts...)
		refused(what, res, err)
		for _, form := range e.h.Features.Forms {
			tx := e.begin(form, 0)
			res, err := again(e.m.In(tx.Tx), opts...)
			refused(what+", in a transaction", res, err)
			e.must(tx.Rollback())
		}
	}
	_, err = again(e.m, engine.WithKey("k"))
	e.wantError(err, engine.ErrKeyReused)
	_, err = e.m.Get(e.Context(), "o")
	e.wantError(err, engine.ErrNotFound)
	e.wantJournal("o", "pay")
}

// versionPinned: the row moves while the guard looks at it.
func versionPinned(e *env) {
	h := e.openCode()
	for _, version := range []int64{0, -1, -7, 7} {
		id := fmt.Sprint("at", version)
		e.insert(engine.Row{"id": id, "status": "open", "version": version, "amount": 1})
		var seen []int64
		h.guard = func(ctx context.Context, ev engine.Event) error {
			if seen = append(seen, ev.Entity.Version); len(seen) > 1 {
				return nil
			}
			return e.b.Update(ctx, e.m.Definition(), id, engine.Row{"version": version + 1})
		}
		res := e.apply("settle", id, engine.Args{"note": "n"})
		if fmt.Sprint(seen) != fmt.Sprint([]int64{version, version + 1}) || res.Version != version+2 {
			e.Errorf("from version %d the guard saw %v, and the call reached version %d", version, seen, res.Version)
		}
	}
}
