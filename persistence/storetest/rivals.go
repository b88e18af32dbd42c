package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// rivalChecks are calls and transactions that meet on one row.
func rivalChecks() []check {
	return []check{
		{name: "blocked by a transaction, then lost: told what the winner made", run: rivalLoses},
		{name: "blocked by a transaction that rolls back: applied", run: rivalWins},
		{name: "a transaction whose snapshot is older than the row is told the truth, or ErrBusy", run: eachTx(rivalOldSnapshot)},
		{name: "a transaction that read before another program wrote is ErrBusy at once", run: rivalDeferred},
		{name: "a creation that waits for a row which comes and goes starts behind its journal", run: rivalGone},
		{name: "a creation in a snapshot older than the row's whole life is applied, or ErrBusy", run: eachTx(rivalGoneBefore)},
		{name: "two transactions on two rows", run: rivalApart},
		{name: "transactions that cross each other all get through", run: rivalCross},
	}
}

// blocked starts a call on the row that a transaction holds, ends the transaction
// while the call waits, and returns the call's answer.
func (e *env) blocked(tx *Tx, end func() error, call func() (engine.Result, error)) answer {
	e.Helper()
	done := make(chan answer, 1)
	go func() {
		res, err := call()
		done <- answer{res, err}
	}()
	select {
	case a := <-done:
		e.Fatalf("the call did not wait for the transaction: %+v, %v", a.res, a.err)
	case <-time.After(e.h.Features.Wait / 3):
	}
	e.must(end())
	return <-done
}

func rivalLoses(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(order)
	for _, form := range e.h.Features.Forms {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		tx := e.begin(form, 0)
		_, err := e.m.In(tx.Tx).Fire(e.Context(), "cancel", id, nil)
		e.must(err)
		a := e.blocked(tx, tx.Commit, func() (engine.Result, error) {
			return e.m.Fire(e.Context(), "pay", id, engine.Args{"payment_ref": "x"})
		})
		if detail := e.wantError(a.err, engine.ErrNotAllowed); detail.State != "cancelled" || detail.Version != 2 {
			e.Errorf("the loser was told %+v", detail)
		}
		e.wantJournal(id, "", "cancel")
	}
}

func rivalWins(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	tx := e.begin(e.h.Features.Forms[0], 0)
	_, err := e.m.In(tx.Tx).Fire(e.Context(), "pay", "o", engine.Args{"payment_ref": "x"})
	e.must(err)
	a := e.blocked(tx, tx.Rollback, func() (engine.Result, error) { return e.m.Fire(e.Context(), "cancel", "o", nil) })
	e.must(a.err)
	if a.res.Outcome != engine.Applied || a.res.From != "pending" || a.res.Version != 2 {
		e.Errorf("cancel = %+v", a.res)
	}
}

// rivalOldSnapshot: the transaction has read, somebody else commits, the transaction
// fires on what it has read.
func rivalOldSnapshot(e *env, begin func() *Tx) {
	e.need(e.h.Features.Locks, "row locks")
	e.open(order)
	pay := engine.Args{"payment_ref": "x"}
	for name, call := range map[string]func(m *engine.Machine, id string) (engine.Result, error){
		"plain": func(m *engine.Machine, id string) (engine.Result, error) { return m.Fire(e.Context(), "pay", id, pay) },
		"keyed": func(m *engine.Machine, id string) (engine.Result, error) {
			return m.Fire(e.Context(), "pay", id, pay, engine.WithKey("k"))
		},
		"version": func(m *engine.Machine, id string) (engine.Result, error) {
			return m.Fire(e.Context(), "pay", id, pay, engine.WithVersion(1))
		},
	} {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		tx := begin()
		m := e.m.In(tx.Tx)
		_, err := m.Get(e.Context(), id)
		e.must(err)
		if _, err := e.m.Fire(e.Context(), "pay", id, pay, engine.WithKey("k")); errors.Is(err, engine.ErrBusy) {
			e.must(tx.Rollback())
			e.Skip("at this level a transaction locks what it reads")
		} else if err != nil {
			e.Fatal(err)
		}
		switch res, err := call(m, id); {
		case err == nil && (res.Version != 2 || !res.Outcome.Duplicate()):
			e.Errorf("%s: the transaction was told %+v", name, res)
		case err != nil && !errors.Is(err, engine.ErrBusy):
			e.Errorf("%s: the transaction was told %v", name, err)
		}
		e.must(tx.Rollback())
		tx = begin()
		res, err := call(e.m.In(tx.Tx), id)
		e.must(err)
		if !res.Outcome.Duplicate() {
			e.Errorf("%s: the repeat is %+v", name, res)
		}
		e.must(tx.Commit())
		e.wantRow(id, "paid", 2)
	}
}

// rivalDeferred: what such a transaction has read is not to be written over, and no
// waiting helps it.
func rivalDeferred(e *env) {
	e.need(len(e.h.Features.Deferred) > 0, "transactions that hold nothing until they write")
	e.open(order)
	for _, form := range e.h.Features.Deferred {
		id := e.fresh()
		e.create(engine.Row{"id": id, "amount": 1})
		tx := e.begin(form, 0)
		m := e.m.In(tx.Tx)
		_, err := m.Get(e.Context(), id)
		e.must(err)
		e.update(id, engine.Row{"amount": 2})
		begun := time.Now()
		_, err = m.Fire(e.Context(), "pay", id, engine.Args{"payment_ref": "x"})
		e.wantError(err, engine.ErrBusy)
		if took := time.Since(begun); took > e.h.Features.Wait {
			e.Errorf("the call took %v", took)
		}
		e.must(tx.Rollback())
		// Nothing was read before: the call takes the writer itself.
		tx = e.begin(form, 0)
		_, err = e.m.In(tx.Tx).Fire(e.Context(), "ship", id, nil)
		e.wantError(err, engine.ErrNotAllowed)
		ctx, cancel := context.WithTimeout(e.Context(), e.h.Features.Wait)
		if err := e.b.Update(ctx, e.m.Definition(), id, engine.Row{"amount": 3}); err == nil {
			e.Error("the answer to a transaction can change before it commits")
		}
		cancel()
		_, err = e.m.In(tx.Tx).Fire(e.Context(), "pay", id, engine.Args{"payment_ref": "x"})
		e.must(err)
		e.must(tx.Commit())
	}
}

// rivalGone: the version that the creation has read from the journal is taken by then.
func rivalGone(e *env) {
	e.need(e.h.Features.Locks, "row locks")
	e.open(order)
	b, ok := e.b.(*SQL)
	e.need(ok, "statements of a caller's own")
	tx := e.begin(e.h.Features.Forms[0], 0)
	_, err := e.m.In(tx.Tx).Create(e.Context(), engine.Row{"id": "o", "amount": 1})
	e.must(err)
	e.must(e.pay(e.Context(), tx.Tx, "o"))
	_, err = tx.ExecContext(e.Context(), "DELETE FROM "+b.table("orders"))
	e.must(err)
	a := e.blocked(tx, tx.Commit, func() (engine.Result, error) { return e.m.Create(e.Context(), engine.Row{"id": "o", "amount": 2}) })
	e.must(a.err)
	e.wantResult(a.res, engine.Applied, "pending", 3)
	e.wantJournal("o", "", "pay", "")
}

func rivalGoneBefore(e *env, begin func() *Tx) {
	e.need(e.h.Features.Locks, "row locks")
	e.open(order)
	tx := begin()
	m := e.m.In(tx.Tx)
	if _, err := m.Get(e.Context(), "o"); !errors.Is(err, engine.ErrNotFound) {
		e.Fatal(err)
	}
	_, err := m.Journal(e.Context(), "o")
	e.must(err)
	if _, err := e.m.Create(e.Context(), engine.Row{"id": "o", "amount": 1}); errors.Is(err, engine.ErrBusy) {
		e.must(tx.Rollback())
		e.Skip("at this level a transaction locks what it reads")
	} else if err != nil {
		e.Fatal(err)
	}
	e.remove("o")
	switch res, err := m.Create(e.Context(), engine.Row{"id": "o", "amount": 2}); {
	case err == nil:
		e.must(tx.Commit())
		e.wantResult(res, engine.Applied, "pending", 2)
	default:
		if detail := e.wantError(err, engine.ErrBusy); !contains(detail.Error(), "roll back and repeat the whole transaction") {
			e.Errorf("%v: want it to say what to do", err)
		}
		e.must(tx.Rollback())
		e.wantJournal("o", "")
	}
}

func rivalApart(e *env) {
	e.need(e.h.Features.Locks && len(e.h.Features.Forms) > 0, "row locks")
	e.open(order)
	var txs []*Tx
	for _, id := range []string{"a", "b"} {
		e.create(engine.Row{"id": id, "amount": 1})
		tx := e.begin(e.h.Features.Forms[0], 0)
		txs = append(txs, tx)
	}
	for i, id := range []string{"a", "b"} {
		e.within(e.h.Features.Wait, "a transaction on a row of its own", func(ctx context.Context) {
			_, err := e.m.In(txs[i].Tx).Fire(ctx, "pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
			e.must(err)
		})
	}
	for _, tx := range txs {
		e.must(tx.Commit())
	}
	e.wantRow("a", "paid", 2)
	e.wantRow("b", "paid", 2)
}

// rivalCross: half of the transactions touch x before y, the other half y before x.
// Where that is a deadlock, the engine runs the victim again.
func rivalCross(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "x"})
	e.create(engine.Row{"id": "y"})
	const callers = 4
	each := rounds(3, 30)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ids := []string{"x", "y"}
			if i%2 == 1 {
				ids = []string{"y", "x"}
			}
			for j := range each {
				for {
					err := e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
						for _, id := range ids {
							if _, err := e.m.In(tx).Fire(ctx, "touch", id, engine.Args{"note": fmt.Sprint(i, "-", j)}); err != nil {
								return err
							}
						}
						return nil
					})
					if errors.Is(err, engine.ErrBusy) { // the row is hot, and the call says so
						continue
					}
					if err != nil {
						e.Errorf("InTx: %v", err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	e.wantRow("x", "open", int64(1+callers*each))
	e.wantRow("y", "open", int64(1+callers*each))
}
