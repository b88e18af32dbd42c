package storetest

import (
	"slices"

	"github.com/fsmgen/fsmgen/engine"
)

func readChecks() []check {
	return []check{
		{name: "Get gives the row in the definition's order", run: readGet},
		{name: "Journal is in version order, of that row alone", run: readJournal},
		{name: "Can gives the error the call would give, and changes nothing", run: readCan},
		{name: "the table is verified when the machine is made", run: readBind},
	}
}

func readGet(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 7})
	got, err := e.m.Get(e.Context(), "o")
	e.must(err)
	if got.ID != "o" || got.State != "pending" || got.Version != 1 || len(got.Values) != 4 {
		e.Fatalf("Get = %+v", got)
	}
	e.wantValues(got.Row(), engine.Row{"amount": int64(7), "currency": "CNY", "payment_ref": nil, "paid_at": nil})
	for _, id := range []string{"", "\x00", "\xff"} {
		_, err := e.m.Get(e.Context(), id)
		e.wantError(err, engine.ErrInvalidArgs)
	}
}

func readJournal(e *env) {
	e.open(ticket)
	for _, id := range []string{"a", "b", "A"} {
		e.create(engine.Row{"id": id})
	}
	for range 12 {
		e.apply("touch", "a", engine.Args{"note": "n"})
	}
	e.apply("hold", "b", engine.Args{"by": "x"})
	entries := e.entries("a")
	if len(entries) != 13 || !slices.IsSortedFunc(entries, func(x, y engine.Entry) int { return int(x.Version - y.Version) }) {
		e.Fatalf("journal of a is %+v", entries)
	}
	seen := map[int64]bool{}
	for i, entry := range entries {
		if entry.Version != int64(i+1) || seen[entry.Seq] || entry.Fingerprint == "" || entry.Attempt == "" {
			e.Errorf("entry %d is %+v", i, entry)
		}
		seen[entry.Seq] = true
	}
	e.wantJournal("b", "", "hold")
	e.wantJournal("A", "")
	e.wantJournal("nobody")
}

func readCan(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o", "amount": 1})
	pay := engine.Args{"payment_ref": "x"}
	can := func(kind error, transition, id string, args engine.Args) {
		e.Helper()
		err := e.m.Can(e.Context(), id, transition, args)
		switch {
		case kind == nil:
			e.must(err)
		case err == nil:
			e.Fatalf("Can(%s %s) = nil, want %q", transition, id, kind)
		default:
			e.wantError(err, kind)
		}
	}
	can(nil, "pay", "o", pay)
	can(nil, "cancel", "o", nil)
	can(engine.ErrNotAllowed, "ship", "o", nil)
	can(engine.ErrNotFound, "pay", "nobody", pay)
	can(engine.ErrInvalidArgs, "pay", "o", nil)
	can(engine.ErrInvalidArgs, "pya", "o", nil)
	e.apply("pay", "o", pay)
	can(nil, "pay", "o", pay) // as a duplicate
	can(nil, "refund", "o", nil)
	e.wantRow("o", "paid", 2)
	e.wantJournal("o", "", "pay")
	e.apply("ship", "o", nil)
	can(nil, "pay", "o", pay)
	can(engine.ErrNotAllowed, "cancel", "o", nil)
}

// readBind binds machines that the store has no tables for.
func readBind(e *env) {
	e.need(!e.h.Features.NoDDL, "tables that could be missing")
	e.open(order)
	if _, err := e.eng.Machine(e.Context(), e.parse(ticket)); err == nil {
		e.Error("a machine without a table was made")
	}
	if _, err := e.eng.Machine(e.Context(), nil); err == nil {
		e.Error("a machine without a definition was made")
	}
}
