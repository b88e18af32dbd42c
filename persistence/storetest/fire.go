package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fsmgen/fsmgen/engine"
)

func fireChecks() []check {
	return []check{
		{name: "tells from, to and version, and records them", run: fireTells},
		{name: "tells the true source where there are several", run: fireSources},
		{name: "aliases count as their state, and the next transition writes the new value", run: fireAliases},
		{name: "status values that are integers", run: fireIntStatus},
		{name: "a machine may keep its journal in a table of its own", run: fireOwnJournal},
		{name: "machines share a journal and stay apart", run: fireShared},
		{name: "a transition onto its own state is applied each time", run: fireSelf},
		{name: "from * is every state that is not final", run: fireStar},
		{name: "no such row is ErrNotFound", run: fireNotFound},
		{name: "what is not allowed says what is", run: fireNotAllowed},
		{name: "an error keeps saying what was true", run: fireErrorText},
		{name: "what does not fit is ErrInvalidArgs and sends nothing", run: fireInvalid},
		{name: "a dead context returns its own error alone", run: fireDeadContext},
	}
}

func fireTells(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o-1", "amount": 9900})
	res := e.apply("pay", "o-1", engine.Args{"payment_ref": "wx-1"}, engine.WithActor("wechat"), engine.WithMeta([]int{1, 2}))
	e.wantResult(res, engine.Applied, "paid", 2)
	if res.From != "pending" || res.To != "paid" || res.ID != "o-1" || res.First != nil || res.Outcome.Duplicate() {
		e.Fatalf("result is %+v", res)
	}
	e.wantRow("o-1", "paid", 2)
	entry := e.wantJournal("o-1", "", "pay")[1]
	if entry.From != "pending" || entry.To != "paid" || entry.Version != 2 || entry.Actor != "wechat" || entry.Key != res.Key {
		e.Fatalf("entry is %+v", entry)
	}
	e.wantJSON(entry.Args, `{"payment_ref": "wx-1"}`)
	e.wantJSON(entry.Meta, `[1, 2]`)
	e.wantRecent(entry.At)
	row := e.rowOf("o-1")
	e.wantValues(row, engine.Row{"amount": int64(9900), "currency": "CNY", "payment_ref": "wx-1", "paid_at": entry.At})
	raw, err := e.b.Journal(e.Context(), e.m.Definition())
	e.must(err)
	if topic := raw["o-1"][1].Topic; topic != "order.paid" {
		e.Errorf("topic is %q", topic)
	}
	e.apply("ship", "o-1", nil)
	raw, err = e.b.Journal(e.Context(), e.m.Definition())
	e.must(err)
	if topic := raw["o-1"][2].Topic; topic != "" {
		e.Errorf("a transition without emit has topic %q", topic)
	}
}

func fireSources(e *env) {
	e.open(order)
	for _, id := range []string{"a", "b"} {
		e.create(engine.Row{"id": id, "amount": 1})
	}
	e.apply("pay", "b", engine.Args{"payment_ref": "x"})
	for _, want := range []struct {
		id, from string
		version  int64
	}{{"a", "pending", 2}, {"b", "paid", 3}} {
		res := e.apply("cancel", want.id, engine.Args{"reason": "changed my mind"})
		if res.From != want.from || res.To != "cancelled" || res.Version != want.version {
			e.Errorf("cancel %s = %+v, want from %s at version %d", want.id, res, want.from, want.version)
		}
		entries := e.entries(want.id)
		if last := entries[len(entries)-1]; last.From != want.from || last.Version != want.version {
			e.Errorf("the journal says %+v", last)
		}
	}
}

func fireAliases(e *env) {
	e.open(shipment)
	for id, status := range map[string]string{"new": "wait", "old": "waiting", "older": "WAIT PICKUP"} {
		e.insert(engine.Row{"id": id, "status": status, "version": 3})
		e.wantRow(id, "WAIT_PICKUP", 3)
		res := e.apply("pick_up", id, nil)
		if res.From != "WAIT_PICKUP" || res.To != "运输中" || res.Version != 4 {
			e.Errorf("%s: %+v", id, res)
		}
		e.apply("retry", id, nil)
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	for id, row := range rows {
		if row.Status != `2nd%_\ try` {
			e.Errorf("row %s holds %q", id, row.Status)
		}
	}
	e.insert(engine.Row{"id": "transit", "status": "it's", "version": 1})
	res := e.apply("deliver", "transit", nil)
	if res.From != "运输中" || res.To != "delivered" {
		e.Errorf("deliver = %+v", res)
	}
}

func fireIntStatus(e *env) {
	e.open(counter)
	e.create(engine.Row{"id": 1})
	if res := e.apply("start", "1", nil); res.From != "fresh" || res.To != "active" {
		e.Fatalf("start = %+v", res)
	}
	for id, status := range map[string]int{"21": 21, "22": 22} {
		e.insert(engine.Row{"id": id, "status": status, "version": 9})
		if res := e.apply("finish", id, nil); res.From != "later" || res.To != "done" || res.Version != 10 {
			e.Errorf("finish %s = %+v", id, res)
		}
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	for id, want := range map[string]int64{"1": -3, "21": 0, "22": 0} {
		if rows[id].Status != want {
			e.Errorf("row %s holds %v (%T), want %d", id, rows[id].Status, rows[id].Status, want)
		}
	}
	e.apply("pause", "1", nil)
	e.wantResult(e.fire("finish", "1", nil), engine.Applied, "done", 4)
}

func fireOwnJournal(e *env) {
	e.open(separate, order)
	e.create(engine.Row{"id": "s"})
	e.apply("go", "s", nil, engine.WithKey("k"))
	e.wantJournal("s", "", "go")
	res := e.fire("go", "s", nil, engine.WithKey("k"))
	e.wantResult(res, engine.Replayed, "b", 2)
	shared, err := e.b.Journal(e.Context(), e.machines["order"].Definition())
	e.must(err)
	if len(shared) != 0 {
		e.Errorf("the common journal holds %v", shared)
	}
}

func fireShared(e *env) {
	e.open(order, ticket)
	tickets := e.machines["ticket"]
	e.create(engine.Row{"id": "1", "amount": 1})
	_, err := tickets.Create(e.Context(), engine.Row{"id": "1"}, engine.WithKey("k"))
	e.must(err)
	e.apply("pay", "1", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	res, err := tickets.Fire(e.Context(), "hold", "1", engine.Args{"by": "me"}, engine.WithKey("k2"))
	e.must(err)
	e.wantResult(res, engine.Applied, "held", 2)
	e.wantJournal("1", "", "pay")
	entries, err := tickets.Journal(e.Context(), "1")
	e.must(err)
	if len(entries) != 2 || entries[1].Transition != "hold" {
		e.Errorf("the other machine's journal is %+v", entries)
	}
}

func fireSelf(e *env) {
	e.open(ticket)
	e.create(engine.Row{"id": "t"})
	e.wantResult(e.apply("touch", "t", engine.Args{"note": "one"}), engine.Applied, "open", 2)
	// The same values again still change the version: no lost race, no no-op.
	e.wantResult(e.apply("touch", "t", engine.Args{"note": "one"}), engine.Applied, "open", 3)
	e.wantResult(e.apply("touch", "t", engine.Args{"note": "one"}, engine.WithVersion(3)), engine.Applied, "open", 4)
	e.wantJournal("t", "", "touch", "touch", "touch")
}

func fireStar(e *env) {
	e.open(ticket)
	for id, hold := range map[string]bool{"a": false, "b": true} {
		e.create(engine.Row{"id": id})
		from := "open"
		if hold {
			from = e.apply("hold", id, engine.Args{"by": "x"}).State
		}
		if res := e.apply("close", id, nil); res.From != from || res.To != "closed" {
			e.Errorf("close %s = %+v", id, res)
		}
		if res := e.fire("close", id, nil); res.Outcome != engine.AlreadyReached {
			e.Errorf("close %s again = %+v", id, res)
		}
	}
}

func fireNotFound(e *env) {
	e.open(order)
	detail := e.refuse(engine.ErrNotFound, "pay", "nobody", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	if detail.Machine != "order" || detail.Transition != "pay" || detail.ID != "nobody" || detail.Key != "k" || !strings.Contains(detail.Error(), "orders") {
		e.Errorf("error is %+v: %v", detail, detail)
	}
	e.refuse(engine.ErrNotFound, "cancel", "nobody", nil)
	e.refuse(engine.ErrNotFound, "ship", "nobody", nil, engine.WithVersion(4))
	_, err := e.m.Get(e.Context(), "nobody")
	e.wantError(err, engine.ErrNotFound)
	e.wantNothing()
}

func fireNotAllowed(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	detail := e.refuse(engine.ErrNotAllowed, "ship", "o", nil)
	if detail.State != "pending" || detail.Version != 1 || detail.Transition != "ship" || strings.Join(detail.Allowed, " ") != "pay cancel" {
		e.Errorf("error is %+v", detail)
	}
	for _, word := range []string{"order.ship", `"o"`, "pending", "pay", "cancel"} {
		if !strings.Contains(detail.Error(), word) {
			e.Errorf("the text %q does not say %s", detail, word)
		}
	}
	e.apply("cancel", "o", nil)
	if detail := e.refuse(engine.ErrNotAllowed, "ship", "o", nil); len(detail.Allowed) != 0 {
		e.Errorf("allowed from a final state: %v", detail.Allowed)
	}
	e.wantJournal("o", "", "cancel")
}

func fireErrorText(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	detail := e.refuse(engine.ErrNotAllowed, "ship", "o", nil)
	before := detail.Error()
	e.apply("pay", "o", engine.Args{"payment_ref": "x"})
	if detail.Error() != before || detail.State != "pending" || detail.Version != 1 || !strings.Contains(before, "pending") {
		e.Errorf("the error now says %q of %+v, it said %q", detail, detail, before)
	}
}

func fireInvalid(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	for name, call := range map[string]struct {
		transition, id string
		args           engine.Args
		opt            engine.CallOption
	}{
		"unknown transition":  {"payy", "o", nil, nil},
		"empty transition":    {"", "o", nil, nil},
		"other case":          {"Pay", "o", pay, nil},
		"missing arg":         {"pay", "o", nil, nil},
		"nil arg":             {"pay", "o", engine.Args{"payment_ref": nil}, nil},
		"unknown arg":         {"pay", "o", engine.Args{"payment_ref": "x", "amount": 1}, nil},
		"wrong type":          {"pay", "o", engine.Args{"payment_ref": 7}, nil},
		"arg with NUL":        {"pay", "o", engine.Args{"payment_ref": "\x00"}, nil},
		"arg not UTF-8":       {"pay", "o", engine.Args{"payment_ref": "\xed\xa0\x80"}, nil},
		"empty id":            {"pay", "", pay, nil},
		"id with NUL":         {"pay", "o\x00", pay, nil},
		"id not UTF-8":        {"pay", "\xff", pay, nil},
		"id of 256 bytes":     {"pay", strings.Repeat("x", 256), pay, nil},
		"no version of a row": {"pay", "o", pay, engine.WithVersion(engine.AnyVersion)},
		"required key is not": {"refund", "o", nil, nil},
	} {
		var opts []engine.CallOption
		if call.opt != nil {
			opts = append(opts, call.opt)
		}
		_, err := e.m.Fire(e.Context(), call.transition, call.id, call.args, opts...)
		if err == nil {
			e.Errorf("%s: no error", name)
			continue
		}
		e.wantError(err, engine.ErrInvalidArgs)
	}
	for name, opt := range badOptions() {
		if _, err := e.m.Fire(e.Context(), "pay", "o", pay, opt); !errors.Is(err, engine.ErrInvalidArgs) {
			e.Errorf("%s: %v", name, err)
		}
	}
	e.wantRow("o", "pending", 1)
	e.wantJournal("o", "")
}

func fireDeadContext(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	cancelled, cancel := context.WithCancel(e.Context())
	cancel()
	late, cancel := context.WithDeadline(e.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{cancelled, context.Canceled}, {late, context.DeadlineExceeded}} {
		_, fire := e.m.Fire(c.ctx, "pay", "o", engine.Args{"payment_ref": "x"})
		_, create := e.m.Create(c.ctx, engine.Row{"id": "p", "amount": 1})
		_, get := e.m.Get(c.ctx, "o")
		_, journal := e.m.Journal(c.ctx, "o")
		can := e.m.Can(c.ctx, "o", "pay", engine.Args{"payment_ref": "x"})
		tx := e.eng.InTx(c.ctx, func(context.Context, engine.Tx) error { return errors.New("fn ran") })
		for name, err := range map[string]error{"Fire": fire, "Create": create, "Get": get, "Journal": journal, "Can": can, "InTx": tx} {
			if err != c.want { //nolint:errorlint // its own error, alone
				e.Errorf("%s with a dead context: %v (%T), want %v", name, err, err, c.want)
			}
		}
	}
	e.wantRow("o", "pending", 1)
	e.wantJournal("o", "")
}
