package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
)

// story is one run of the example: an order, and somebody who is told.
type story struct {
	io.Writer
	orders *order.Machine
	id     string
}

// tell plays the scenes in order. Ids are new in every run, so that a kept database
// can be played on again.
func tell(ctx context.Context, out io.Writer, eng *engine.Engine, orders *order.Machine) error {
	s := &story{Writer: out, orders: orders, id: "order-" + rand.Text()[:6]}
	scenes := []func(context.Context) error{s.create, s.callbacks, s.late, s.race, s.illegal, s.transaction(eng), s.history}
	for _, scene := range scenes {
		if err := scene(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) title(text string) { fmt.Fprintf(s, "\n— %s\n", text) }

func (s *story) create(ctx context.Context) error {
	s.title("An order is created, and the same request comes again")
	for range 2 {
		res, err := s.orders.Create(ctx, order.NewOrder{ID: s.id, Amount: 9900})
		if err != nil {
			return err
		}
		fmt.Fprintf(s, "create %s: %s, now %s at version %d\n", s.id, res.Outcome, res.State, res.Version)
	}
	return nil
}

func (s *story) callbacks(ctx context.Context) error {
	s.title("The payment callback arrives a hundred times at once")
	var mu sync.Mutex
	var wg sync.WaitGroup
	outcomes := map[engine.Outcome]int{}
	var failed []error
	for range 100 {
		wg.Go(func() {
			res, err := s.orders.Pay(ctx, s.id, order.PayArgs{Amount: 9900, PaymentRef: "wx-1"}, engine.WithKey("wx-1"))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = append(failed, err)
				return
			}
			outcomes[res.Outcome]++
		})
	}
	wg.Wait()
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	entries, err := s.orders.Journal(ctx, s.id)
	if err != nil {
		return err
	}
	paid := 0
	for _, e := range entries {
		if e.Transition == string(order.TransitionPay) {
			paid++
		}
	}
	fmt.Fprintf(s, "100 calls, 100 successes: %d Applied, %d Replayed; the journal has %d payment\n", outcomes[engine.Applied], outcomes[engine.Replayed], paid)
	if outcomes[engine.Applied] != 1 || paid != 1 {
		return errors.New("the order was not paid exactly once")
	}
	return nil
}

func (s *story) late(ctx context.Context) error {
	s.title("It is shipped; then one more callback, late and without its key")
	res, err := s.orders.Ship(ctx, s.id, engine.WithActor("warehouse"))
	if err != nil {
		return err
	}
	fmt.Fprintf(s, "ship: %s, %s → %s\n", res.Outcome, res.From, res.To)
	res, err = s.orders.Pay(ctx, s.id, order.PayArgs{Amount: 9900, PaymentRef: "wx-1"})
	if err != nil {
		return err
	}
	fmt.Fprintf(s, "pay: %s, the order stays %s at version %d\n", res.Outcome, res.State, res.Version)
	_, err = s.orders.Pay(ctx, s.id, order.PayArgs{Amount: 9900, PaymentRef: "wx-7"})
	if !errors.Is(err, engine.ErrMismatch) {
		return fmt.Errorf("a second payment must not pass for a duplicate of the first, got: %w", err)
	}
	fmt.Fprintf(s, "a second payment is no duplicate of the first:\n  %v\n", err)
	return nil
}

func (s *story) race(ctx context.Context) error {
	s.title("Another order: shipped and cancelled at the same moment")
	id := s.id + "-b"
	if _, err := s.orders.Create(ctx, order.NewOrder{ID: id, Amount: 500}); err != nil {
		return err
	}
	if _, err := s.orders.Pay(ctx, id, order.PayArgs{Amount: 500, PaymentRef: "wx-2"}); err != nil {
		return err
	}
	var ship, cancel error
	var wg sync.WaitGroup
	wg.Go(func() { _, ship = s.orders.Ship(ctx, id) })
	wg.Go(func() {
		reason := "changed my mind"
		_, cancel = s.orders.Cancel(ctx, id, order.CancelArgs{Reason: &reason})
	})
	wg.Wait()
	if (ship == nil) == (cancel == nil) {
		return fmt.Errorf("one of the two must win: ship: %w, cancel: %w", ship, cancel)
	}
	winner, lost := "ship", cancel
	if ship != nil {
		winner, lost = "cancel", ship
	}
	fmt.Fprintf(s, "%s won; the other was told:\n  %v\n", winner, lost)
	return nil
}

func (s *story) illegal(ctx context.Context) error {
	s.title("A request the machine does not allow")
	_, err := s.orders.Expire(ctx, s.id)
	var e *engine.Error
	if !errors.As(err, &e) || !errors.Is(err, engine.ErrNotAllowed) {
		return fmt.Errorf("expire must not be allowed from shipped, got: %w", err)
	}
	fmt.Fprintf(s, "%v\nas fields: state %q, version %d, allowed %v\n", err, e.State, e.Version, e.Allowed)
	return nil
}

func (s *story) transaction(eng *engine.Engine) func(context.Context) error {
	return func(ctx context.Context) error {
		s.title("The delivery is confirmed inside a transaction of the caller's own")
		return eng.InTx(ctx, func(ctx context.Context, tx engine.Tx) error {
			res, err := s.orders.In(tx).Complete(ctx, s.id, engine.WithActor("customer"))
			if err != nil {
				return err
			}
			fmt.Fprintf(s, "complete: %s, %s → %s; it holds when the transaction commits\n", res.Outcome, res.From, res.To)
			return nil
		})
	}
}

func (s *story) history(ctx context.Context) error {
	s.title("The journal of the order")
	entries, err := s.orders.Journal(ctx, s.id)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name, from := e.Transition, e.From
		if name == "" {
			name, from = "(create)", "·"
		}
		fmt.Fprintf(s, "v%d  %-9s %-8s → %-10s %-10s %s\n", e.Version, name, from, e.To, e.Actor, e.Args)
	}
	s.title("The machine")
	for _, t := range order.Transitions() {
		for _, from := range order.States() {
			if from.Can(t) {
				fmt.Fprintf(s, "%-9s --%s-->\n", from, t)
			}
		}
	}
	return nil
}
