package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/payments/payment"
)

// story is one run of the example, and somebody who is told.
type story struct {
	io.Writer
	eng      *engine.Engine
	payments *payment.Machine
	hooks    *hooks
	run      string
}

// tell plays the scenes in order. Ids are new in every run, so that a kept database can
// be played on again.
func tell(ctx context.Context, s *story) error {
	s.run = rand.Text()[:6]
	for _, scene := range []func(context.Context) error{s.settled, s.refused, s.undone, s.transaction} {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) title(text string) { fmt.Fprintf(s, "\n— %s\n", text) }

// authorize makes a payment.
func (s *story) authorize(ctx context.Context, name string, amount int64) (id string, err error) {
	id = "pay-" + s.run + "-" + name
	_, err = s.payments.Create(ctx, payment.NewPayment{ID: id, Account: "ann", Amount: amount})
	return id, err
}

// stands says where a payment is, and holds its ledger to that.
func (s *story) stands(ctx context.Context, id string, state payment.State, postings int) error {
	row, err := s.payments.Get(ctx, id)
	if err != nil {
		return err
	}
	n, sum, err := s.hooks.ledger.booked(ctx, id)
	if err != nil {
		return err
	}
	fmt.Fprintf(s, "payment is %s, the ledger has %d postings of it, %d cents\n", row.Status, n, sum)
	if row.Status != state || n != postings {
		return fmt.Errorf("payment %s is %s with %d postings, want %s with %d", id, row.Status, n, state, postings)
	}
	return nil
}

func (s *story) settled(ctx context.Context) error {
	s.title("A payment is settled, and the acquirer's callback comes again")
	id, err := s.authorize(ctx, "a", 9_900)
	if err != nil {
		return err
	}
	for range 2 {
		res, err := s.payments.Settle(ctx, id, payment.SettleArgs{Reference: "acq-1"}, engine.WithKey("acq-1"))
		if err != nil {
			return err
		}
		fmt.Fprintf(s, "settle: %s\n", res.Outcome)
	}
	return s.stands(ctx, id, payment.StateSettled, 1)
}

func (s *story) refused(ctx context.Context) error {
	s.title("The guard refuses a payment that is too large")
	id, err := s.authorize(ctx, "b", 5_000_000)
	if err != nil {
		return err
	}
	_, err = s.payments.Settle(ctx, id, payment.SettleArgs{Reference: "acq-2"})
	if !errors.Is(err, engine.ErrRejected) || !errors.Is(err, errTooRisky) {
		return fmt.Errorf("the guard must refuse it, got: %w", err)
	}
	fmt.Fprintf(s, "settle: %v\n", err)
	return s.stands(ctx, id, payment.StateAuthorized, 0)
}

func (s *story) undone(ctx context.Context) error {
	s.title("The ledger fails, and takes the transition with it")
	id, err := s.authorize(ctx, "c", 700)
	if err != nil {
		return err
	}
	s.hooks.ledger.closed = true
	_, err = s.payments.Settle(ctx, id, payment.SettleArgs{Reference: "acq-3"})
	s.hooks.ledger.closed = false
	if !errors.Is(err, errClosed) {
		return fmt.Errorf("the ledger's error must come back, got: %w", err)
	}
	fmt.Fprintf(s, "settle: %v\n", err)
	if err := s.stands(ctx, id, payment.StateAuthorized, 0); err != nil {
		return err
	}
	if _, err := s.payments.Settle(ctx, id, payment.SettleArgs{Reference: "acq-3"}); err != nil {
		return err
	}
	return s.stands(ctx, id, payment.StateSettled, 1)
}

func (s *story) transaction(ctx context.Context) error {
	s.title("Settled and refunded in one transaction of the caller's own")
	id, err := s.authorize(ctx, "d", 1_200)
	if err != nil {
		return err
	}
	err = s.eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
		payments := s.payments.In(tx)
		if _, err := payments.Settle(ctx, id, payment.SettleArgs{Reference: "acq-4"}); err != nil {
			return err
		}
		if _, err := payments.Refund(ctx, id, payment.RefundArgs{Reference: "ref-4"}); err != nil {
			return err
		}
		fmt.Fprintln(s, "both are done, and nobody is told before COMMIT")
		return nil
	})
	if err != nil {
		return err
	}
	return s.stands(ctx, id, payment.StateRefunded, 2)
}
