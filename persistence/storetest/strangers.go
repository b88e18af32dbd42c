package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

func strangerChecks() []check {
	return []check{
		{name: "rows made elsewhere, at any version", run: strangerVersions},
		{name: "a status that is no state is ErrUnknownState, and nothing is written", run: strangerStatus},
		{name: "a status or version that is NULL", run: strangerNull},
		{name: "a row written behind the journal's back", run: strangerBent},
		{name: "a row put back by hand: the journal's versions are taken", run: strangerPutBack},
		{name: "a row put back by hand goes on behind the versions of all machines of its table", run: strangerPutBackShared},
	}
}

func strangerVersions(e *env) {
	e.open(order)
	for id, version := range map[string]int64{"zero": 0, "one": 1, "high": 41, "minus": -7, "huge": 1 << 40} {
		e.insert(engine.Row{"id": id, "status": "pending", "version": version, "amount": 5, "currency": "EUR"})
		e.wantRow(id, "pending", version)
		e.wantJournal(id)
		res := e.apply("pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
		if res.From != "pending" || res.Version != version+1 {
			e.Errorf("pay %s = %+v, want version %d", id, res, version+1)
		}
		res = e.apply("cancel", id, nil)
		if res.From != "paid" || res.Version != version+2 {
			e.Errorf("cancel %s = %+v, want from paid at version %d", id, res, version+2)
		}
		e.wantReplay(e.fire("pay", id, engine.Args{"payment_ref": "x"}, engine.WithKey("k")), "pending", "paid", version+1, "cancelled")
		e.wantJournal(id, "pay", "cancel")
	}
}

func strangerStatus(e *env) {
	e.need(e.h.Features.Loose, "table that takes any status")
	e.open(order)
	e.b.Loosen(e.T, e.m.Definition())
	for _, status := range []string{"archived_v1", "", "PENDING", "Pending", "pending ", " pending", "paid\n", "pend", "it's ? $1", "状态"} {
		id := "s" + status
		e.insert(engine.Row{"id": id, "status": status, "version": 4, "amount": 1, "currency": "CNY"})
		_, err := e.m.Get(e.Context(), id)
		e.wantError(err, engine.ErrUnknownState)
		for _, call := range []struct {
			transition string
			args       engine.Args
		}{{"pay", engine.Args{"payment_ref": "x"}}, {"cancel", nil}, {"ship", nil}} {
			detail := e.refuse(engine.ErrUnknownState, call.transition, id, call.args)
			if detail.ID != id || detail.Version != 4 || !strings.Contains(detail.Error(), strconv.Quote(status)) {
				e.Errorf("status %q: the error says %+v: %v", status, detail, detail)
			}
		}
		e.refuse(engine.ErrUnknownState, "ship", id, nil, engine.WithVersion(4))
		e.wantError(e.m.Can(e.Context(), id, "cancel", nil), engine.ErrUnknownState)
		rows, err := e.b.Rows(e.Context(), e.m.Definition())
		e.must(err)
		if rows[id] != (RawRow{Status: status, Version: int64(4)}) {
			e.Errorf("status %q: the row is now %+v", status, rows[id])
		}
	}
}

func strangerNull(e *env) {
	e.need(e.h.Features.Nulls, "table that takes NULL for status or version")
	e.open(order)
	e.b.Loosen(e.T, e.m.Definition())
	e.insert(engine.Row{"id": "s", "status": nil, "version": 1, "amount": 1, "currency": "CNY"})
	detail := e.refuse(engine.ErrUnknownState, "cancel", "s", nil)
	if !strings.Contains(detail.Error(), "NULL") {
		e.Errorf("the error does not say NULL: %v", detail)
	}
	_, err := e.m.Get(e.Context(), "s")
	e.wantError(err, engine.ErrUnknownState)
	e.insert(engine.Row{"id": "v", "status": "pending", "version": nil, "amount": 1, "currency": "CNY"})
	for _, opts := range [][]engine.CallOption{nil, {engine.WithVersion(1)}, {engine.WithKey("k")}} {
		_, err := e.m.Fire(e.Context(), "pay", "v", engine.Args{"payment_ref": "x"}, opts...)
		if err == nil || !strings.Contains(err.Error(), "version") || !strings.Contains(err.Error(), "NULL") {
			e.Errorf("Fire on version NULL: %v", err)
		}
	}
	if _, err := e.m.Get(e.Context(), "v"); err == nil || !strings.Contains(err.Error(), "NULL") {
		e.Errorf("Get of version NULL: %v", err)
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	if rows["v"] != (RawRow{Status: "pending"}) || rows["s"] != (RawRow{Version: int64(1)}) {
		e.Errorf("the rows are now %+v", rows)
	}
	if len(e.entries("s")) != 0 {
		e.Error("an entry was written")
	}
}

func strangerBent(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	e.update("o", engine.Row{"status": "shipped", "version": 7, "payment_ref": "by hand"})
	e.wantRow("o", "shipped", 7)
	res := e.fire("pay", "o", engine.Args{"payment_ref": "x"})
	e.wantResult(res, engine.AlreadyPassed, "shipped", 7)
	if res := e.apply("complete", "o", nil); res.From != "shipped" || res.Version != 8 {
		e.Errorf("complete = %+v", res)
	}
	// The version was not touched: the next transition goes on from what is there.
	e.create(engine.Row{"id": "p", "amount": 1})
	e.update("p", engine.Row{"status": "paid"})
	if res := e.apply("ship", "p", nil); res.From != "paid" || res.Version != 2 {
		e.Errorf("ship = %+v", res)
	}
}

func strangerPutBack(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	e.apply("pay", "o", pay, engine.WithKey("k"))
	e.remove("o")
	e.insert(engine.Row{"id": "o", "status": "pending", "version": 1, "amount": 1, "currency": "CNY"})
	e.exempt["order/o"] = bent
	// Both the key and the version are in the journal: the key is the answer.
	e.wantReplay(e.fire("pay", "o", pay, engine.WithKey("k")), "pending", "paid", 2, "pending")
	_, err := e.m.Fire(e.Context(), "cancel", "o", nil)
	if err == nil {
		e.Fatal("version 2 was reached twice")
	}
	for _, kind := range kinds() {
		if errors.Is(err, kind) {
			e.Errorf("a fatal error matches %q: %v", kind, err)
		}
	}
	for _, word := range []string{"version", "UPDATE", "2", "1"} {
		if !strings.Contains(err.Error(), word) {
			e.Errorf("the error does not say %q: %v", word, err)
		}
	}
	e.wantRow("o", "pending", 1)
	e.wantJournal("o", "", "pay")
	// Mended as the error says.
	e.update("o", engine.Row{"version": 2})
	e.wantResult(e.apply("cancel", "o", nil), engine.Applied, "cancelled", 3)
}

func strangerPutBackShared(e *env) {
	e.open(parcel, label)
	labels := e.machines["label"]
	e.create(engine.Row{"id": "p", "weight": 3})
	_, err := labels.Fire(e.Context(), "print", "p", nil)
	e.must(err)
	e.apply("go", "p", nil)
	e.update("p", engine.Row{"version": 1})
	e.exempt["parcel/p"], e.exempt["label/p"] = bent, bent
	_, err = labels.Fire(e.Context(), "peel", "p", nil)
	e.wantFatal(err)
	_, mend, ok := strings.Cut(fmt.Sprint(err), ": UPDATE ")
	b, isSQL := e.b.(*SQL)
	if !isSQL {
		if !strings.Contains(mend, "to version 3") {
			e.Errorf("%v: want it to name version 3", err)
		}
		e.update("p", engine.Row{"version": 3})
		return
	}
	mend, _, _ = strings.Cut(mend, ": ") // what the driver said
	if !ok || !strings.Contains(err.Error(), "its journal is at 3") {
		e.Fatalf("%v: want it to name both versions, and the statement that mends it", err)
	}
	e.must(b.exec(e.Context(), "UPDATE "+mend))
	res, err := labels.Fire(e.Context(), "peel", "p", nil)
	e.must(err)
	e.wantResult(res, engine.Applied, "blank", 4)
}
