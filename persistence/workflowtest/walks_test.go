package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

// apply makes a call that must be applied now.
func (s *site) apply(t testing.TB, m *engine.Machine, transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	t.Helper()
	return s.want(t, engine.Applied, m, transition, id, args, opts...)
}

// want makes a call that must succeed with an outcome.
func (s *site) want(t testing.TB, outcome engine.Outcome, m *engine.Machine, transition, id string, args engine.Args, opts ...engine.CallOption) engine.Result {
	t.Helper()
	res, err := m.Fire(context.Background(), transition, id, args, opts...)
	check(t, err)
	if res.Outcome != outcome {
		t.Fatalf("%s %s = %v (%s, version %d), want %v", transition, id, res.Outcome, res.State, res.Version, outcome)
	}
	return res
}

// refuse makes a call that must fail with one kind of error.
func (s *site) refuse(t testing.TB, kind error, m *engine.Machine, transition, id string, args engine.Args, opts ...engine.CallOption) *engine.Error {
	t.Helper()
	res, err := m.Fire(context.Background(), transition, id, args, opts...)
	if err == nil {
		t.Fatalf("%s %s = %v (%s, version %d), want %q", transition, id, res.Outcome, res.State, res.Version, kind)
	}
	return wantError(t, err, kind)
}

func wantError(t testing.TB, err, kind error) *engine.Error {
	t.Helper()
	var detail *engine.Error
	if !errors.Is(err, kind) || !errors.As(err, &detail) {
		t.Fatalf("the error is %v, want %q", err, kind)
	}
	return detail
}

func (s *site) create(t testing.TB, m *engine.Machine, row engine.Row) {
	t.Helper()
	res, err := m.Create(context.Background(), row)
	check(t, err)
	if res.Outcome != engine.Applied {
		t.Fatalf("create %v = %v", row, res.Outcome)
	}
}

// wantRow holds a row's state, version, the given fields, and the number of its
// journal entries against what they must be.
func (s *site) wantRow(t testing.TB, m *engine.Machine, id, state string, version int64, entries int, fields engine.Row) {
	t.Helper()
	got, err := m.Get(context.Background(), id)
	check(t, err)
	if got.State != state || got.Version != version {
		t.Fatalf("%s is %s, version %d; want %s, version %d", id, got.State, got.Version, state, version)
	}
	for name, v := range fields {
		if show(got.Row()[name]) != show(v) {
			t.Fatalf("%s of %s is %s, want %s", name, id, show(got.Row()[name]), show(v))
		}
	}
	journal, err := m.Journal(context.Background(), id)
	check(t, err)
	if len(journal) != entries {
		t.Fatalf("%s has %d journal entries, want %d: %+v", id, len(journal), entries, journal)
	}
}

// TestKeyOfAnotherRequest is case 36: a key that is in use, or done with, is never
// good for another payload, and equal payloads are equal however they are written.
func TestKeyOfAnotherRequest(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "1"})
		tx, err := s.Begin(t.Context(), s.txForm(), 0)
		check(t, err)
		s.apply(t, s.m.In(tx.Tx), "refund", "1", engine.Args{"amount": dec("10"), "details": json.RawMessage(`{"a":1,"b":2}`)}, engine.WithKey("k"))
		running := make(chan error, 1)
		go func() {
			_, err := s.m.Fire(context.Background(), "refund", "1", engine.Args{"amount": dec("100")}, engine.WithKey("k"))
			running <- err
		}()
		time.Sleep(30 * time.Millisecond) // let it meet the row that is held
		check(t, tx.Commit())
		wantError(t, <-running, engine.ErrKeyReused)
		s.refuse(t, engine.ErrKeyReused, s.m, "refund", "1", engine.Args{"amount": dec("100")}, engine.WithKey("k"))
		s.refuse(t, engine.ErrKeyReused, s.m, "refund", "1", engine.Args{"amount": dec("10")}, engine.WithKey("k")) // no details
		for _, same := range []engine.Args{
			{"amount": "10.0", "details": json.RawMessage(`{"b":2,"a":1}`)},
			{"amount": 10, "details": map[string]any{"b": 2, "a": 1}},
		} {
			res := s.want(t, engine.Replayed, s.m, "refund", "1", same, engine.WithKey("k"))
			if res.From != "paid" || res.To != "refunded" || res.Version != 2 {
				t.Errorf("replay = %+v", res)
			}
		}
		// The same key for another transition of the row, or in another's place.
		s.refuse(t, engine.ErrKeyReused, s.m, "charge_back", "1", engine.Args{"amount": dec("10")}, engine.WithKey("k"))
		s.create(t, s.m, engine.Row{"id": "2"})
		s.apply(t, s.m, "refund", "2", engine.Args{"amount": dec("100")}, engine.WithKey("k"))
		s.wantRow(t, s.m, "1", "refunded", 2, 2, engine.Row{"amount": dec("10")})
	}, load(t, "refund_request"))
}

// TestPartialPayments is case 57.
func TestPartialPayments(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		payment, shipping := s.machines["order_payment"], s.machines["order_shipping"]
		s.create(t, payment, engine.Row{"id": "o"})
		s.apply(t, payment, "request_payment", "o", nil)
		s.apply(t, shipping, "request_shipping", "o", nil) // the same row, the same version
		s.apply(t, payment, "partially_pay", "o", engine.Args{"cents": 250}, engine.WithKey("a"))
		s.apply(t, payment, "partially_pay", "o", engine.Args{"cents": 300}, engine.WithKey("b"))
		res := s.want(t, engine.Replayed, payment, "partially_pay", "o", engine.Args{"cents": 300}, engine.WithKey("b"))
		if res.From != "partially_paid" || res.Version != 5 {
			t.Errorf("the repeat = %+v", res)
		}
		s.wantRow(t, payment, "o", "partially_paid", 5, 4, engine.Row{"paid_cents": int64(550)})
		s.wantRow(t, shipping, "o", "ready", 5, 1, nil)
		s.create(t, payment, engine.Row{"id": "p"})
		s.apply(t, payment, "request_payment", "p", nil)
		s.apply(t, payment, "partially_authorize", "p", nil, engine.WithKey("a"))
		s.refuse(t, engine.ErrNotAllowed, payment, "pay", "p", nil)
	}, load(t, "order_payment"), load(t, "order_shipping"))
}

// TestTwoMachinesOneRow is case 59.
func TestTwoMachinesOneRow(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		reception, acceptance := s.machines["reception"], s.machines["acceptance"]
		for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			s.create(t, reception, engine.Row{"id": id})
			results := atOnce(2, func(i int) (engine.Result, error) {
				if i == 0 {
					return reception.Fire(context.Background(), "receive", id, nil)
				}
				return acceptance.Fire(context.Background(), "accept", id, nil)
			})
			for _, r := range results {
				if r.err != nil || r.Outcome != engine.Applied {
					t.Fatalf("at the same time: %+v, %v", r.Result, r.err)
				}
			}
			s.wantRow(t, reception, id, "received", 3, 2, nil)
			s.wantRow(t, acceptance, id, "accepted", 3, 1, nil)
			s.apply(t, acceptance, "reject", id, nil)
			res := s.want(t, engine.AlreadyReached, acceptance, "reject", id, nil)
			if res.First == nil || res.First.Transition != "reject" {
				t.Errorf("the second reject = %+v", res)
			}
			s.wantRow(t, acceptance, id, "rejected", 4, 2, nil)
		}
	}, load(t, "reception"), load(t, "acceptance"))
}

// TestReportsOutOfOrder is case 61.
func TestReportsOutOfOrder(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		m := s.m
		s.create(t, m, engine.Row{"id": "i"})
		s.apply(t, m, "attach", "i", nil)
		s.apply(t, m, "confirm", "i", engine.Args{"outcome": "done"})
		s.refuse(t, engine.ErrNotAllowed, m, "report_processing", "i", nil) // it was on its way when "succeeded" came
		s.want(t, engine.AlreadyReached, m, "confirm", "i", engine.Args{"outcome": "done"})
		detail := s.refuse(t, engine.ErrMismatch, m, "confirm", "i", engine.Args{"outcome": "async"})
		if text := detail.Error(); !strings.Contains(text, `"done"`) || !strings.Contains(text, `"async"`) {
			t.Errorf("the mismatch does not name both: %v", text)
		}
		s.wantRow(t, m, "i", "succeeded", 3, 3, nil)
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			s.create(t, m, engine.Row{"id": id})
			s.apply(t, m, "attach", id, nil)
			s.apply(t, m, "confirm", id, engine.Args{"outcome": "manual"})
			wantOneOf(t, atOnce(2, func(i int) (engine.Result, error) {
				return m.Fire(context.Background(), []string{"cancel", "capture"}[i], id, nil)
			}), engine.ErrNotAllowed)
		}
	}, load(t, "payment_intent"))
}

// TestClosedForTwoReasons is case 63.
func TestClosedForTwoReasons(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		m := s.m
		s.create(t, m, engine.Row{"id": "late", "total": "100"})
		s.apply(t, m, "time_out", "late", nil)
		s.refuse(t, engine.ErrNotAllowed, m, "refund_full", "late", nil) // closed, but nothing was refunded
		res := s.want(t, engine.AlreadyReached, m, "cancel", "late", nil)
		if res.First == nil || res.First.Transition != "time_out" || !res.First.At.Equal(start) {
			t.Errorf("a duplicate does not say who closed the trade, and when: %+v", res.First)
		}
		s.create(t, m, engine.Row{"id": "paid", "total": "100"})
		s.apply(t, m, "pay", "paid", nil)
		s.apply(t, m, "refund_part", "paid", engine.Args{"amount": "1.5", "request": "a"})
		s.apply(t, m, "refund_part", "paid", engine.Args{"amount": "1.5", "request": "b"})
		s.want(t, engine.Replayed, m, "refund_part", "paid", engine.Args{"amount": "1.50", "request": "b"})
		s.refuse(t, engine.ErrMismatch, m, "refund_part", "paid", engine.Args{"amount": "2", "request": "b"})
		s.wantRow(t, m, "paid", "TRADE_SUCCESS", 4, 4, engine.Row{"refunded": dec("3")})
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			s.create(t, m, engine.Row{"id": id, "total": "1"})
			wantOneOf(t, atOnce(2, func(i int) (engine.Result, error) {
				return m.Fire(context.Background(), []string{"time_out", "pay"}[i], id, nil)
			}), engine.ErrNotAllowed)
		}
	}, load(t, "alipay_trade"))
}

// TestHoldsAndDates is case 65.
func TestHoldsAndDates(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		m := s.m
		s.create(t, m, engine.Row{"id": 1})
		s.create(t, m, engine.Row{"id": 2, "status": "SCHEDULED", "fulfill_at": start.Add(time.Second)})
		_, err := m.Create(t.Context(), engine.Row{"id": 3, "status": "ON_HOLD"})
		wantError(t, err, engine.ErrInvalidArgs)

		s.refuse(t, engine.ErrRejected, m, "date_reached", "2", nil)
		s.apply(t, m, "reschedule", "2", engine.Args{"at": start.Add(time.Hour)})
		s.clock.Add(int64(time.Minute / time.Microsecond))
		s.refuse(t, engine.ErrRejected, m, "date_reached", "2", nil) // the old date has come, the new one has not
		s.clock.Add(int64(time.Hour / time.Microsecond))
		s.apply(t, m, "date_reached", "2", nil)

		s.apply(t, m, "hold", "1", engine.Args{"hold_id": "fraud"})
		s.apply(t, m, "hold", "1", engine.Args{"hold_id": "stock"})
		s.want(t, engine.Replayed, m, "hold", "1", engine.Args{"hold_id": "stock"})
		if res := s.apply(t, m, "release_hold", "1", engine.Args{"hold_id": "fraud"}); res.To != "ON_HOLD" {
			t.Errorf("released with a hold left: %+v", res)
		}
		s.want(t, engine.Replayed, m, "release_hold", "1", engine.Args{"hold_id": "fraud"})
		if res := s.apply(t, m, "release_hold", "1", engine.Args{"hold_id": "stock"}); res.To != "OPEN" {
			t.Errorf("not released: %+v", res)
		}
		s.wantRow(t, m, "1", "OPEN", 5, 5, engine.Row{"holds": int64(0)})
	}, load(t, "fulfillment_order"))
}
