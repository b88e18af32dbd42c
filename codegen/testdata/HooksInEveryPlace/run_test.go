package settlement

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// recorded are hooks that write down what they are told.
type recorded struct {
	m     *Machine
	limit int64
	said  []string
	last  HookEvent
}

func (r *recorded) RiskCleared(_ context.Context, e HookEvent) error {
	if e.Result.Outcome != 0 || e.Result.ID != "" {
		return errors.New("a guard was given a result")
	}
	if e.Row.Amount > r.limit {
		return errTooMuch
	}
	r.said = append(r.said, "guard "+string(e.Transition))
	return nil
}

var (
	errTooMuch = errors.New("too much")
	note       = json.RawMessage(`{}`)
)

// PostLedger writes: it opens a settlement of the rest in the same transaction.
func (r *recorded) PostLedger(ctx context.Context, tx engine.Tx, e HookEvent) error {
	args, ok := e.Args.(SettleArgs)
	if !ok || e.Result.State != StateSettled || e.Row.Status != StateOpen {
		return errors.New("the effect was told something else")
	}
	r.said = append(r.said, "effect "+string(e.Transition))
	rest := e.Row.Amount - args.Amount
	if rest < 0 {
		return errors.New("more than there is")
	}
	_, err := r.m.In(tx).Create(ctx, NewSettlement{ID: e.Row.ID + "-rest", Amount: rest})
	return err
}

func (r *recorded) NotifyCustomer(_ context.Context, e HookEvent) error {
	r.said, r.last = append(r.said, "after "+string(e.Transition)), e
	if e.Transition == TransitionPay {
		return errors.New("the mail server is down")
	}
	return nil
}

func settle(t *testing.T, limit int64) (*Machine, *recorded) {
	t.Helper()
	ctx := context.Background()
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	hooks := &recorded{limit: limit}
	if hooks.m, err = New(ctx, eng, hooks); err != nil {
		t.Fatal(err)
	}
	if _, err := hooks.m.Create(ctx, NewSettlement{ID: "s", Amount: 10}); err != nil {
		t.Fatal(err)
	}
	return hooks.m, hooks
}

func TestHooksRunInTheirPlaces(t *testing.T) {
	ctx := context.Background()
	m, hooks := settle(t, 10)
	by := "me"
	res, err := m.Settle(ctx, "s", SettleArgs{Amount: 4, By: &by, Note: json.RawMessage(`{"a":1}`)})
	if err != nil || res.Outcome != engine.Applied || res.AfterErr != nil {
		t.Fatal(res, err)
	}
	args, ok := hooks.last.Args.(SettleArgs)
	if !ok || args.Amount != 4 || *args.By != "me" || string(args.Note) != `{"a":1}` || hooks.last.Row.Version != 1 || hooks.last.Result.Version != 2 {
		t.Errorf("after was told %+v", hooks.last)
	}
	if rest, err := m.Get(ctx, "s-rest"); err != nil || rest.Amount != 6 || rest.Status != StateOpen {
		t.Errorf("the effect wrote %+v, %v", rest, err)
	}
	res, err = m.Pay(ctx, "s")
	if err != nil || res.State != StatePaid || res.AfterErr == nil || !strings.Contains(res.AfterErr.Error(), "the mail server is down") {
		t.Errorf("pay: %+v, %v: a failed after is reported beside what is committed", res, err)
	}
	if hooks.last.Args != nil {
		t.Errorf("a transition without args has %v", hooks.last.Args)
	}
	want := "guard settle, effect settle, after settle, guard pay, after pay"
	if got := strings.Join(hooks.said, ", "); got != want {
		t.Errorf("hooks ran as %s, want %s", got, want)
	}
}

func TestGuardVetoes(t *testing.T) {
	ctx := context.Background()
	m, hooks := settle(t, 9)
	_, err := m.Settle(ctx, "s", SettleArgs{Amount: 4, Note: note})
	if !errors.Is(err, engine.ErrRejected) || !errors.Is(err, errTooMuch) {
		t.Errorf("a veto is %v", err)
	}
	if row, err := m.Get(ctx, "s"); err != nil || row.Status != StateOpen || row.Version != 1 || len(hooks.said) != 0 {
		t.Errorf("after a veto: %+v, %v, %v", row, err, hooks.said)
	}
}

func TestEffectUndoes(t *testing.T) {
	ctx := context.Background()
	m, hooks := settle(t, 10)
	if _, err := m.Settle(ctx, "s", SettleArgs{Amount: 11, Note: note}); err == nil || !strings.Contains(err.Error(), "more than there is") {
		t.Errorf("a failed effect is %v", err)
	}
	if row, err := m.Get(ctx, "s"); err != nil || row.Status != StateOpen || row.Version != 1 {
		t.Errorf("after a failed effect: %+v, %v", row, err)
	}
	if got := strings.Join(hooks.said, ", "); got != "guard settle, effect settle" {
		t.Errorf("hooks ran as %s", got)
	}
}

func TestHooksThroughHandles(t *testing.T) {
	ctx := context.Background()
	m, hooks := settle(t, 10)
	h, err := m.Load(ctx, "s")
	if err != nil {
		t.Fatal(err)
	}
	settled, err := h.(SettlementOpen).Settle(ctx, SettleArgs{Amount: 4, Note: note})
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.(SettlementOpen).Settle(ctx, SettleArgs{Amount: 4, Note: note})
	if err != nil || again.Result().Outcome != engine.AlreadyReached || len(hooks.said) != 3 {
		t.Errorf("a duplicate: %+v, %v, after %v", again.Result(), err, hooks.said)
	}
	if _, err := settled.Pay(ctx); err != nil {
		t.Error(err)
	}
}

func TestNewWantsHooks(t *testing.T) {
	eng, err := engine.New(memory.New())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(context.Background(), eng, nil); err == nil || !strings.Contains(err.Error(), "hooks is nil") {
		t.Errorf("New without hooks: %v", err)
	}
}
