package storetest

import "github.com/fsmgen/fsmgen/engine"

func versionChecks() []check {
	return []check{
		{name: "a named version applies to that version only", run: versionNamed},
		{name: "a version that is stale because of this very call is a duplicate", run: versionOwn},
		{name: "a version that is stale because of another call stays ErrConflict", run: versionOther},
		{name: "moved between the caller's read and the write", run: versionRace},
		{name: "rolled back versions are not used up", run: versionRolledBack},
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
