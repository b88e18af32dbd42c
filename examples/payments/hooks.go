package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/payments/payment"
)

var errTooRisky = errors.New("the amount is over the limit of the risk department")

// hooks is the Go code that payment.yaml names.
type hooks struct {
	out    io.Writer
	ledger *ledger
	limit  int64
}

var _ payment.Hooks = (*hooks)(nil)

// RiskCleared guards settle: it reads the row, and its error refuses the transition.
func (h *hooks) RiskCleared(_ context.Context, e payment.HookEvent) error {
	if e.Row.Amount > h.limit {
		return errTooRisky
	}
	return nil
}

// PostLedger runs in the transaction that moves the payment: both happen, or neither.
func (h *hooks) PostLedger(ctx context.Context, tx engine.Tx, e payment.HookEvent) error {
	amount, reference := e.Row.Amount, ""
	switch args := e.Args.(type) {
	case payment.SettleArgs:
		reference = args.Reference
	case payment.RefundArgs:
		amount, reference = -amount, args.Reference
	}
	return h.ledger.post(ctx, tx, e.Row.ID, e.Row.Account, amount, reference)
}

// NotifyCustomer runs when the transition has committed. It is told at most once: what
// must never be lost is read from the journal instead, by its topic.
func (h *hooks) NotifyCustomer(_ context.Context, e payment.HookEvent) error {
	fmt.Fprintf(h.out, "  (mail to %s: payment %s is %s)\n", e.Row.Account, e.Row.ID, e.Result.State)
	return nil
}
