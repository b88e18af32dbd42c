package expr_test

import (
	"fmt"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// env is what an order's conditions may read.
func env() expr.Env {
	return expr.Env{
		Fields: []expr.Var{{Name: "amount", Type: expr.Int}, {Name: "paid_by", Type: expr.String, Nullable: true}},
		Args:   []expr.Var{{Name: "amount", Type: expr.Int}, {Name: "by", Type: expr.String}},
	}
}

func ExampleParseCondition() {
	_, problems := expr.ParseCondition("amont = args.amount", env())
	for _, p := range problems {
		fmt.Println(p.Offset, p.Rule, p.Message)
	}
	_, problems = expr.ParseCondition("amont == args.amount and paid_by != args.by", env())
	for _, p := range problems {
		fmt.Println(p.Offset, p.Rule, p.Message, "nearest:", p.Nearest)
	}
	_, problems = expr.ParseCondition("paid_by != args.by", env())
	fmt.Println(problems[0].Warning, problems[0].Message)
	// Output:
	// 6 expression-syntax "=" is not an operator; did you mean "=="?
	// 0 unknown-name there is no field "amont" nearest: amount
	// true != is not true while paid_by is nil; if it should be, say paid_by == nil or ...
}

func ExampleExpr_Explain() {
	e, _ := expr.ParseCondition("amount == args.amount", env())
	in := expr.Input{
		Field: func(string) any { return int64(9900) },
		Arg:   func(string) any { return int64(100) },
	}
	ok, err := e.Holds(in)
	fmt.Println(ok, err)
	fmt.Println(e.Explain(in))
	// Output:
	// false <nil>
	// amount == args.amount: amount is 9900, args.amount is 100
}

func ExampleExpr_Assign() {
	e, _ := expr.ParseAssignment("amount + args.amount", env(), expr.Var{Name: "amount", Type: expr.Int})
	in := expr.Input{
		Field: func(string) any { return int64(100) },
		Arg:   func(string) any { return int64(28) },
	}
	fmt.Println(e.Assign(in, expr.Limits{}))
	fmt.Println(e.Assign(in, expr.Limits{Min: -128, Max: 127}))
	// Output:
	// 128 <nil>
	// <nil> amount + args.amount: outside -128 to 127 (amount is 100, args.amount is 28)
}

func ExampleCoerce() {
	type currency string
	fmt.Println(expr.Coerce(expr.String, -1, currency("CNY")))
	fmt.Println(expr.Coerce(expr.Decimal, 2, "12.50"))
	fmt.Println(expr.Coerce(expr.Decimal, 2, "12.505"))
	fmt.Println(expr.Coerce(expr.Int, -1, 1.0))
	// Output:
	// CNY <nil>
	// 12.5 <nil>
	// <nil> more than 2 digits after the point
	// <nil> a float64, not an integer
}
