package codegen

import (
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

// withHooks is a machine that names Go code in every place.
func withHooks(t *testing.T) *definitions.Machine {
	t.Helper()
	m, err := definitions.Parse("settlement.yaml", []byte(`
machine: settlement
table: {name: settlements}
fields: {amount: {type: int}}
initial: open
states:
  open:
  settled:
  paid: {final: true}
transitions:
  settle: {from: open, to: settled, args: {amount: int, by: "string?", note: json}}
  pay: {from: settled, to: paid}
`))
	if err != nil {
		t.Fatal(err)
	}
	settle, _ := m.Transition("settle")
	settle.Guard, settle.Effect, settle.After = "risk_cleared", "post_ledger", "notify_customer"
	pay, _ := m.Transition("pay")
	pay.Guard, pay.After = "risk_cleared", "notify_customer"
	return m
}

func TestHooksCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	o := newOverlay(t)
	o.lay("testdata/hooks/settlement_fsm.go", generateOne(t, withHooks(t), Options{}))
	o.lay("testdata/hooks/use.go", []byte(`package settlement

import (
	"context"

	"github.com/fsmgen/fsmgen/engine"
)

type hooks struct{}

func (hooks) RiskCleared(_ context.Context, e HookEvent) error {
	_ = e.Row.Amount
	return nil
}

func (hooks) PostLedger(_ context.Context, _ engine.Tx, e HookEvent) error {
	_ = e.Args.(SettleArgs).Amount
	return nil
}

func (hooks) NotifyCustomer(_ context.Context, e HookEvent) error { return e.Result.AfterErr }

var _ Hooks = hooks{}
`))
	goCommand(t, "build", o.flag(), "./testdata/hooks")
}
