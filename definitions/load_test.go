package definitions

import (
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

const orderYAML = `machine: order
doc: An order from checkout to delivery.
table:
  name: orders
fields:
  amount:      {type: int, doc: Total in cents.}
  currency:    {type: string, default: CNY}
  payment_ref: {type: string, nullable: true}
  paid_at:     {type: time, nullable: true}
initial: pending
create: {emit: order.created}
states:
  pending:   {timeout: {after: 30m, fire: expire}}
  paid:
  shipped:
  completed: {final: true}
  cancelled: {final: true}
  expired:   {final: true}
groups: {open: [pending, paid]}
transitions:
  pay:
    doc: The payment provider confirmed the charge.
    from: pending
    to: paid
    args: {amount: int, payment_ref: string}
    set: {payment_ref: args.payment_ref, paid_at: now()}
    emit: order.paid
  ship:     {from: paid, to: shipped}
  complete: {from: shipped, to: completed}
  cancel:   {from: [pending, paid], to: cancelled, args: {reason: "string?"}}
  expire:   {from: pending, to: expired}
journal: true
`

func TestParse(t *testing.T) {
	m, err := Parse("dir/order.yaml", []byte(orderYAML))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "order" || m.Source != "order.yaml" || m.Package() != "order" || m.Create.Emit != "order.created" {
		t.Errorf("%+v", m)
	}
	if m.Table != (Table{"orders", Column{"id", expr.String}, Column{"status", expr.String}, "version"}) {
		t.Errorf("Table = %+v", m.Table)
	}
	pending, _ := m.State("pending")
	if pending.Timeout == nil || pending.Timeout.After != 30*time.Minute || pending.Timeout.Fire != "expire" {
		t.Errorf("pending = %+v", pending)
	}
	pay, _ := m.Transition("pay")
	if pay.Duplicates != DuplicatesAccept || pay.DuplicatesSaid || len(pay.Set) != 2 || pay.Set[0].Field != "paid_at" {
		t.Errorf("pay = %+v", pay)
	}
	cancel, _ := m.Transition("cancel")
	if reason, ok := cancel.Arg("reason"); !ok || !reason.Optional || reason.Type != expr.String {
		t.Errorf("reason = %+v", reason)
	}
	currency, _ := m.Field("currency")
	if currency.Default == nil || currency.Default.Value != "CNY" || currency.Scale != -1 || currency.Column != "currency" {
		t.Errorf("currency = %+v", currency)
	}
}

// TestSetNull: NULL is written null, in whatever quotes; nothing and ~ are not it.
func TestSetNull(t *testing.T) {
	for text, legal := range map[string]bool{
		"null": true, `"null"`: true, "'nil'": true, "nil": true, "": false, "~": false, "Null": false, "NULL": false,
	} {
		_, err := Parse("x.yaml", []byte(strings.Replace(orderYAML, "paid_at: now()", "paid_at: "+text, 1)))
		if (err == nil) != legal {
			t.Errorf("set: {paid_at: %s}: %v", text, err)
		}
	}
}

// TestFloatDefault: a default that no float is exactly is a finding, as it is in an
// expression.
func TestFloatDefault(t *testing.T) {
	for text, want := range map[string]string{"0.1": "", "9007199254740992": "", "9007199254740993": "7:36 bad-default", "1e-400": "7:36 bad-default"} {
		var rules []string
		if want != "" {
			rules = []string{want}
		}
		check(t, []byte(small+"fields: {f: {type: float, default: "+text+"}}\n"), rules...)
	}
}
