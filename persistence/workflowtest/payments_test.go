package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

func payBy(ref string) engine.Args { return engine.Args{"amount": 9900, "payment_ref": ref} }

// TestSecondPayment: another reference on a paid order is never a duplicate, the same
// one always is.
func TestSecondPayment(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		m := s.m
		s.create(t, m, engine.Row{"id": "p", "amount": 9900})
		s.apply(t, m, "pay", "p", payBy("wx-1"))
		s.wantOnlyPayment(t, engine.AlreadyReached, "p")
		s.apply(t, m, "ship", "p", nil)
		s.wantOnlyPayment(t, engine.AlreadyPassed, "p")
		s.apply(t, m, "correct", "p", engine.Args{"payment_ref": "wx-2"}) // overwrites the field
		s.wantOnlyPayment(t, engine.AlreadyPassed, "p")
		s.create(t, m, engine.Row{"id": "q", "amount": 9900})
		s.apply(t, m, "pay", "q", payBy("wx-1"))
		s.apply(t, m, "correct", "q", nil) // NULL
		s.wantOnlyPayment(t, engine.AlreadyPassed, "q")
	}, load(t, "payment"))
}

// wantOnlyPayment: wx-1 is what was paid by; the error names it and the other one.
func (s *site) wantOnlyPayment(t testing.TB, outcome engine.Outcome, id string) {
	t.Helper()
	s.want(t, outcome, s.m, "pay", id, payBy("wx-1"))
	text := s.refuse(t, engine.ErrMismatch, s.m, "pay", id, payBy("wx-2")).Error()
	if !strings.Contains(text, `payment_ref of version 2 is "wx-1"`) || !strings.Contains(text, `this call's payment_ref is "wx-2"`) {
		t.Errorf("the mismatch does not name both payments: %s", text)
	}
}

// TestSecondPaymentAtOnce: of 24 callers with three references one pays, those with the
// same reference learn that it is done, and nobody else does.
func TestSecondPaymentAtOnce(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		for round := range 4 {
			id := fmt.Sprint("p", round)
			s.create(t, s.m, engine.Row{"id": id, "amount": 9900})
			ref := func(i int) string { return fmt.Sprint("wx-", i%3) }
			calls := atOnce(24, func(i int) (engine.Result, error) {
				return s.m.Fire(context.Background(), "pay", id, payBy(ref(i)))
			})
			outcomes := count(t, calls, engine.ErrMismatch)
			if outcomes[engine.Applied] != 1 || outcomes[engine.AlreadyReached] != 7 || outcomes[0] != 16 {
				t.Fatalf("outcomes are %v", outcomes)
			}
			paid, err := s.m.Get(t.Context(), id)
			check(t, err)
			for i, c := range calls {
				if (c.err == nil) != (ref(i) == paid.Row()["payment_ref"]) {
					t.Errorf("paid by %v, and %s gets %v, %v", paid.Row()["payment_ref"], ref(i), c.Outcome, c.err)
				}
			}
		}
	}, load(t, "payment"))
}

// rejections are calls on a pending payment of 9900 and what their errors must say.
func rejections() []struct {
	transition string
	args       engine.Args
	says       string
} {
	return []struct {
		transition string
		args       engine.Args
		says       string
	}{
		{"pay", engine.Args{"amount": 100, "payment_ref": "x"}, "amount == args.amount: amount is 9900, args.amount is 100"},
		{"add", engine.Args{"cents": int64(math.MaxInt64)}, "set amount: amount + args.cents: out of the range of an int (amount is 9900, args.cents is 9223372036854775807)"},
		{"split", engine.Args{"by": 0}, "set share: amount / args.by: division by zero (amount is 9900, args.by is 0)"},
	}
}

// TestRejections: they name what was computed and from what, and are never an error of
// the database, in a caller's transaction neither; it stays usable.
func TestRejections(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "p", "amount": 9900})
		for i, r := range rejections() {
			key := engine.WithKey(fmt.Sprint("k", i))
			s.wantRejected(t, s.m, r.transition, r.args, r.says, key)
			tx, err := s.Begin(t.Context(), s.txForm(), 0)
			check(t, err)
			in := s.m.In(tx.Tx)
			s.wantRejected(t, in, r.transition, r.args, r.says, key)
			s.apply(t, in, "add", "p", engine.Args{"cents": 1}, key)
			s.apply(t, in, "add", "p", engine.Args{"cents": -1}, engine.WithKey(fmt.Sprint("back", i)))
			check(t, tx.Commit())
		}
		s.wantRow(t, s.m, "p", "pending", 7, 7, engine.Row{"amount": int64(9900), "share": nil})
	}, load(t, "payment"))
}

func (s *site) wantRejected(t testing.TB, m *engine.Machine, transition string, args engine.Args, says string, opts ...engine.CallOption) {
	t.Helper()
	err := s.refuse(t, engine.ErrRejected, m, transition, "p", args, opts...)
	if err.Detail != says || !strings.HasSuffix(err.Error(), ": rejected: "+says) {
		t.Errorf("%s says %q, want %q", transition, err.Error(), says)
	}
	if err.State != "pending" || err.Version == 0 {
		t.Errorf("%s does not say where the row is: %+v", transition, err)
	}
	if err := m.Can(context.Background(), "p", transition, args); !errors.Is(err, engine.ErrRejected) {
		t.Errorf("Can(%s) = %v, and Fire is rejected", transition, err)
	}
}
