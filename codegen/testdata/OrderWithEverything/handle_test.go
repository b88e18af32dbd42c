package order

import (
	"context"
	"errors"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// applies is a store in which every CAS applies: version 7 becomes 8.
type applies struct{ engine.Table }

func (applies) Bind(context.Context, *engine.Rules) (engine.Table, error) { return applies{}, nil }
func (applies) Transact(ctx context.Context, fn func(context.Context, engine.Tx) error) error {
	return fn(ctx, nil)
}
func (applies) Marked(context.Context) bool           { return false }
func (applies) CanonicalID(id string) (string, error) { return id, nil }
func (applies) Apply(_ context.Context, _ engine.Tx, call *engine.Call) (engine.Change, error) {
	if call.Version != 0 && call.Version != 7 {
		return engine.Change{}, &engine.Fault{Err: errors.New("not the version of the handle")}
	}
	return engine.Change{OK: true, From: 0, To: 1, Version: 8}, nil
}

func (applies) Get(context.Context, engine.Tx, string) (engine.RowState, bool, error) {
	return engine.RowState{ID: "o", State: 0, Version: 7, Values: []any{int64(5), "EUR", nil, "ref"}}, true, nil
}

func machine(t testing.TB) *Machine {
	eng, err := engine.New(applies{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(context.Background(), eng)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHandleKnowsItsRow(t *testing.T) {
	ctx := context.Background()
	h, err := machine(t).Load(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	pending, ok := h.(OrderPending)
	if !ok {
		t.Fatalf("loaded a %T", h)
	}
	row, err := pending.Get(ctx)
	if err != nil || row.ID != "o" || row.Status != StatePending || row.Version != 7 || row.Amount != 5 || row.Currency != "EUR" || row.PaidAt != nil || *row.PaymentRef != "ref" {
		t.Errorf("row %+v, %v", row, err)
	}
	if r := pending.Result(); r.ID != "o" || r.State != StatePending || r.Version != 7 {
		t.Errorf("result %+v", r)
	}
	paid, err := pending.Pay(ctx, PayArgs{Amount: 5}, engine.WithVersion(99))
	if err != nil {
		t.Fatal(err) // the version of the handle goes before one of the caller's
	}
	if r := paid.Result(); r.State != StatePaid || r.From != StatePending || r.Version != 8 || r.Outcome != engine.Applied {
		t.Errorf("result %+v", r)
	}
	if r := pending.Result(); r.State != StatePending || r.Version != 7 {
		t.Errorf("the first handle changed: %+v", r)
	}
	_, err = paid.Get(ctx)
	var e *engine.Error
	if !errors.Is(err, engine.ErrConflict) || !errors.As(err, &e) || e.Machine != "order" || e.ID != "o" || e.State != "pending" || e.Version != 7 || len(e.Allowed) == 0 {
		t.Errorf("a row of another version is %+v: %v", e, err)
	}
}

func TestHandleLeavesTheCallersOptionsAlone(t *testing.T) {
	ctx := context.Background()
	h, err := machine(t).Load(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	opts := make([]engine.CallOption, 1, 4)
	opts[0] = engine.WithActor("me")
	if _, err := h.(OrderPending).Pay(ctx, PayArgs{}, opts...); err != nil {
		t.Fatal(err)
	}
	if opts[:2][1] != nil {
		t.Error("the handle wrote into the caller's slice")
	}
}

func TestHandleAllocatesNoMoreThanTheCall(t *testing.T) {
	ctx := context.Background()
	m := machine(t)
	h, err := m.Load(ctx, "o")
	if err != nil {
		t.Fatal(err)
	}
	pending := h.(OrderPending)
	args := PayArgs{Amount: 5, PaymentRef: "ref"}
	plain := testing.AllocsPerRun(200, func() {
		if _, err := m.Pay(ctx, "o", args, engine.WithVersion(7)); err != nil {
			t.Error(err)
		}
	})
	handle := testing.AllocsPerRun(200, func() {
		if _, err := pending.Pay(ctx, args); err != nil {
			t.Error(err)
		}
	})
	if handle > plain {
		t.Errorf("the handle allocates %v times, the plain call %v", handle, plain)
	}
}

func TestCanIsPure(t *testing.T) {
	o := Order{ID: "o", Status: StatePending, Version: 7}
	args := PayArgs{Amount: 5}
	if err := CanPay(o, args); err != nil {
		t.Error(err)
	}
	if err := CanPay(o, PayArgs{Amount: 5, Token: "\x00"}); !errors.Is(err, engine.ErrInvalidArgs) {
		t.Errorf("CanPay with a token that no column holds: %v", err)
	}
	o.Status = StateCancelled
	var e *engine.Error
	if err := CanPay(o, args); !errors.Is(err, engine.ErrNotAllowed) || !errors.As(err, &e) || e.State != "cancelled" || e.Version != 7 {
		t.Errorf("CanPay of a cancelled order: %v", err)
	}
	o.Status = StatePaid
	if err := CanCancel(o, CancelArgs{}); err != nil {
		t.Error(err)
	}
}

func TestGroups(t *testing.T) {
	if !StatePending.In(GroupOpen) || !StatePaid.In(GroupOpen) || StateShipped.In(GroupOpen) || StatePending.In("closed") {
		t.Error("the group open is pending and paid")
	}
}

func TestFSM(t *testing.T) {
	f, err := FSM(StatePaid)
	if err != nil || !f.Can("ship") || f.Can("pay") {
		t.Errorf("the machine in state paid: %v", err)
	}
	if _, err := FSM("nowhere"); err == nil {
		t.Error("a machine in no state")
	}
}
