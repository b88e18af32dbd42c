package sqlexpr_test

import (
	"fmt"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

func ExampleBuilder() {
	amount := expr.Var{Name: "amount", Type: expr.Int}
	env := expr.Env{Fields: []expr.Var{amount}, Args: []expr.Var{amount}}
	when, _ := expr.ParseCondition("amount == args.amount", env)
	paid, _ := expr.ParseAssignment("args.amount", env, amount)

	b := sqlexpr.New(sqlexpr.Postgres, map[string]sqlexpr.Column{"amount": {Name: `"amount"`, Type: expr.Int}})
	set := b.Set([]sqlexpr.Assignment{{Field: "amount", Value: paid}})
	st, err := b.Build("UPDATE orders SET " + set.Text + " WHERE id = " + b.Own(0) + " AND " + b.Condition(when))
	fmt.Println(st.Text, err)

	args := map[string]any{"amount": int64(9900)}
	fmt.Println(st.Bind(nil, sqlexpr.Binding{Arg: func(name string) any { return args[name] }, Own: []any{"o-1"}}))
	// Output:
	// UPDATE orders SET "amount" = CAST(CAST($1 AS bigint) AS bigint) WHERE id = $2 AND ("amount" = CAST($1 AS bigint)) <nil>
	// [9900 o-1]
}
