package definitions

import (
	"os"
	"testing"
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

func TestSmoke(t *testing.T) {
	m, err := Parse("order.yaml", []byte(orderYAML))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout.Write(m.Canonical())
	t.Log(m.Hash(), m.Warnings)
	m2, err := Parse("order.yaml", m.Canonical())
	if err != nil {
		t.Fatal(err)
	}
	if string(m.Canonical()) != string(m2.Canonical()) || m.Hash() != m2.Hash() {
		t.Error("differ")
	}
}
