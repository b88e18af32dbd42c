package storetest

import "github.com/fsmgen/fsmgen/engine"

func duplicateChecks() []check {
	return []check{
		{name: "a reached target is AlreadyReached, and tells who was first", run: duplicateReached},
		{name: "a passed target is AlreadyPassed", run: duplicatePassed},
		{name: "passed is decided by the graph where there is no journal", run: duplicatePassedByGraph},
		{name: "a duplicate changes nothing", run: duplicateChangesNothing},
		{name: "own: only the transition's own entry counts", run: duplicateOwn},
		{name: "own: passed only by its own entry", run: duplicateOwnPassed},
		{name: "refuse: only a seen key is a duplicate", run: duplicateRefuse},
		{name: "what was undone is no duplicate", run: duplicateUndone},
		{name: "accept: whoever reached the target", run: duplicateAccept},
		{name: "who was first is who entered the state, not who moved within it", run: duplicateSelf},
		{name: "a hundred late callbacks", run: duplicateLate},
	}
}

func duplicateReached(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	first := e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithActor("wechat"))
	res := e.fire("pay", "o", engine.Args{"payment_ref": "x"})
	e.wantResult(res, engine.AlreadyReached, "paid", 2)
	if !res.Outcome.Duplicate() {
		e.Error("AlreadyReached does not count as a duplicate")
	}
	f := res.First
	if f == nil || f.Transition != "pay" || f.Version != 2 || f.Actor != "wechat" || f.Key != first.Key || f.From != "pending" || f.To != "paid" {
		e.Fatalf("First is %+v", f)
	}
	e.wantRecent(f.At)
	// No definition of identity: another reference is still the same request.
	e.wantResult(e.fire("pay", "o", engine.Args{"payment_ref": "other"}), engine.AlreadyReached, "paid", 2)
	e.wantValues(e.rowOf("o"), engine.Row{"payment_ref": "x"})
	e.wantJournal("o", "", "pay")
}

func duplicatePassed(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	e.apply("pay", "o", pay)
	e.apply("ship", "o", nil)
	res := e.fire("pay", "o", pay)
	e.wantResult(res, engine.AlreadyPassed, "shipped", 3)
	if res.First == nil || res.First.Transition != "ship" {
		e.Errorf("First is %+v, want the entry that entered the state", res.First)
	}
	e.apply("complete", "o", nil)
	e.wantResult(e.fire("pay", "o", pay), engine.AlreadyPassed, "completed", 4)
	e.wantResult(e.fire("ship", "o", nil), engine.AlreadyPassed, "completed", 4)
	// Cancelled after the payment: the payment was applied, the cancellation is no payment.
	e.create(engine.Row{"id": "c", "amount": 1})
	e.apply("pay", "c", pay)
	e.apply("cancel", "c", nil)
	e.wantResult(e.fire("pay", "c", pay), engine.AlreadyPassed, "cancelled", 3)
	// Cancelled before any payment: nobody paid.
	e.create(engine.Row{"id": "n", "amount": 1})
	e.apply("cancel", "n", nil)
	e.refuse(engine.ErrNotAllowed, "pay", "n", pay)
	e.wantJournal("n", "", "cancel")
}

func duplicatePassedByGraph(e *env) {
	e.open(order)
	e.insert(engine.Row{"id": "s", "status": "shipped", "version": 12, "amount": 1, "currency": "CNY"})
	e.insert(engine.Row{"id": "c", "status": "cancelled", "version": 12, "amount": 1, "currency": "CNY"})
	res := e.fire("pay", "s", engine.Args{"payment_ref": "x"})
	e.wantResult(res, engine.AlreadyPassed, "shipped", 12)
	if res.First != nil {
		e.Errorf("First is %+v of a row without journal", res.First)
	}
	res = e.fire("ship", "s", nil)
	e.wantResult(res, engine.AlreadyReached, "shipped", 12)
	if res.First != nil {
		e.Errorf("First is %+v of a row without journal", res.First)
	}
	e.refuse(engine.ErrNotAllowed, "pay", "c", engine.Args{"payment_ref": "x"})
	e.wantJournal("s")
}

func duplicateChangesNothing(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
	before := e.rowOf("o")
	for i := range 3 {
		res := e.fire("pay", "o", engine.Args{"payment_ref": "y"}, engine.WithKey(string(rune('a'+i))), engine.WithActor("late"), engine.WithMeta(i))
		e.wantResult(res, engine.AlreadyReached, "paid", 2)
	}
	e.wantValues(e.rowOf("o"), before)
	e.wantJournal("o", "", "pay")
	// A key whose call was not applied is free.
	e.wantResult(e.apply("ship", "o", nil, engine.WithKey("a")), engine.Applied, "shipped", 3)
}

func duplicateAccept(e *env) {
	e.open(review)
	e.create(engine.Row{"id": "r"})
	e.apply("submit", "r", nil)
	e.apply("approve", "r", nil)
	e.apply("publish", "r", nil)
	e.apply("undo", "r", nil)
	// submit's target was reached by undo: accept does not ask who did it.
	res := e.fire("submit", "r", nil)
	e.wantResult(res, engine.AlreadyReached, "submitted", 5)
	if res.First == nil || res.First.Transition != "undo" {
		e.Errorf("First is %+v", res.First)
	}
}

func duplicateSelf(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	e.apply("touch", "t", engine.Args{"note": "n"})
	res := e.fire("release", "t", nil)
	e.wantResult(res, engine.AlreadyReached, "open", 2)
	if res.First == nil || res.First.Version != 1 || res.First.Transition != "" {
		e.Errorf("First is %+v, want the creation", res.First)
	}
	e.apply("hold", "t", engine.Args{"by": "x"})
	e.apply("release", "t", nil)
	e.apply("touch", "t", engine.Args{"note": "n"})
	res = e.fire("release", "t", nil)
	e.wantResult(res, engine.AlreadyReached, "open", 5)
	if res.First == nil || res.First.Version != 4 || res.First.Transition != "release" {
		e.Errorf("First is %+v, want the release", res.First)
	}
}

func duplicateOwn(e *env) {
	e.open(review)
	for _, id := range []string{"mine", "theirs"} {
		e.create(engine.Row{"id": id})
		e.apply("submit", id, nil)
	}
	e.apply("approve", "mine", nil)
	e.apply("override", "theirs", nil)
	e.wantResult(e.fire("approve", "mine", nil), engine.AlreadyReached, "approved", 3)
	e.refuse(engine.ErrNotAllowed, "approve", "theirs", nil)
	e.wantResult(e.fire("override", "theirs", nil), engine.AlreadyReached, "approved", 3)
	e.refuse(engine.ErrNotAllowed, "override", "mine", nil)
	e.wantJournal("theirs", "", "submit", "override")
}

func duplicateOwnPassed(e *env) {
	e.open(review)
	for id, how := range map[string]string{"mine": "approve", "theirs": "override"} {
		e.create(engine.Row{"id": id})
		e.apply("submit", id, nil)
		e.apply(how, id, nil)
		e.apply("publish", id, nil)
	}
	e.wantResult(e.fire("approve", "mine", nil), engine.AlreadyPassed, "published", 4)
	e.refuse(engine.ErrNotAllowed, "approve", "theirs", nil)
	e.refuse(engine.ErrNotAllowed, "override", "mine", nil)
	// A row without journal: nobody's entry.
	e.insert(engine.Row{"id": "s", "status": "published", "version": 5})
	e.refuse(engine.ErrNotAllowed, "approve", "s", nil)
	e.insert(engine.Row{"id": "a", "status": "approved", "version": 5})
	e.refuse(engine.ErrNotAllowed, "approve", "a", nil)
}

func duplicateRefuse(e *env) {
	e.open(review)
	e.create(engine.Row{"id": "r"})
	e.apply("submit", "r", nil)
	e.apply("reject", "r", nil, engine.WithKey("k"))
	e.refuse(engine.ErrNotAllowed, "reject", "r", nil)
	e.refuse(engine.ErrNotAllowed, "reject", "r", nil, engine.WithKey("other"))
	res := e.fire("reject", "r", nil, engine.WithKey("k"))
	e.wantResult(res, engine.Replayed, "rejected", 3)
	e.wantJournal("r", "", "submit", "reject")
}

func duplicateUndone(e *env) {
	e.open(review)
	e.create(engine.Row{"id": "r"})
	e.apply("submit", "r", nil)
	e.apply("approve", "r", nil)
	e.apply("undo", "r", nil)
	e.apply("override", "r", nil)
	// approve was undone, and the state was reached by another: not its duplicate.
	e.refuse(engine.ErrNotAllowed, "approve", "r", nil)
	e.apply("undo", "r", nil)
	// Undone, and possible again: it is a new request, not a repeat.
	e.wantResult(e.apply("approve", "r", nil), engine.Applied, "approved", 7)
	e.wantResult(e.fire("approve", "r", nil), engine.AlreadyReached, "approved", 7)
	e.wantJournal("r", "", "submit", "approve", "undo", "override", "undo", "approve")
}

func duplicateLate(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.apply("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("wx"))
	e.apply("ship", "o", nil)
	for range rounds(10, 100) {
		res := e.fire("pay", "o", engine.Args{"payment_ref": "x"})
		e.wantResult(res, engine.AlreadyPassed, "shipped", 3)
		res = e.fire("pay", "o", engine.Args{"payment_ref": "x"}, engine.WithKey("wx"))
		if res.Outcome != engine.Replayed || res.State != "shipped" || res.From != "pending" || res.To != "paid" || res.Version != 2 {
			e.Fatalf("replay is %+v", res)
		}
	}
	e.wantJournal("o", "", "pay", "ship")
}
