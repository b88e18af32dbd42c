package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/fsmgen/fsmgen/engine"
)

// transfer names Go code in every place.
const transfer = `
machine: transfer
table: {name: transfers}
fields:
  amount: {type: int}
  note:   {type: string, nullable: true}
initial: open
states:
  open:
  done:
  void: {final: true}
transitions:
  settle:
    from: open
    to: done
    args: {note: string}
    set: {note: args.note}
    guard: may_settle
    effect: post
    after: notify
    duplicates: accept
  undo: {from: done, to: open}
  void: {from: [open, done], to: void}
`

func codeChecks() []check {
	return []check{
		{name: "guard, effect and after see the row, and run once", run: codeRuns},
		{name: "a guard's no is ErrRejected, and nothing is written", run: codeGuard},
		{name: "Can asks the guard, and runs nothing else", run: codeCan},
		{name: "in a caller's transaction Can asks the guard", run: eachTx(codeCanInTx)},
		{name: "an effect's error undoes all it did", run: codeEffectFails},
		{name: "an effect's error keeps its chain, whatever it wraps", run: codeEffectWraps},
		{name: "a panic of the effect undoes all, and is raised again", run: codeEffectPanics},
		{name: "in a caller's transaction an effect's error takes back the call alone", run: eachTx(codeInTx)},
		{name: "in a caller's transaction, past the call's deadline too", run: eachTx(codeLateInTx)},
		{name: "in a caller's transaction, also where another database failed the effect", run: eachTx(codeElsewhereInTx)},
		{name: "an effect that another database stopped for now is run again", run: codeElsewhere},
		{name: "after runs when the caller's transaction has committed", run: codeAfterInTx},
		{name: "an effect's call without In is refused, not waited for", run: codeEffectWithoutIn},
		{name: "what hooks do to the event changes nothing", run: codeScribbles},
	}
}

// hooks are the Go code of machine transfer; each test sets what it needs.
type hooks struct {
	guard                   func(ctx context.Context, ev engine.Event) error
	effect                  func(ctx context.Context, tx engine.Tx, ev engine.Event) error
	guards, effects, afters atomic.Int64
	last                    engine.Event
}

func (h *hooks) code() engine.Code {
	return engine.Code{
		"may_settle": {Guard: func(ctx context.Context, ev engine.Event) error {
			h.guards.Add(1)
			if h.guard == nil {
				return nil
			}
			return h.guard(ctx, ev)
		}},
		"post": {Effect: func(ctx context.Context, tx engine.Tx, ev engine.Event) error {
			h.effects.Add(1)
			if h.effect == nil {
				return nil
			}
			return h.effect(ctx, tx, ev)
		}},
		"notify": {After: func(_ context.Context, ev engine.Event) error {
			h.afters.Add(1)
			h.last = ev
			return nil
		}},
	}
}

// openCode opens machine transfer with hooks, and order beside it.
func (e *env) openCode() *hooks {
	e.Helper()
	h := &hooks{}
	e.code = map[string]engine.Code{"transfer": h.code()}
	e.open(transfer, order)
	e.create(engine.Row{"id": "t", "amount": 7})
	return h
}

func (e *env) wantRuns(h *hooks, guards, effects, afters int64) {
	e.Helper()
	if h.guards.Load() != guards || h.effects.Load() != effects || h.afters.Load() != afters {
		e.Errorf("guards, effects, afters ran %d, %d, %d times, want %d, %d, %d", h.guards.Load(), h.effects.Load(), h.afters.Load(), guards, effects, afters)
	}
}

// orderInEffect creates an order and pays it within the effect's transaction.
func (e *env) orderInEffect(ctx context.Context, tx engine.Tx, id string) error {
	m := e.machines["order"].In(tx)
	if _, err := m.Create(ctx, engine.Row{"id": id, "amount": 1}); err != nil {
		return err
	}
	_, err := m.Fire(ctx, "pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	return err
}

// wantOrder holds the order that an effect made, or should not have.
func (e *env) wantOrder(id string, there bool) {
	e.Helper()
	m := e.machines["order"]
	got, err := m.Get(e.Context(), id)
	entries, err2 := m.Journal(e.Context(), id)
	e.must(err2)
	switch {
	case there && (err != nil || got.State != "paid" || len(entries) != 2):
		e.Errorf("order %s is %+v, %v, with %d entries", id, got, err, len(entries))
	case !there && (!errors.Is(err, engine.ErrNotFound) || len(entries) != 0):
		e.Errorf("order %s is left behind: %+v, %v, with %d entries", id, got, err, len(entries))
	}
}

func codeRuns(e *env) {
	h := e.openCode()
	h.guard = func(_ context.Context, ev engine.Event) error {
		if ev.Entity.State != "open" || ev.Entity.Version != 1 || ev.Args[0] != "n" || ev.Result.Outcome != 0 {
			return errors.New("the guard was told something else")
		}
		return nil
	}
	h.effect = func(ctx context.Context, tx engine.Tx, ev engine.Event) error {
		got, err := e.m.In(tx).Get(ctx, "t")
		if err != nil || got.State != "done" || got.Version != 2 || ev.Entity.State != "open" || ev.Result.Version != 2 || ev.Result.From != "open" {
			return errors.Join(err, errors.New("the effect was told something else"))
		}
		return e.orderInEffect(ctx, tx, "o")
	}
	res := e.apply("settle", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
	e.wantResult(res, engine.Applied, "done", 2)
	e.wantOrder("o", true)
	e.wantRuns(h, 1, 1, 1)
	if h.last.Result.Version != 2 || h.last.Entity.Version != 1 {
		e.Errorf("after was told %+v", h.last)
	}
	// A duplicate runs no code.
	e.wantResult(e.fire("settle", "t", engine.Args{"note": "m"}), engine.AlreadyReached, "done", 2)
	e.wantReplay(e.fire("settle", "t", engine.Args{"note": "n"}, engine.WithKey("k")), "open", "done", 2, "done")
	e.wantRuns(h, 1, 1, 1)
}

func codeGuard(e *env) {
	h := e.openCode()
	no := errors.New("the limit is reached")
	h.guard = func(context.Context, engine.Event) error { return no }
	_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
	if detail := e.wantError(err, engine.ErrRejected); !errors.Is(err, no) || detail.State != "open" || detail.Version != 1 {
		e.Errorf("the rejection is %+v: %v", detail, err)
	}
	e.wantRuns(h, 1, 0, 0)
	e.wantRow("t", "open", 1)
	e.wantJournal("t", "")
	h.guard = nil
	e.apply("settle", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
}

// wantCan holds what Can says of a transition of the first machine, also in tx, and how
// often the guard was asked.
func (e *env) wantCan(h *hooks, m *engine.Machine, transition string, kind, cause error, asked int64) {
	e.Helper()
	before := h.guards.Load()
	var args engine.Args
	if transition == "settle" {
		args = engine.Args{"note": "n"}
	}
	err := m.Can(e.Context(), "t", transition, args)
	if !errors.Is(err, kind) || (cause != nil && !errors.Is(err, cause)) || (err == nil) != (kind == nil) {
		e.Errorf("Can(%s) = %v, want %v with %v", transition, err, kind, cause)
	}
	if n := h.guards.Load() - before; n != asked {
		e.Errorf("Can(%s) asked the guard %d times, want %d", transition, n, asked)
	}
}

func codeCan(e *env) {
	h := e.openCode()
	h.effect = func(context.Context, engine.Tx, engine.Event) error { return errors.New("Can ran the effect") }
	var seen engine.Event
	h.guard = func(_ context.Context, ev engine.Event) error {
		seen = ev
		return nil
	}
	e.wantCan(h, e.m, "settle", nil, nil, 1)
	if seen.Transition != "settle" || seen.Entity.State != "open" || seen.Entity.Version != 1 || seen.Args[0] != "n" || seen.Result.Outcome != 0 {
		e.Errorf("the guard was told %+v", seen)
	}
	no := errors.New("the limit is reached")
	h.guard = func(context.Context, engine.Event) error { return no }
	e.wantCan(h, e.m, "settle", engine.ErrRejected, no, 1)
	_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
	can := e.m.Can(e.Context(), "t", "settle", engine.Args{"note": "n"})
	if e.wantError(err, engine.ErrRejected); fmt.Sprint(can) != err.Error() {
		e.Errorf("Can says %v, the call %v", can, err)
	}
	h.guard = func(context.Context, engine.Event) error { panic("boom") }
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				e.Errorf("recovered %v", p)
			}
		}()
		_ = e.m.Can(e.Context(), "t", "settle", engine.Args{"note": "n"})
		e.Error("the guard's panic was swallowed")
	}()
	e.checkIdle()
	e.wantRow("t", "open", 1)
	e.wantJournal("t", "")
	h.guard, h.effect = nil, nil
	e.apply("settle", "t", engine.Args{"note": "n"})
	h.guard = func(context.Context, engine.Event) error { return no }
	e.wantCan(h, e.m, "settle", nil, nil, 0) // a duplicate
	e.apply("void", "t", nil)
	e.wantCan(h, e.m, "undo", engine.ErrNotAllowed, nil, 0)
	if h.afters.Load() != 1 {
		e.Errorf("after ran %d times, want once", h.afters.Load())
	}
}

func codeCanInTx(e *env, begin func() *Tx) {
	h := e.openCode()
	no := errors.New("the limit is reached")
	tx := begin()
	m := e.m.In(tx.Tx)
	e.wantCan(h, m, "settle", nil, nil, 1)
	h.guard = func(context.Context, engine.Event) error { return no }
	e.wantCan(h, m, "settle", engine.ErrRejected, no, 1)
	e.must(e.orderInEffect(e.Context(), tx.Tx, "later")) // the transaction is usable
	e.must(tx.Commit())
	e.wantOrder("later", true)
	e.wantRow("t", "open", 1)
}

func codeEffectFails(e *env) {
	h := e.openCode()
	failed := errors.New("the ledger is closed")
	h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		if err := e.orderInEffect(ctx, tx, "o"); err != nil {
			return err
		}
		return failed
	}
	_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
	if !errors.Is(err, failed) {
		e.Errorf("the effect's error is %v", err)
	}
	e.wantRow("t", "open", 1)
	e.wantJournal("t", "")
	e.wantOrder("o", false)
	e.wantRuns(h, 1, 1, 0)
	h.effect = nil
	e.apply("settle", "t", engine.Args{"note": "n"}, engine.WithKey("k"))
}

// codeLateInTx: the call's context ends while the effect runs.
func codeLateInTx(e *env, begin func() *Tx) {
	h := e.openCode()
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		if err := e.orderInEffect(ctx, tx, "inner"); err != nil {
			return err
		}
		cancel()
		return ctx.Err()
	}
	tx := begin()
	e.must(e.orderInEffect(e.Context(), tx.Tx, "before"))
	_, err := e.m.In(tx.Tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"})
	if !errors.Is(err, context.Canceled) {
		e.Errorf("the error is %v", err)
	}
	if errors.Is(err, engine.ErrBusy) { // the transaction is gone, and the error says so
		e.must(tx.Rollback())
		return
	}
	e.must(tx.Commit())
	e.wantOrder("before", true)
	e.wantOrder("inner", false)
	e.wantRow("t", "open", 1)
}

// codeEffectWraps: an effect may pass on the error of a call of its own; it stays the
// effect's error, with everything it wraps.
func codeEffectWraps(e *env) {
	h := e.openCode()
	failed := errors.New("posting")
	for _, inner := range []error{
		&engine.Fault{Class: engine.ClassConstraint, Err: errors.New("a constraint")},
		&engine.Fault{Class: engine.ClassFatal, Err: errors.New("fatal")},
		&engine.Fault{Class: engine.ClassDuplicateKey, Err: errors.New("a key of another call")},
		context.DeadlineExceeded,
		engine.ErrNotFound,
		engine.ErrConflict,
	} {
		h.effect = func(context.Context, engine.Tx, engine.Event) error { return errors.Join(failed, inner) }
		before := h.effects.Load()
		_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
		if !errors.Is(err, failed) || !errors.Is(err, inner) || h.effects.Load() != before+1 {
			e.Errorf("of an effect's error that wraps %v is left, after %d runs: %v", inner, h.effects.Load()-before, err)
		}
		e.wantRow("t", "open", 1)
	}
}

func codeEffectPanics(e *env) {
	h := e.openCode()
	h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		if err := e.orderInEffect(ctx, tx, "o"); err != nil {
			return err
		}
		panic("boom")
	}
	func() {
		defer func() {
			if p := recover(); p != "boom" {
				e.Errorf("recovered %v", p)
			}
		}()
		_, _ = e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
	}()
	e.checkIdle()
	e.wantRow("t", "open", 1)
	e.wantOrder("o", false)
	h.effect = nil
	e.apply("settle", "t", engine.Args{"note": "n"})
}

func codeInTx(e *env, begin func() *Tx) {
	h := e.openCode()
	failed := fmt.Errorf("the ledger: %w", context.DeadlineExceeded) // its deadline, not the call's
	h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
		if err := e.orderInEffect(ctx, tx, "inner"); err != nil {
			return err
		}
		return failed
	}
	tx := begin()
	ctx := e.Context()
	e.must(e.orderInEffect(ctx, tx.Tx, "before"))
	_, err := e.m.In(tx.Tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"})
	if !errors.Is(err, failed) {
		e.Errorf("the effect's error is %v", err)
	}
	// The transaction is usable, and holds what it held.
	got, err := e.m.In(tx.Tx).Get(ctx, "t")
	e.must(err)
	if got.State != "open" || got.Version != 1 {
		e.Errorf("after the failed effect the row is %+v", got)
	}
	e.must(e.orderInEffect(ctx, tx.Tx, "later"))
	h.effect = nil
	_, err = e.m.In(tx.Tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"})
	e.must(err)
	e.must(tx.Commit())
	e.wantOrder("before", true)
	e.wantOrder("inner", false)
	e.wantOrder("later", true)
	e.wantRow("t", "done", 2)
}

// elsewhere are errors of calls that an effect made on another store or connection: they
// say nothing about the transaction it runs in.
func elsewhere() []error {
	return []error{
		&engine.Fault{Class: engine.ClassRetryable, Err: errors.New("a deadlock elsewhere")},
		&engine.Fault{Class: engine.ClassUnknown, Err: errors.New("a connection broken elsewhere")},
		&engine.Fault{Class: engine.ClassRetryable, Err: context.DeadlineExceeded},
		driver.ErrBadConn,
		sql.ErrConnDone,
		sql.ErrTxDone,
		io.ErrUnexpectedEOF,
		engine.ErrBusy,
		engine.ErrUnknownOutcome,
	}
}

func codeElsewhereInTx(e *env, begin func() *Tx) {
	h := e.openCode()
	ctx := e.Context()
	tx := begin()
	e.must(e.orderInEffect(ctx, tx.Tx, "before"))
	for _, cause := range elsewhere() {
		h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			if err := e.orderInEffect(ctx, tx, "inner"); err != nil {
				return err
			}
			return fmt.Errorf("posting: %w", cause)
		}
		if _, err := e.m.In(tx.Tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"}); !errors.Is(err, cause) {
			e.Errorf("%v: the error is %v", cause, err)
		}
		got, err := e.m.In(tx.Tx).Get(ctx, "t")
		e.must(err)
		if got.State != "open" || got.Version != 1 {
			e.Errorf("%v: after the failed effect the row is %+v", cause, got)
		}
		if _, err := e.machines["order"].In(tx.Tx).Get(ctx, "inner"); !errors.Is(err, engine.ErrNotFound) {
			e.Errorf("%v: what the effect made: %v, want ErrNotFound", cause, err)
		}
	}
	h.effect = nil
	_, err := e.m.In(tx.Tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"})
	e.must(err)
	e.must(tx.Commit())
	e.wantOrder("before", true)
	e.wantOrder("inner", false)
	e.wantRow("t", "done", 2)
}

// codeElsewhere: nothing of the unit was applied, so the engine runs it again, whichever
// database stood in the way. An outcome that is unknown elsewhere is not tried twice.
func codeElsewhere(e *env) {
	h := e.openCode()
	for _, cause := range elsewhere() {
		var f *engine.Fault
		if !errors.As(cause, &f) { // what a driver says, each dialect reads by itself
			continue
		}
		runs := int64(1)
		if f.Class == engine.ClassRetryable && !errors.Is(cause, context.DeadlineExceeded) {
			runs = 2
		}
		before := h.effects.Load()
		h.effect = func(ctx context.Context, tx engine.Tx, _ engine.Event) error {
			if h.effects.Load() > before+1 {
				return nil
			}
			return errors.Join(e.orderInEffect(ctx, tx, "inner"), cause)
		}
		_, err := e.m.Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
		if h.effects.Load() != before+runs || (err == nil) != (runs == 2) || (err != nil && !errors.Is(err, cause)) {
			e.Errorf("%v: the effect ran %d times, the error is %v; want %d runs", cause, h.effects.Load()-before, err, runs)
		}
		if e.wantOrder("inner", false); err == nil {
			e.apply("undo", "t", nil)
		}
	}
}

func codeAfterInTx(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	h := e.openCode()
	for _, commit := range []bool{false, true} {
		tx := e.begin(e.h.Features.Forms[0], 0)
		res, err := e.m.In(tx.Tx).Fire(e.Context(), "settle", "t", engine.Args{"note": "n"})
		e.must(err)
		e.wantRuns(h, h.guards.Load(), h.effects.Load(), 0)
		if !commit {
			e.must(tx.Rollback())
			continue
		}
		e.must(tx.Commit())
		e.must(res.AfterCommit(e.Context()))
		e.wantRuns(h, 2, 2, 1)
		e.must(res.AfterCommit(e.Context())) // at most once
		e.wantRuns(h, 2, 2, 1)
	}
	e.apply("undo", "t", nil)
	e.must(e.eng.InTx(e.Context(), func(ctx context.Context, tx engine.Tx) error {
		if _, err := e.m.In(tx).Fire(ctx, "settle", "t", engine.Args{"note": "n"}); err != nil {
			return err
		}
		if h.afters.Load() != 1 {
			return errors.New("after ran before COMMIT")
		}
		return nil
	}))
	e.wantRuns(h, 3, 3, 2)
}

func codeEffectWithoutIn(e *env) {
	h := e.openCode()
	h.effect = func(ctx context.Context, _ engine.Tx, _ engine.Event) error {
		_, err := e.machines["order"].Create(ctx, engine.Row{"id": "o", "amount": 1})
		return err
	}
	e.within(e.h.Features.Wait, "an effect that calls without In", func(ctx context.Context) {
		_, err := e.m.Fire(ctx, "settle", "t", engine.Args{"note": "n"})
		if !errors.Is(err, engine.ErrBusy) || !contains(err.Error(), "In(tx)") {
			e.Errorf("the effect's error is %v", err)
		}
	})
	e.wantOrder("o", false)
	e.wantRow("t", "open", 1)
}
