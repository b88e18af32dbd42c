package ticket

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

func TestIntID(t *testing.T) {
	ctx := context.Background()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{1, -7, math.MaxInt64, math.MinInt64} {
		res, err := m.Create(ctx, NewTicket{ID: id})
		if err != nil || res.ID != id {
			t.Fatalf("Create(%d): %+v, %v", id, res, err)
		}
		h, err := m.Load(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		closed, err := h.(TicketOpen).Close(ctx, CloseArgs{})
		if err != nil || closed.Result().ID != id {
			t.Errorf("Close(%d): %+v, %v", id, closed.Result(), err)
		}
		if row, err := closed.Get(ctx); err != nil || row.ID != id || row.Status != StateClosed || row.Owner != "" {
			t.Errorf("row %+v, %v", row, err)
		}
	}
	o := Ticket{ID: 12345, Status: StateOpen, Version: 3}
	if n := testing.AllocsPerRun(100, func() { _ = CanHold(o) }); n != 0 {
		t.Errorf("CanHold allocates %v times", n)
	}
	o.Status = StateClosed
	var e *engine.Error
	if err := CanHold(o); !errors.As(err, &e) || e.ID != "12345" {
		t.Errorf("CanHold of a closed ticket: %v", err)
	}
}
