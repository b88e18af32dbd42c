package storetest

import (
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

// payment is what conditions, identity, derived keys and branches are for.
const payment = `
machine: payment
table: {name: payments}
fields:
  amount: {type: int}
  paid:   {type: int, default: 0}
  ref:    {type: string, nullable: true}
initial: due
states:
  due:
  part:
  paid: {final: true}
  void: {final: true}
transitions:
  capture:
    from: [due, part]
    args: {cents: int}
    when: args.cents > 0 and paid + args.cents <= amount
    key: required
    set: {paid: paid + args.cents}
    to:
      - {state: paid, when: paid + args.cents == amount}
      - {state: part}
  settle:
    from: due
    to: paid
    args: {ref: string, amount: int}
    when: amount == args.amount
    set: {ref: args.ref, paid: amount}
    identity: [ref]
    duplicates: accept
  void:
    moves:
      - {from: due, to: void}
      - {from: part, to: void, set: {paid: 0}}
`

// approval counts votes; one per approver and round.
const approval = `
machine: approval
table: {name: approvals}
fields:
  votes:    {type: int, default: 0}
  required: {type: int, default: 2}
  round:    {type: int, default: 1}
initial: in_review
states:
  in_review:
  approved: {final: true}
transitions:
  approve:
    from: in_review
    args: {approver: string, round: int}
    when: args.round == round
    key: [args.approver, args.round]
    set: {votes: votes + 1}
    to:
      - {state: approved, when: votes + 1 >= required}
      - {state: in_review}
`

func conditionChecks() []check {
	return []check{
		{name: "a false condition is ErrRejected and says the values", run: conditionRejects},
		{name: "the first branch that holds, over the row as it was", run: conditionBranches},
		{name: "identity tells a duplicate from another request", run: conditionIdentity},
		{name: "several moves under one name", run: conditionMoves},
		{name: "a derived key: one vote each", run: conditionDerivedKey},
		{name: "overflow is ErrRejected, also in a caller's transaction", run: conditionOverflow},
	}
}

func conditionRejects(e *env) {
	e.open(payment)
	e.create(engine.Row{"id": "p", "amount": 100})
	detail := e.refuse(engine.ErrRejected, "settle", "p", engine.Args{"ref": "a", "amount": 99})
	if !strings.Contains(detail.Error(), "100") || !strings.Contains(detail.Error(), "99") || detail.State != "due" {
		e.Errorf("the rejection does not say the values: %v", detail)
	}
	e.refuse(engine.ErrRejected, "capture", "p", engine.Args{"cents": 101}, engine.WithKey("k"))
	e.refuse(engine.ErrRejected, "capture", "p", engine.Args{"cents": 0}, engine.WithKey("k"))
	e.wantRow("p", "due", 1)
	e.wantJournal("p", "")
	e.apply("capture", "p", engine.Args{"cents": 100}, engine.WithKey("k"))
}

func conditionBranches(e *env) {
	e.open(payment)
	e.create(engine.Row{"id": "p", "amount": 100})
	for i, step := range []struct {
		cents int
		from  string
		to    string
	}{{30, "due", "part"}, {30, "part", "part"}, {40, "part", "paid"}} {
		res := e.apply("capture", "p", engine.Args{"cents": step.cents}, engine.WithKey(string(rune('a'+i))))
		if res.From != step.from || res.To != step.to || res.Version != int64(i+2) {
			e.Errorf("capture %d = %+v", i, res)
		}
	}
	e.wantReplay(e.fire("capture", "p", engine.Args{"cents": 30}, engine.WithKey("b")), "part", "part", 3, "paid")
	e.wantValues(e.rowOf("p"), engine.Row{"paid": int64(100)})
	e.refuse(engine.ErrNotAllowed, "capture", "p", engine.Args{"cents": 1}, engine.WithKey("z"))
}

func conditionIdentity(e *env) {
	e.open(payment)
	e.create(engine.Row{"id": "p", "amount": 100})
	e.apply("settle", "p", engine.Args{"ref": "a", "amount": 100})
	e.wantResult(e.fire("settle", "p", engine.Args{"ref": "a", "amount": 100}), engine.AlreadyReached, "paid", 2)
	detail := e.refuse(engine.ErrMismatch, "settle", "p", engine.Args{"ref": "b", "amount": 100})
	if !strings.Contains(detail.Error(), `"a"`) || !strings.Contains(detail.Error(), `"b"`) {
		e.Errorf("the mismatch does not name both: %v", detail)
	}
	e.insert(engine.Row{"id": "s", "status": "paid", "version": 3, "amount": 100, "paid": 100, "ref": "a"})
	e.wantResult(e.fire("settle", "s", engine.Args{"ref": "a", "amount": 100}), engine.AlreadyReached, "paid", 3)
	e.refuse(engine.ErrMismatch, "settle", "s", engine.Args{"ref": "b", "amount": 100})
	e.insert(engine.Row{"id": "n", "status": "paid", "version": 3, "amount": 100, "paid": 100})
	e.refuse(engine.ErrMismatch, "settle", "n", engine.Args{"ref": "b", "amount": 100})
}

func conditionMoves(e *env) {
	e.open(payment)
	for id, cents := range map[string]int{"due": 0, "part": 10} {
		e.create(engine.Row{"id": id, "amount": 100})
		if cents > 0 {
			e.apply("capture", id, engine.Args{"cents": cents}, engine.WithKey("k"))
		}
		if res := e.apply("void", id, nil); res.From != id || res.To != "void" {
			e.Errorf("void %s = %+v", id, res)
		}
		e.wantValues(e.rowOf(id), engine.Row{"paid": int64(0)})
	}
}

func conditionDerivedKey(e *env) {
	e.open(approval)
	e.create(engine.Row{"id": "a"})
	e.apply("approve", "a", engine.Args{"approver": "ann", "round": 1})
	res := e.fire("approve", "a", engine.Args{"approver": "ann", "round": 1})
	e.wantReplay(res, "in_review", "in_review", 2, "in_review")
	e.refuse(engine.ErrRejected, "approve", "a", engine.Args{"approver": "bob", "round": 2})
	e.refuse(engine.ErrInvalidArgs, "approve", "a", engine.Args{"approver": "bob", "round": 1}, engine.WithKey("k"))
	if res := e.apply("approve", "a", engine.Args{"approver": "bob", "round": 1}); res.To != "approved" || res.Version != 3 {
		e.Errorf("the second vote = %+v", res)
	}
	e.refuse(engine.ErrNotAllowed, "approve", "a", engine.Args{"approver": "cid", "round": 1})
	e.wantReplay(e.fire("approve", "a", engine.Args{"approver": "bob", "round": 1}), "in_review", "approved", 3, "approved")
	e.wantValues(e.rowOf("a"), engine.Row{"votes": int64(2)})
}

func conditionOverflow(e *env) {
	e.open(payment)
	const most = int64(9223372036854775807)
	e.create(engine.Row{"id": "p", "amount": most})
	e.apply("capture", "p", engine.Args{"cents": 1}, engine.WithKey("a"))
	e.refuse(engine.ErrRejected, "capture", "p", engine.Args{"cents": most}, engine.WithKey("b"))
	for _, form := range e.h.Features.Forms {
		tx := e.begin(form, 0)
		_, err := e.m.In(tx.Tx).Fire(e.Context(), "capture", "p", engine.Args{"cents": most}, engine.WithKey("b"))
		e.wantError(err, engine.ErrRejected)
		_, err = e.m.In(tx.Tx).Fire(e.Context(), "void", "p", nil)
		e.must(err)
		e.must(tx.Rollback())
	}
	e.wantRow("p", "part", 2)
}
