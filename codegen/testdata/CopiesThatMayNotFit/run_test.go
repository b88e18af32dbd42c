package bill

import (
	"errors"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// TestCanSaysWhatTheCallSays: also where nothing but a copy decides.
func TestCanSaysWhatTheCallSays(t *testing.T) {
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), eng)
	if err != nil {
		t.Fatal(err)
	}
	long := decimal.RequireFromString("1.234")
	price := func(args PriceArgs) (can func(Bill) error, fire func(string) error) {
		return func(o Bill) error { return CanPrice(o, args) },
			func(id string) error { _, err := m.Price(t.Context(), id, args); return err }
	}
	tests := []struct {
		name string
		want error
		can  func(Bill) error
		fire func(string) error
	}{
		{"take", engine.ErrRejected, CanTake, func(id string) error { _, err := m.Take(t.Context(), id); return err }},
		{"keep", nil, CanKeep, func(id string) error { _, err := m.Keep(t.Context(), id); return err }},
		{"close", engine.ErrNotAllowed, CanClose, func(id string) error { _, err := m.Close(t.Context(), id); return err }},
		{name: "price", want: engine.ErrRejected},
		{name: "price of a note with NUL", want: engine.ErrInvalidArgs},
		{name: "price that fits"},
	}
	tests[3].can, tests[3].fire = price(PriceArgs{Amount: long})
	tests[4].can, tests[4].fire = price(PriceArgs{Note: new("\x00")})
	tests[5].can, tests[5].fire = price(PriceArgs{Amount: decimal.RequireFromString("1.5")})
	for _, tt := range tests {
		if _, err := m.Create(t.Context(), NewBill{ID: tt.name, Exact: long}); err != nil {
			t.Fatal(err)
		}
		o, err := m.Get(t.Context(), tt.name)
		if err != nil {
			t.Fatal(err)
		}
		can, fired := tt.can(o), tt.fire(tt.name)
		if !errors.Is(can, tt.want) || !errors.Is(fired, tt.want) {
			t.Errorf("%s: Can says %v and the call %v, want %v", tt.name, can, fired, tt.want)
		}
	}
}
