package lead

import (
	"context"
	"errors"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

func TestStatusOfANewRow(t *testing.T) {
	ctx := context.Background()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(ctx, eng)
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[State]State{"": StateImported, StateImported: StateImported, StateEntered: StateEntered} {
		res, err := m.Create(ctx, NewLead{ID: "l-" + string(status), Status: status})
		if err != nil || res.State != want {
			t.Errorf("Create in %q: %+v, %v", status, res, err)
		}
	}
	for _, status := range []State{StateWon, "nowhere"} {
		if _, err := m.Create(ctx, NewLead{ID: "x", Status: status}); !errors.Is(err, engine.ErrInvalidArgs) {
			t.Errorf("Create in %q: %v", status, err)
		}
	}
}
