package order

import (
	"context"
	"errors"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// placed is a machine over an empty store, and the handle of a new order.
func placed(t *testing.T, ctx context.Context) (*Machine, OrderPending) {
	t.Helper()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	res, err := m.Create(ctx, NewOrder{ID: "o-1", Amount: 9900})
	if err != nil || res.ID != "o-1" || res.State != StatePending || res.Version != 1 || res.Outcome != engine.Applied {
		t.Fatalf("Create: %+v, %v", res, err)
	}
	return m, load[OrderPending](t, ctx, m)
}

func load[H Handle](t *testing.T, ctx context.Context, m *Machine) H {
	t.Helper()
	h, err := m.Load(ctx, "o-1")
	if err != nil {
		t.Fatal(err)
	}
	typed, ok := h.(H)
	if !ok {
		t.Fatalf("loaded a %T, want a %T", h, typed)
	}
	return typed
}

func TestLifeOfAnOrder(t *testing.T) {
	ctx := context.Background()
	m, pending := placed(t, ctx)
	args := PayArgs{Amount: 9900, PaymentRef: "wx-1", Token: "secret"}
	paid, err := pending.Pay(ctx, args, engine.WithActor("wx"))
	if err != nil {
		t.Fatal(err)
	}
	row, err := paid.Get(ctx)
	if err != nil || row.Status != StatePaid || row.Version != 2 || *row.PaymentRef != "wx-1" || row.PaidAt == nil || row.Currency != "CNY" {
		t.Errorf("row %+v, %v", row, err)
	}
	shipped, err := paid.Ship(ctx, engine.WithKey("s-1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := shipped.Complete(ctx); err != nil {
		t.Fatal(err)
	}
	entries, err := m.Journal(ctx, "o-1")
	if err != nil || len(entries) != 4 || entries[1].Actor != "wx" || entries[3].To != "completed" {
		t.Errorf("journal %+v, %v", entries, err)
	}
	if res, err := m.Pay(ctx, "o-1", args); err != nil || res.Outcome != engine.AlreadyPassed || res.State != StateCompleted {
		t.Errorf("a late duplicate: %+v, %v", res, err)
	}
	if err := m.Can(ctx, "o-1", TransitionCancel, nil); !errors.Is(err, engine.ErrNotAllowed) {
		t.Errorf("Can cancel: %v", err)
	}
	if _, err := m.Cancel(ctx, "o-2", CancelArgs{}); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("cancel of nothing: %v", err)
	}
	if _, err := m.Load(ctx, "o-2"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("load of nothing: %v", err)
	}
}

func TestHandleLosesToAnotherTransition(t *testing.T) {
	ctx := context.Background()
	m, pending := placed(t, ctx)
	reason := "changed my mind"
	if _, err := m.Cancel(ctx, "o-1", CancelArgs{Reason: &reason}); err != nil {
		t.Fatal(err)
	}
	paid, err := pending.Pay(ctx, PayArgs{Amount: 9900})
	if !errors.Is(err, engine.ErrConflict) || paid != (OrderPaid{}) {
		t.Errorf("Pay: %+v, %v, want a conflict", paid, err)
	}
	if row, err := pending.Get(ctx); err != nil || row.Status != StatePending || row.Version != 1 {
		t.Errorf("the handle says %+v, %v after a lost race", row, err)
	}
	now, err := pending.Load(ctx)
	if _, ok := now.(OrderCancelled); !ok || err != nil || now.Result().Version != 2 {
		t.Errorf("Load: %T, %v", now, err)
	}
}

func TestHandleLosesToTheSameTransition(t *testing.T) {
	ctx := context.Background()
	m, pending := placed(t, ctx)
	if _, err := m.Pay(ctx, "o-1", PayArgs{Amount: 9900}); err != nil {
		t.Fatal(err)
	}
	paid, err := pending.Pay(ctx, PayArgs{Amount: 9900})
	if err != nil || paid.Result().Outcome != engine.AlreadyReached {
		t.Fatalf("Pay: %+v, %v, want AlreadyReached", paid.Result(), err)
	}
	if _, err := paid.Ship(ctx, engine.WithKey("s-1")); err != nil {
		t.Errorf("the handle behind a duplicate is of no use: %v", err)
	}

	// By now the row has left the state: the handle is of the version that was in it.
	late, err := pending.Pay(ctx, PayArgs{Amount: 9900})
	if err != nil || late.Result().Outcome != engine.AlreadyPassed || late.Result().State != StateShipped {
		t.Fatalf("Pay: %+v, %v, want AlreadyPassed", late.Result(), err)
	}
	if _, err := late.Get(ctx); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("Get of a version that is gone: %v", err)
	}
	if _, err := late.Cancel(ctx, CancelArgs{}); !errors.Is(err, engine.ErrConflict) {
		t.Errorf("Cancel at a version that is gone: %v", err)
	}
	again, err := late.Ship(ctx, engine.WithKey("s-1"))
	if err != nil || again.Result().Outcome != engine.Replayed {
		t.Errorf("Ship under its key: %+v, %v", again.Result(), err)
	}
}

func TestHandleInTransaction(t *testing.T) {
	ctx := context.Background()
	store := memory.New()
	eng, err := engine.New(store)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(ctx, NewOrder{ID: "o-1"}); err != nil {
		t.Fatal(err)
	}
	pending := load[OrderPending](t, ctx, m)
	undo := errors.New("undo")
	err = eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
		paid, err := pending.In(tx).Pay(ctx, PayArgs{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := paid.Ship(ctx, engine.WithKey("s-1")); err != nil { // bound to tx as well
			t.Fatal(err)
		}
		if row, err := m.In(tx).Get(ctx, "o-1"); err != nil || row.Status != StateShipped {
			t.Errorf("inside: %+v, %v", row, err)
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if row, err := m.Get(ctx, "o-1"); err != nil || row.Status != StatePending {
		t.Errorf("after ROLLBACK: %+v, %v", row, err)
	}
}
