package workflowtest

import (
	"context"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// TestOneKeyManyCallers is case 34: of 30 callers with one key one is applied, and the
// others get its result.
func TestOneKeyManyCallers(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "o"})
		s.apply(t, s.m, "request_payment", "o", nil)
		calls := atOnce(30, func(int) (engine.Result, error) {
			return s.m.Fire(context.Background(), "partially_pay", "o", engine.Args{"cents": 5}, engine.WithKey("k"))
		})
		outcomes := count(t, calls, nil)
		if outcomes[engine.Applied] != 1 || outcomes[engine.Replayed] != 29 {
			t.Fatalf("outcomes are %v", outcomes)
		}
		for _, c := range calls {
			if c.From != "awaiting_payment" || c.To != "partially_paid" || c.Version != 3 {
				t.Errorf("a caller was told %+v", c.Result)
			}
		}
		s.wantRow(t, s.m, "o", "partially_paid", 3, 3, engine.Row{"paid_cents": int64(5)})
	}, load(t, "order_payment"))
}

// TestKeySpace is case 38: a key is one row's and one machine's, and the parts of a
// derived one do not run together.
func TestKeySpace(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		payment, shipping, votes := s.machines["order_payment"], s.machines["order_shipping"], s.machines["approval"]
		for _, id := range []string{"1", "2"} {
			s.create(t, payment, engine.Row{"id": id})
			s.apply(t, payment, "request_payment", id, nil, engine.WithKey("1"))
		}
		s.refuse(t, engine.ErrKeyReused, payment, "cancel", "1", nil, engine.WithKey("1"))
		s.apply(t, shipping, "request_shipping", "1", nil, engine.WithKey("1")) // the same row, another machine
		s.create(t, votes, engine.Row{"id": "1", "required": 100, "round": 1})
		for _, by := range []string{"a", "a:1", "a,1", "1:a", "a\n1", "=", "#", "A", "a ", strings.Repeat("ß", 255)} {
			s.apply(t, votes, "approve", "1", engine.Args{"approver": by, "round": 1})
			s.want(t, engine.Replayed, votes, "approve", "1", engine.Args{"approver": by, "round": 1})
		}
		s.refuse(t, engine.ErrInvalidArgs, payment, "cancel", "1", nil, engine.WithKey(strings.Repeat("k", 300)))
		s.wantRow(t, votes, "1", "in_review", 11, 11, engine.Row{"approvals": int64(10)})
	}, load(t, "order_payment"), load(t, "order_shipping"), load(t, "approval"))
}
