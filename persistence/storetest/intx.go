package storetest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func inTxChecks() []check {
	return []check{
		{name: "commit keeps, rollback leaves nothing", run: eachTx(inTxEnds)},
		{name: "a life inside one transaction", run: eachTx(inTxLife)},
		{name: "answers leave the transaction usable", run: eachTx(inTxAnswers)},
		{name: "the same key twice is applied once", run: eachTx(inTxSameKey)},
		{name: "keys seen before are Replayed", run: eachTx(inTxSeenKey)},
		{name: "rolled back keys are free", run: eachTx(inTxFreeKey)},
		{name: "a call without In while a transaction is open is ErrBusy, never a hang", run: inTxWithoutIn},
		{name: "what cannot hold a transaction is refused", run: inTxRefused},
		{name: "a transaction that has ended is an error", run: inTxEnded},
	}
}

// txTest is a test inside a caller's transaction; it opens the transactions it needs.
type txTest func(e *env, begin func() *Tx)

// eachTx runs a test with every form of transaction, and at every isolation level.
func eachTx(run txTest) func(e *env) {
	return func(e *env) {
		e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
		for _, form := range e.h.Features.Forms {
			levels := []sql.IsolationLevel{sql.LevelDefault}
			if form != Conn {
				levels = append(levels, e.h.Features.Levels...)
			}
			for _, level := range levels {
				e.T.Run(string(form)+" "+level.String(), func(t *testing.T) {
					sub := &env{T: t, h: e.h}
					run(sub, func() *Tx { t.Helper(); return sub.begin(form, level) })
				})
			}
		}
	}
}

func inTxEnds(e *env, begin func() *Tx) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	work := func() *Tx {
		tx := begin()
		m := e.m.In(tx.Tx)
		res, err := m.Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
		e.must(err)
		e.wantResult(res, engine.Applied, "paid", 2)
		if res.From != "pending" {
			e.Errorf("pay = %+v", res)
		}
		res, err = m.Fire(e.Context(), "cancel", "o", nil)
		e.must(err)
		if res.Outcome != engine.Applied || res.From != "paid" || res.Version != 3 {
			e.Errorf("cancel = %+v", res)
		}
		res, err = m.Create(e.Context(), engine.Row{"id": "new", "amount": 1})
		e.must(err)
		e.wantResult(res, engine.Applied, "pending", 1)
		e.must(res.AfterCommit(e.Context()))
		return tx
	}
	e.must(work().Rollback())
	e.wantRow("o", "pending", 1)
	e.wantJournal("o", "")
	e.wantJournal("new")
	_, err := e.m.Get(e.Context(), "new")
	e.wantError(err, engine.ErrNotFound)
	e.must(work().Commit())
	e.wantRow("o", "cancelled", 3)
	e.wantRow("new", "pending", 1)
	e.wantJournal("o", "", "pay", "cancel")
}

func inTxLife(e *env, begin func() *Tx) {
	e.open(order)
	tx := begin()
	m := e.m.In(tx.Tx)
	ctx := e.Context()
	_, err := m.Create(ctx, engine.Row{"id": "o", "amount": 1})
	e.must(err)
	e.must(m.Can(ctx, "o", "pay", engine.Args{"payment_ref": "x"}))
	for i, step := range []string{"pay", "ship", "complete"} {
		var args engine.Args
		if step == "pay" {
			args = engine.Args{"payment_ref": "x"}
		}
		res, err := m.Fire(ctx, step, "o", args)
		e.must(err)
		if res.Outcome != engine.Applied || res.Version != int64(i+2) {
			e.Fatalf("%s = %+v", step, res)
		}
	}
	got, err := m.Get(ctx, "o")
	e.must(err)
	if got.State != "completed" || got.Version != 4 {
		e.Errorf("Get inside = %+v", got)
	}
	entries, err := m.Journal(ctx, "o")
	e.must(err)
	if len(entries) != 4 {
		e.Errorf("Journal inside = %+v", entries)
	}
	e.wantError(m.Can(ctx, "o", "cancel", nil), engine.ErrNotAllowed)
	res, err := m.Fire(ctx, "pay", "o", engine.Args{"payment_ref": "x"})
	e.must(err)
	e.wantResult(res, engine.AlreadyPassed, "completed", 4)
	e.must(tx.Commit())
	e.wantRow("o", "completed", 4)
}

// inTxAnswers gets every answer the engine has, and then goes on.
func inTxAnswers(e *env, begin func() *Tx) {
	e.open(order)
	for _, id := range []string{"o", "p"} {
		e.create(engine.Row{"id": id, "amount": 1}, engine.WithKey("c"))
	}
	e.apply("pay", "p", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	tx := begin()
	m, ctx := e.m.In(tx.Tx), e.Context()
	_, err := m.Create(ctx, engine.Row{"id": "first", "amount": 1})
	e.must(err)
	fire := func(want error, transition, id string, args engine.Args, opts ...engine.CallOption) {
		e.Helper()
		_, err := m.Fire(ctx, transition, id, args, opts...)
		if want == nil {
			e.must(err)
			return
		}
		e.wantError(err, want)
	}
	pay := engine.Args{"payment_ref": "x"}
	fire(engine.ErrNotFound, "pay", "nobody", pay)
	fire(engine.ErrNotAllowed, "ship", "o", nil)
	fire(engine.ErrNotAllowed, "ship", "o", nil, engine.WithKey("s"))
	fire(engine.ErrConflict, "pay", "o", pay, engine.WithVersion(5))
	fire(engine.ErrInvalidArgs, "pay", "o", nil)
	fire(engine.ErrKeyReused, "cancel", "p", nil, engine.WithKey("k"))
	fire(nil, "pay", "p", pay)
	fire(nil, "pay", "p", pay, engine.WithKey("k"))
	_, err = m.Create(ctx, engine.Row{"id": "o", "amount": 2})
	e.wantError(err, engine.ErrMismatch)
	_, err = m.Create(ctx, engine.Row{"id": "o", "amount": 2}, engine.WithKey("c"))
	e.wantError(err, engine.ErrKeyReused)
	res, err := m.Create(ctx, engine.Row{"id": "o", "amount": 1})
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "pending", 1)
	res, err = m.Create(ctx, engine.Row{"id": "o", "amount": 1}, engine.WithKey("c"))
	e.must(err)
	e.wantResult(res, engine.Replayed, "pending", 1)
	fire(nil, "pay", "o", pay)
	e.must(tx.Commit())
	e.wantRow("o", "paid", 2)
	e.wantRow("p", "paid", 2)
	e.wantRow("first", "pending", 1)
	e.wantJournal("o", "", "pay")
}

func inTxSameKey(e *env, begin func() *Tx) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	tx := begin()
	m, ctx := e.m.In(tx.Tx), e.Context()
	for i := range 3 {
		res, err := m.Fire(ctx, "touch", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
		e.must(err)
		want := engine.Replayed
		if i == 0 {
			want = engine.Applied
		}
		e.wantResult(res, want, "open", 2)
	}
	_, err := m.Fire(ctx, "touch", "t", engine.Args{"note": "other"}, engine.WithKey("k"))
	e.wantError(err, engine.ErrKeyReused)
	_, err = m.Fire(ctx, "hold", "t", engine.Args{"by": "x"}, engine.WithKey("k2"))
	e.must(err)
	e.must(tx.Commit())
	e.wantRow("t", "held", 3)
	e.wantJournal("t", "", "touch", "hold")
}

func inTxSeenKey(e *env, begin func() *Tx) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	by := engine.Args{"by": "x"}
	e.apply("hold", "t", by, engine.WithKey("h"))
	e.apply("release", "t", nil)
	tx := begin()
	m, ctx := e.m.In(tx.Tx), e.Context()
	// The CAS would apply; only the key knows better.
	res, err := m.Fire(ctx, "hold", "t", by, engine.WithKey("h"))
	e.must(err)
	e.wantReplay(res, "open", "held", 2, "open")
	res, err = m.Fire(ctx, "touch", "t", engine.Args{"note": "n"})
	e.must(err)
	e.wantResult(res, engine.Applied, "open", 4)
	e.must(tx.Commit())
	e.wantRow("t", "open", 4)
	e.wantJournal("t", "", "hold", "release", "touch")
}

func inTxFreeKey(e *env, begin func() *Tx) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	for range 2 {
		tx := begin()
		res, err := e.m.In(tx.Tx).Fire(e.Context(), "touch", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
		e.must(err)
		e.wantResult(res, engine.Applied, "open", 2)
		e.must(tx.Rollback())
	}
	e.apply("touch", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
	e.wantJournal("t", "", "touch")
}

func inTxWithoutIn(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(order)
	for _, id := range []string{"o", "p"} {
		e.create(engine.Row{"id": id, "amount": 1})
	}
	limit := 3*e.h.Features.Wait + 2*time.Second
	if !e.h.Features.OneWriter { // a row lock is asked for again at each of the engine's tries
		limit = 15*e.h.Features.Wait + 3*time.Second
	}
	for _, form := range e.h.Features.Forms {
		tx := e.begin(form, 0)
		pay := engine.Args{"payment_ref": "x"}
		_, err := e.m.In(tx.Tx).Fire(e.Context(), "pay", "o", pay)
		e.must(err)
		e.within(limit, "a call on the row that a transaction holds", func(ctx context.Context) {
			_, err := e.m.Fire(ctx, "cancel", "o", nil)
			detail := e.wantError(err, engine.ErrBusy)
			if e.h.Features.OneWriter && !contains(detail.Error(), "In(tx)") {
				e.Errorf("the error does not say what to do: %v", detail)
			}
		})
		e.within(limit, "a creation, or a call on another row", func(ctx context.Context) {
			_, create := e.m.Create(ctx, engine.Row{"id": e.fresh(), "amount": 1})
			_, fire := e.m.Fire(ctx, "pay", "p", pay)
			if e.h.Features.OneWriter {
				e.wantError(create, engine.ErrBusy)
				e.wantError(fire, engine.ErrBusy)
				return
			}
			e.must(create)
			e.must(fire)
		})
		e.within(limit, "a read beside a transaction", func(ctx context.Context) {
			got, err := e.m.Get(ctx, "o")
			if err == nil && got.State != "pending" {
				e.Errorf("a read sees what is not committed: %+v", got)
			} else if err != nil {
				e.wantError(err, engine.ErrBusy)
			}
		})
		e.must(tx.Rollback())
		e.wantRow("o", "pending", 1)
	}
	e.apply("cancel", "o", nil)
}

func inTxRefused(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	refused := map[string]engine.Tx{"nil": nil}
	if b, ok := e.b.(*SQL); ok {
		refused["*sqlx.DB"], refused["*sql.DB"] = b.Pool, b.Pool.DB
	}
	for name, tx := range refused {
		m := e.m.In(tx)
		_, fire := m.Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "x"})
		_, create := m.Create(e.Context(), engine.Row{"id": "p", "amount": 1})
		_, get := m.Get(e.Context(), "o")
		_, journal := m.Journal(e.Context(), "o")
		for call, err := range map[string]error{"Fire": fire, "Create": create, "Get": get, "Journal": journal, "Can": m.Can(e.Context(), "o", "ship", nil)} {
			if !errors.Is(err, engine.ErrInvalidArgs) {
				e.Errorf("In(%s).%s: %v", name, call, err)
			}
		}
	}
	e.wantJournal("o", "")
}

func inTxEnded(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	for _, form := range e.h.Features.Forms {
		for _, end := range []func(tx *Tx) error{func(tx *Tx) error { return tx.Commit() }, func(tx *Tx) error { return tx.Rollback() }} {
			tx := e.begin(form, 0)
			e.must(end(tx))
			_, fire := e.m.In(tx.Tx).Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "x"})
			_, create := e.m.In(tx.Tx).Create(e.Context(), engine.Row{"id": "p", "amount": 1})
			_, get := e.m.In(tx.Tx).Get(e.Context(), "o")
			if fire == nil || create == nil || get == nil {
				e.Errorf("calls in an ended %s: %v, %v, %v", form, fire, create, get)
			}
		}
	}
	e.wantRow("o", "pending", 1)
	_, err := e.m.Get(e.Context(), "p")
	e.wantError(err, engine.ErrNotFound)
}
