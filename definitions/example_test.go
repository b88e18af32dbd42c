package definitions_test

import (
	"errors"
	"fmt"

	"github.com/fsmgen/fsmgen/definitions"
)

const order = `machine: order
table: {name: orders}
initial: pending
states:
  pending:
  paid:
  shipped: {final: true}
transitions:
  pay:  {from: pending, to: paid}
  ship: {from: paid, to: shipped}
`

func ExampleParse() {
	m, err := definitions.Parse("order.yaml", []byte(order))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range m.Transitions {
		fmt.Println(t.Name, t.Moves[0].From, t.Moves[0].Targets[0].State)
	}
	// Output:
	// pay [pending] paid
	// ship [paid] shipped
}

func ExampleProblems() {
	_, err := definitions.Parse("order.yaml", []byte(order+"  cancel: {from: pendng, to: paid, emitt: x}\n"))
	var problems definitions.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			fmt.Println(p.Line, p.Rule, p.Name, p.Nearest)
		}
	}
	// Output:
	// 11 unknown-state pendng pending
	// 11 unknown-key emitt emit
}

func ExampleMachine_PassedBy() {
	m, err := definitions.Parse("order.yaml", []byte(order))
	if err != nil {
		fmt.Println(err)
		return
	}
	pay, _ := m.Transition("pay")
	fmt.Println(m.PassedBy(pay))
	// Output: map[shipped:true]
}

func ExampleGoName() {
	for _, name := range []string{"payment_id", "WAIT_BUYER_PAY", "支付"} {
		fmt.Println(definitions.GoName(name))
	}
	fmt.Println("State" + definitions.GoSuffix("2fa-pending"))
	// Output:
	// PaymentID
	// WaitBuyerPay
	// X支付
	// State2faPending
}
