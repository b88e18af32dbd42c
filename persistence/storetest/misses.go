package storetest

import (
	"context"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func missChecks() []check {
	return []check{
		{name: "a miss writes nothing and leaves no lock", run: missLeavesNoLock},
		{name: "a miss inside a transaction leaves nothing after it", run: missInTx},
		{name: "a write beside the engine is not blocked by an answered call", run: missHolder},
	}
}

// misses are calls on order row o that change nothing: o is paid, key k was used.
func misses() map[string]func(ctx context.Context, m *engine.Machine) error {
	fire := func(transition, id string, args engine.Args, opts ...engine.CallOption) func(context.Context, *engine.Machine) error {
		return func(ctx context.Context, m *engine.Machine) error {
			_, err := m.Fire(ctx, transition, id, args, opts...)
			return err
		}
	}
	pay := engine.Args{"payment_ref": "x"}
	return map[string]func(context.Context, *engine.Machine) error{
		"not allowed":       fire("complete", "o", nil),
		"not found":         fire("pay", "nobody", pay),
		"conflict":          fire("ship", "o", nil, engine.WithVersion(1)),
		"conflict, sources": fire("cancel", "o", nil, engine.WithVersion(9)),
		"already reached":   fire("pay", "o", pay),
		"replayed":          fire("pay", "o", pay, engine.WithKey("k")),
		"key reused":        fire("ship", "o", nil, engine.WithKey("k")),
		"created already": func(ctx context.Context, m *engine.Machine) error {
			_, err := m.Create(ctx, engine.Row{"id": "o", "amount": 1})
			return err
		},
		"mismatch": func(ctx context.Context, m *engine.Machine) error {
			_, err := m.Create(ctx, engine.Row{"id": "o", "amount": 2})
			return err
		},
	}
}

func (e *env) openPaid() {
	e.Helper()
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
}

// writeBeside writes the row from another connection, which must not have to wait.
func (e *env) writeBeside(after string) {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), 2*time.Second)
	defer cancel()
	begun := time.Now()
	if err := e.b.Update(ctx, e.m.Definition(), "o", engine.Row{"amount": 1}); err != nil {
		e.Fatalf("after %s: another connection cannot write the row: %v", after, err)
	}
	if took := time.Since(begun); took > 500*time.Millisecond { // 100 ms, on a machine with nothing else to do
		e.Errorf("after %s: another connection waited %v", after, took)
	}
}

func missLeavesNoLock(e *env) {
	e.openPaid()
	for name, call := range misses() {
		_ = call(e.Context(), e.m)
		if n := e.b.InUse(); n != 0 {
			e.Errorf("%s: %d connections in use", name, n)
		}
		e.writeBeside(name)
	}
	e.wantRow("o", "paid", 2)
	e.wantJournal("o", "", "pay")
}

func missInTx(e *env) {
	e.need(len(e.h.Features.Forms) > 0, "transactions of a caller's own")
	e.openPaid()
	for name, call := range misses() {
		tx := e.begin(e.h.Features.Forms[0], 0)
		_ = call(e.Context(), e.m.In(tx.Tx))
		e.must(tx.Commit())
		e.writeBeside(name)
	}
	e.wantRow("o", "paid", 2)
	e.wantJournal("o", "", "pay")
}

func missHolder(e *env) {
	e.openPaid()
	e.apply("ship", "o", nil)
	e.writeBeside("an applied transition")
	_, err := e.m.Get(e.Context(), "o")
	e.must(err)
	e.writeBeside("Get")
	e.must(e.m.Can(e.Context(), "o", "complete", nil))
	e.writeBeside("Can")
	e.entries("o")
	e.writeBeside("Journal")
}
