package review

import (
	"context"
	"errors"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
	"github.com/shopspring/decimal"
)

func TestBranchesGiveTheHandleOfTheState(t *testing.T) {
	ctx := context.Background()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	price := decimal.RequireFromString("12.50")
	if _, err := m.Create(ctx, NewReview{ID: "r", Required: 2, Price: &price}); err != nil {
		t.Fatal(err)
	}
	h, err := m.Load(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	first, ok := h.(ReviewInReview)
	if !ok {
		t.Fatalf("loaded a %T", h)
	}
	row, err := first.Get(ctx)
	if err != nil || !row.Price.Equal(price) || row.Round != 1 {
		t.Fatalf("row %+v, %v", row, err)
	}
	vote := ApproveArgs{Approver: "ann", Round: 2}
	if err := CanApprove(row, vote); !errors.Is(err, engine.ErrRejected) {
		t.Errorf("a vote of another round: %v", err)
	}
	if _, err := first.Approve(ctx, vote); !errors.Is(err, engine.ErrRejected) {
		t.Errorf("a vote of another round: %v", err)
	}
	vote.Round = 1
	if err := CanApprove(row, vote); err != nil {
		t.Error(err)
	}
	if h, err = first.Approve(ctx, vote); err != nil {
		t.Fatal(err)
	}
	second, ok := h.(ReviewInReview)
	if !ok || second.Result().Version != 2 {
		t.Fatalf("one vote of two led to a %T", h)
	}
	if h, err = second.Approve(ctx, vote); err != nil || h.Result().Outcome != engine.Replayed {
		t.Fatalf("the same vote again: %+v, %v", h, err)
	}
	if h, err = second.Approve(ctx, ApproveArgs{Approver: "bob", Round: 1}); err != nil {
		t.Fatal(err)
	}
	approved, ok := h.(ReviewApproved)
	if !ok {
		t.Fatalf("two votes of two led to a %T", h)
	}
	if h, err = approved.Refund(ctx, RefundArgs{Amount: 0}, engine.WithKey("k")); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.(ReviewReturnRequested); !ok {
		t.Fatalf("a refund of nothing led to a %T", h)
	}
}

// TestReplayThatLedElsewhere: the key belongs to a call that took another edge, so
// no handle of the expected type would be true.
func TestReplayThatLedElsewhere(t *testing.T) {
	ctx := context.Background()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(ctx, NewReview{ID: "r", Required: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Approve(ctx, "r", ApproveArgs{Approver: "ann", Round: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Refund(ctx, "r", RefundArgs{}, engine.WithKey("k")); err != nil {
		t.Fatal(err)
	}
	h, err := m.Load(ctx, "r")
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.(ReviewReturnRequested).Refund(ctx, RefundArgs{}, engine.WithKey("k"))
	var e *engine.Error
	if !errors.Is(err, engine.ErrConflict) || !errors.As(err, &e) || e.Transition != "refund" || e.ID != "r" || e.State != "return_requested" || e.Version != 3 {
		t.Errorf("got %+v, %v, want a conflict", e, err)
	}
	if row, err := m.Get(ctx, "r"); err != nil || row.Status != StateReturnRequested || row.ReturnOpenedAt == nil {
		t.Errorf("row %+v, %v", row, err)
	}
}
