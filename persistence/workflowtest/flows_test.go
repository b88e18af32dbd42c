package workflowtest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shopspring/decimal"
)

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func refundFlow(t testing.TB) *flow {
	t.Helper()
	return &flow{
		def:  load(t, "refund_request"),
		rows: []map[string]any{{"amount": nil, "details": nil}},
		calls: []call{
			{transition: "refund", args: map[string]any{"amount": dec("10")}},
			{transition: "refund", args: map[string]any{"amount": dec("100"), "details": json.RawMessage(`{"a":1,"b":[2]}`)}},
			{transition: "charge_back", args: map[string]any{"amount": dec("10")}, key: "bank"},
		},
	}
}

func orderPaymentFlow(t testing.TB) *flow {
	t.Helper()
	return &flow{
		def:     load(t, "order_payment"),
		meaning: meanings{"paid_cents + args.cents": func(v view) (any, error) { return sum(v.int("paid_cents"), v.arg("cents")) }},
		rows:    []map[string]any{{"paid_cents": int64(0)}},
		calls: []call{
			{transition: "partially_pay", args: map[string]any{"cents": int64(250)}},
			{transition: "partially_pay", args: map[string]any{"cents": int64(-7)}},
		},
	}
}

func acceptanceFlow(t testing.TB) *flow {
	t.Helper()
	return &flow{
		def: load(t, "acceptance"),
		rows: []map[string]any{
			{"eligible": false, "doubtful": false},
			{"eligible": false, "doubtful": true},
			{"eligible": true, "doubtful": false},
			{"eligible": true, "doubtful": true},
		},
	}
}

func paymentIntentFlow(t testing.TB) *flow {
	t.Helper()
	is := func(outcome string) meaning {
		return means(func(v view) bool { return v.args["outcome"] == outcome })
	}
	f := &flow{
		def: load(t, "payment_intent"),
		meaning: meanings{
			"args.outcome == 'action'": is("action"), "args.outcome == 'async'": is("async"),
			"args.outcome == 'manual'": is("manual"), "args.outcome == 'done'": is("done"),
		},
		rows: []map[string]any{{"outcome": nil, "reason": nil}},
	}
	for _, outcome := range []string{"action", "async", "manual", "done", "?"} {
		f.calls = append(f.calls, call{transition: "confirm", args: map[string]any{"outcome": outcome}})
	}
	for _, outcome := range []string{"async", "manual", "done"} {
		f.calls = append(f.calls, call{transition: "action_done", args: map[string]any{"outcome": outcome}})
	}
	return f
}

func alipayFlow(t testing.TB) *flow {
	t.Helper()
	refunded := func(v view) decimal.Decimal {
		return v.row["refunded"].(decimal.Decimal).Add(v.args["amount"].(decimal.Decimal))
	}
	return &flow{
		def: load(t, "alipay_trade"),
		meaning: meanings{
			"refunded + args.amount": means(refunded),
			"args.amount > 0 and refunded + args.amount < total": means(func(v view) bool {
				return v.args["amount"].(decimal.Decimal).IsPositive() && refunded(v).LessThan(v.row["total"].(decimal.Decimal))
			}),
		},
		rows: []map[string]any{{"total": dec("100"), "refunded": dec("0")}, {"total": dec("100"), "refunded": dec("99.99")}},
		calls: []call{
			{transition: "refund_part", args: map[string]any{"amount": dec("0.01"), "request": "r-1"}},
			{transition: "refund_part", args: map[string]any{"amount": dec("60"), "request": "r-2"}},
			{transition: "refund_part", args: map[string]any{"amount": dec("60"), "request": "r-1"}},
			{transition: "refund_part", args: map[string]any{"amount": dec("-1"), "request": "r-3"}},
		},
	}
}

func fulfillmentFlow(t testing.TB) *flow {
	t.Helper()
	return &flow{
		def: load(t, "fulfillment_order"),
		meaning: meanings{
			"holds + 1":  func(v view) (any, error) { return sum(v.int("holds"), 1) },
			"holds - 1":  func(v view) (any, error) { return sum(v.int("holds"), -1) },
			"holds <= 1": means(func(v view) bool { return v.int("holds") <= 1 }),
			"fulfill_at <= now()": means(func(v view) bool {
				at, ok := v.row["fulfill_at"].(time.Time)
				return ok && !at.After(v.now)
			}),
		},
		rows: []map[string]any{
			{"holds": int64(0), "fulfill_at": nil},
			{"holds": int64(2), "fulfill_at": start},
			{"holds": int64(1), "fulfill_at": start.Add(time.Microsecond)},
		},
		calls: []call{
			{transition: "hold", args: map[string]any{"hold_id": "h-1"}},
			{transition: "hold", args: map[string]any{"hold_id": "h-2"}},
			{transition: "release_hold", args: map[string]any{"hold_id": "h-1"}},
			{transition: "release_hold", args: map[string]any{"hold_id": "h-2"}},
			{transition: "reschedule", args: map[string]any{"at": start.Add(-time.Hour)}},
			{transition: "reschedule", args: map[string]any{"at": start.Add(time.Hour)}},
		},
	}
}

// TestMatrix tries every transition in every state of the six workflows.
func TestMatrix(t *testing.T) {
	for _, f := range []*flow{refundFlow(t), orderPaymentFlow(t), acceptanceFlow(t), paymentIntentFlow(t), alipayFlow(t), fulfillmentFlow(t)} {
		t.Run(f.def.Name, func(t *testing.T) {
			onEach(t, kinds(), func(s *site) { runMatrix(s, f) }, f.def)
		})
	}
}

// TestMatrixOfTwoMachines does it for the machine that owns the row of two.
func TestMatrixOfTwoMachines(t *testing.T) {
	for _, names := range [][2]string{{"reception", "acceptance"}, {"order_shipping", "order_payment"}} {
		first, second := load(t, names[0]), load(t, names[1])
		f := &flow{def: first, rows: []map[string]any{{}}}
		t.Run(first.Name, func(t *testing.T) {
			onEach(t, kinds(), func(s *site) { runMatrix(s, f) }, first, second)
		})
	}
}
