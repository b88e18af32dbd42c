package storetest

import (
	"errors"
	"strings"
	"sync"

	"github.com/fsmgen/fsmgen/engine"
)

func keyChecks() []check {
	return []check{
		{name: "a seen key is Replayed, wherever the row is by now", run: keyReplayed},
		{name: "in a cycle a late duplicate is Replayed and the row untouched", run: keyCycle},
		{name: "of a row deleted and created again: keys count for ever", run: keyAfterDelete},
		{name: "after a restart", run: keyAfterReopen},
		{name: "for other args, another transition: ErrKeyReused, before anything else is judged", run: keyReused},
		{name: "a seen key is the answer also where a constraint or a trigger stands in the way", run: keyBehindRefusal},
		{name: "for another row or machine it is another key", run: keyScope},
		{name: "forms that are legal", run: keyForms},
		{name: "the key of a result repeats the call", run: keyGenerated},
		{name: "a required key makes the duplicate", run: keyRequired},
		{name: "a key of a call that was not applied is free", run: keyNotKept},
		{name: "versions, actor and meta are not part of the request", run: keyOptions},
	}
}

func (e *env) wantReplay(res engine.Result, from, to string, version int64, state string) {
	e.Helper()
	if res.Outcome != engine.Replayed || res.From != from || res.To != to || res.Version != version || res.State != state {
		e.Fatalf("result is %+v, want Replayed %s -> %s at version %d, state now %q", res, from, to, version, state)
	}
	if res.First == nil || res.First.Version != version || res.First.Key != res.Key {
		e.Fatalf("First is %+v of key %q", res.First, res.Key)
	}
}

func keyReplayed(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	res := e.apply("pay", "o", pay, engine.WithKey("wx-1"))
	if res.Key != "wx-1" {
		e.Errorf("the result's key is %q", res.Key)
	}
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("wx-1")), "pending", "paid", 2, "paid")
	e.apply("ship", "o", nil)
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("wx-1")), "pending", "paid", 2, "shipped")
	e.apply("refund", "o", nil, engine.WithKey("back"))
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("wx-1")), "pending", "paid", 2, "refunded")
	e.wantReplay(e.fire("refund", "o", nil, engine.WithKey("back")), "shipped", "refunded", 4, "refunded")
	e.wantJournal("o", "", "pay", "ship", "refund")
}

func keyCycle(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	by := engine.Args{"by": "ann"}
	e.apply("hold", "t", by, engine.WithKey("h1"))
	e.apply("release", "t", nil, engine.WithKey("r1"))
	e.wantReplay(e.fire("hold", "t", by, engine.WithKey("h1")), "open", "held", 2, "open")
	e.wantRow("t", "open", 3)
	e.apply("hold", "t", by, engine.WithKey("h2"))
	e.wantReplay(e.fire("release", "t", nil, engine.WithKey("r1")), "held", "open", 3, "held")
	e.wantRow("t", "held", 4)
	e.apply("release", "t", nil)
	e.apply("touch", "t", engine.Args{"note": "n"}, engine.WithKey("n1"))
	e.wantReplay(e.fire("touch", "t", engine.Args{"note": "n"}, engine.WithKey("n1")), "open", "open", 6, "open")
	e.wantJournal("t", "", "hold", "release", "hold", "release", "touch")
}

func keyAfterDelete(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	e.apply("pay", "o", pay, engine.WithKey("k"))
	e.remove("o")
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("k")), "pending", "paid", 2, "")
	e.refuse(engine.ErrKeyReused, "pay", "o", engine.Args{"payment_ref": "y"}, engine.WithKey("k"))
	e.refuse(engine.ErrNotFound, "pay", "o", pay, engine.WithKey("k2"))
	e.create(engine.Row{"id": "o", "amount": 1})
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("k")), "pending", "paid", 2, "pending")
	e.wantRow("o", "pending", 3)
	e.wantResult(e.apply("pay", "o", pay, engine.WithKey("k3")), engine.Applied, "paid", 4)
}

func keyAfterReopen(e *env) {
	e.need(e.h.Features.Reopen, "way to be opened again")
	e.open(ticket)
	e.create(engine.Row{"id": "t"}, engine.WithKey("c"))
	res := e.apply("hold", "t", engine.Args{"by": "x"})
	e.apply("release", "t", nil, engine.WithKey("r"))
	e.b.Reopen(e.T)
	e.attach(nil)
	e.wantReplay(e.fire("hold", "t", engine.Args{"by": "x"}, engine.WithKey(res.Key)), "open", "held", 2, "open")
	e.wantReplay(e.fire("release", "t", nil, engine.WithKey("r")), "held", "open", 3, "open")
	again, err := e.m.Create(e.Context(), engine.Row{"id": "t"}, engine.WithKey("c"))
	e.must(err)
	e.wantReplay(again, "", "open", 1, "open")
	e.wantRow("t", "open", 3)
}

func keyReused(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	detail := e.refuse(engine.ErrKeyReused, "pay", "o", engine.Args{"payment_ref": "y"}, engine.WithKey("k"))
	if detail.Key != "k" || !strings.Contains(detail.Error(), `"x"`) || !strings.Contains(detail.Error(), `"y"`) {
		e.Errorf("the error does not name both requests: %v", detail)
	}
	e.refuse(engine.ErrKeyReused, "ship", "o", nil, engine.WithKey("k"))   // would apply
	e.refuse(engine.ErrKeyReused, "cancel", "o", nil, engine.WithKey("k")) // would apply
	e.refuse(engine.ErrKeyReused, "complete", "o", nil, engine.WithKey("k"))
	e.wantRow("o", "paid", 2)
	e.wantJournal("o", "", "pay")
}

func keyScope(e *env) {
	e.open(order, ticket)
	for _, id := range []string{"1", "2", "1:", ":1"} {
		e.create(engine.Row{"id": id, "amount": 1}, engine.WithKey("c"))
		e.apply("pay", id, engine.Args{"payment_ref": id}, engine.WithKey("1"))
	}
	tickets := e.machines["ticket"]
	_, err := tickets.Create(e.Context(), engine.Row{"id": "1"}, engine.WithKey("1"))
	e.must(err)
	for _, id := range []string{"1", "2"} {
		e.wantReplay(e.fire("pay", id, engine.Args{"payment_ref": id}, engine.WithKey("1")), "pending", "paid", 2, "paid")
	}
	e.refuse(engine.ErrKeyReused, "cancel", "1", nil, engine.WithKey("1"))
}

func keyForms(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	keys := []string{
		"k", "K", "k ", " k", "k=", "a=b", "k#", "0", "00", "null", "NULL", "%", "_", "'", `"`, `\`, "?", "$1", "\n", "\t", "é", "e\u0301", "键", "🛒", "Ⅷ", "ß", "ss",
		strings.Repeat("x", 255), strings.Repeat("键", 85), "#" + strings.Repeat("0a", 16),
	}
	for _, key := range keys {
		e.apply("touch", "t", engine.Args{"note": key}, engine.WithKey(key))
	}
	for i, key := range keys {
		e.wantReplay(e.fire("touch", "t", engine.Args{"note": key}, engine.WithKey(key)), "open", "open", int64(i+2), "open")
	}
	e.wantRow("t", "open", int64(1+len(keys)))
}

func keyGenerated(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	first := e.apply("touch", "t", engine.Args{"note": "a"})
	second := e.apply("touch", "t", engine.Args{"note": "a"})
	if first.Key == second.Key {
		e.Fatalf("two calls were given the key %q", first.Key)
	}
	e.wantReplay(e.fire("touch", "t", engine.Args{"note": "a"}, engine.WithKey(first.Key)), "open", "open", 2, "open")
	e.refuse(engine.ErrKeyReused, "touch", "t", engine.Args{"note": "b"}, engine.WithKey(first.Key))
	// The key of an error repeats its call: nothing was applied under it, so it applies now.
	e.create(engine.Row{"id": "u"})
	e.apply("hold", "u", engine.Args{"by": "x"})
	detail := e.refuse(engine.ErrNotAllowed, "touch", "u", engine.Args{"note": "late"})
	if !strings.HasPrefix(detail.Key, "#") {
		e.Fatalf("the error's key is %q", detail.Key)
	}
	e.apply("release", "u", nil)
	e.apply("touch", "u", engine.Args{"note": "late"}, engine.WithKey(detail.Key))
}

func keyRequired(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
	e.apply("refund", "o", nil, engine.WithKey("r1"))
	e.wantReplay(e.fire("refund", "o", nil, engine.WithKey("r1")), "paid", "refunded", 3, "refunded")
	// Another key is another request, and that one cannot be.
	e.refuse(engine.ErrNotAllowed, "refund", "o", nil, engine.WithKey("r2"))
	e.refuse(engine.ErrConflict, "refund", "o", nil, engine.WithKey("r3"), engine.WithVersion(1))
	e.wantJournal("o", "", "pay", "refund")
}

func keyNotKept(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.refuse(engine.ErrNotAllowed, "ship", "o", nil, engine.WithKey("k"))
	e.refuse(engine.ErrConflict, "pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k"), engine.WithVersion(7))
	e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("k2"))
	e.apply("ship", "o", nil, engine.WithKey("k"))
	e.refuse(engine.ErrNotFound, "ship", "p", nil, engine.WithKey("k"))
	e.create(engine.Row{"id": "p", "amount": 1}, engine.WithKey("k"))
}

func keyOptions(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	e.apply("pay", "o", pay, engine.WithKey("k"), engine.WithActor("a"), engine.WithMeta(1), engine.WithVersion(1))
	for _, opts := range [][]engine.CallOption{
		{engine.WithActor("b")}, {engine.WithMeta("other")}, {engine.WithVersion(1)}, {engine.WithVersion(2)}, {engine.WithVersion(99)},
	} {
		res, err := e.m.Fire(e.Context(), "pay", "o", pay, append(opts, engine.WithKey("k"))...)
		e.must(err)
		e.wantReplay(res, "pending", "paid", 2, "paid")
	}
	entry := e.entries("o")[1]
	if entry.Actor != "a" {
		e.Errorf("a replay changed the entry: %+v", entry)
	}
}

// keyBehindRefusal: whether the database looks for the key first, or at the row, is its own
// affair.
func keyBehindRefusal(e *env) {
	e.open(invoice)
	e.create(engine.Row{"id": "1", "number": "n-1"})
	e.create(engine.Row{"id": "2", "number": "n-2"})
	args := engine.Args{"number": "n-3"}
	e.apply("renumber", "2", args, engine.WithKey("k"))
	each := func(check func(m *engine.Machine)) {
		check(e.m)
		for _, form := range e.h.Features.Forms {
			tx := e.begin(form, 0)
			check(e.m.In(tx.Tx))
			e.must(tx.Rollback())
		}
		var together sync.WaitGroup
		for range 8 {
			together.Go(func() { check(e.m) })
		}
		together.Wait()
	}
	each(func(m *engine.Machine) {
		if _, err := m.Fire(e.Context(), "renumber", "2", engine.Args{"number": "n-1"}, engine.WithKey("k")); !errors.Is(err, engine.ErrKeyReused) {
			e.Errorf("other args, and a declared key that is taken: %v, want ErrKeyReused", err)
		}
	})
	b, ok := e.b.(*SQL)
	if !ok {
		return
	}
	for _, text := range b.RefuseText(b.table("invoices")) {
		_, err := b.Beside.ExecContext(e.Context(), text)
		e.must(err)
	}
	each(func(m *engine.Machine) {
		if res, err := m.Fire(e.Context(), "renumber", "2", args, engine.WithKey("k")); err != nil || res.Outcome != engine.Replayed {
			e.Errorf("a repeat behind a trigger: %v, %v, want Replayed", res.Outcome, err)
		}
		if _, err := m.Fire(e.Context(), "send", "2", nil, engine.WithKey("k")); m == e.m && !errors.Is(err, engine.ErrKeyReused) {
			e.Errorf("another transition behind a trigger: %v, want ErrKeyReused", err)
		}
	})
	_, err := e.m.Fire(e.Context(), "send", "2", nil, engine.WithKey("new"))
	e.wantFatal(err)
	if !contains(err.Error(), "frozen") {
		e.Errorf("%v: want it to say what the trigger said", err)
	}
}
