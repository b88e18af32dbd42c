package storetest

import (
	"sync"
	"sync/atomic"

	"github.com/fsmgen/fsmgen/engine"
)

func bareChecks() []check {
	return []check{
		{name: "applies, and answers from the row alone", run: bareFire},
		{name: "versions", run: bareVersions},
		{name: "keys, actor and meta are ErrInvalidArgs", run: bareOptions},
		{name: "create", run: bareCreate},
		{name: "inside a caller's transaction", run: bareInTx},
		{name: "one winner", run: bareWinner},
	}
}

func bareFire(e *env) {
	e.open(bare)
	e.create(engine.Row{"id": "x"})
	res := e.apply("go", "x", engine.Args{"note": "n"})
	if res.From != "a" || res.To != "b" || res.Version != 2 || res.Key != "" || res.First != nil {
		e.Errorf("go = %+v", res)
	}
	res = e.fire("go", "x", engine.Args{"note": "m"})
	e.wantResult(res, engine.AlreadyReached, "b", 2)
	if res.First != nil || res.Key != "" {
		e.Errorf("go again = %+v", res)
	}
	e.wantValues(e.rowOf("x"), engine.Row{"note": "n"})
	if res := e.apply("end", "x", nil); res.From != "b" || res.Version != 3 {
		e.Errorf("end = %+v", res)
	}
	e.refuse(engine.ErrNotAllowed, "back", "x", nil)
	e.refuse(engine.ErrNotFound, "back", "y", nil)
	e.wantJournal("x")
	e.apply("go", e.create(engine.Row{"id": "z"}).ID, nil)
	e.wantValues(e.rowOf("z"), engine.Row{"note": nil})
}

func bareVersions(e *env) {
	e.open(bare)
	e.create(engine.Row{"id": "x"})
	e.refuse(engine.ErrConflict, "go", "x", nil, engine.WithVersion(2))
	e.wantResult(e.apply("go", "x", nil, engine.WithVersion(1)), engine.Applied, "b", 2)
	// Stale by one, in the target: an earlier run of this call.
	e.wantResult(e.fire("go", "x", nil, engine.WithVersion(1)), engine.AlreadyReached, "b", 2)
	e.wantResult(e.apply("back", "x", nil, engine.WithVersion(2)), engine.Applied, "a", 3)
	e.wantResult(e.apply("go", "x", nil, engine.WithVersion(3)), engine.Applied, "b", 4)
	e.refuse(engine.ErrConflict, "go", "x", nil, engine.WithVersion(1))
	if res := e.apply("end", "x", nil, engine.WithVersion(4)); res.From != "b" || res.Version != 5 {
		e.Errorf("end = %+v", res)
	}
}

func bareOptions(e *env) {
	e.open(bare)
	e.create(engine.Row{"id": "x"})
	for _, opt := range []engine.CallOption{engine.WithKey("k"), engine.WithActor("a"), engine.WithMeta(1)} {
		e.refuse(engine.ErrInvalidArgs, "go", "x", nil, opt)
		_, err := e.m.Create(e.Context(), engine.Row{"id": "y"}, opt)
		e.wantError(err, engine.ErrInvalidArgs)
	}
	e.wantRow("x", "a", 1)
}

func bareCreate(e *env) {
	e.open(bare)
	e.create(engine.Row{"id": "x"})
	res, err := e.m.Create(e.Context(), engine.Row{"id": "x"})
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "a", 1)
	e.apply("go", "x", engine.Args{"note": "n"})
	e.remove("x")
	e.wantResult(e.create(engine.Row{"id": "x"}), engine.Applied, "a", 1)
}

func bareInTx(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(bare)
	e.create(engine.Row{"id": "x"})
	for _, form := range e.h.Features.Forms {
		tx := e.begin(form, 0)
		res, err := e.m.In(tx.Tx).Fire(e.Context(), "go", "x", nil)
		e.must(err)
		e.wantResult(res, engine.Applied, "b", 2)
		res, err = e.m.In(tx.Tx).Fire(e.Context(), "go", "x", nil)
		e.must(err)
		e.wantResult(res, engine.AlreadyReached, "b", 2)
		e.must(tx.Rollback())
		e.wantRow("x", "a", 1)
	}
}

func bareWinner(e *env) {
	e.open(bare)
	for range rounds(10, 200) {
		id := e.fresh()
		e.create(engine.Row{"id": id})
		var applied, reached atomic.Int64
		var wg sync.WaitGroup
		for range 16 {
			wg.Go(func() {
				res, err := e.m.Fire(e.Context(), "go", id, nil)
				switch {
				case err != nil:
					e.Error(err)
				case res.Outcome == engine.Applied:
					applied.Add(1)
				case res.Outcome == engine.AlreadyReached && res.Version == 2:
					reached.Add(1)
				}
			})
		}
		wg.Wait()
		if applied.Load() != 1 || reached.Load() != 15 {
			e.Fatalf("%d applied, %d reached, want 1 and 15", applied.Load(), reached.Load())
		}
		e.wantRow(id, "b", 2)
	}
}
