package storetest

import (
	"math"
	"strings"

	"github.com/fsmgen/fsmgen/engine"
)

func createChecks() []check {
	return []check{
		{name: "tells where the row is and records it", run: createTells},
		{name: "same content again is AlreadyReached, wherever the row is by now", run: createAgain},
		{name: "other content is ErrMismatch", run: createMismatch},
		{name: "a key is Replayed, also when the row is gone", run: createKey},
		{name: "a key used for something else is ErrKeyReused", run: createKeyReused},
		{name: "deleted and created again goes on at the last version + 1", run: createAfterDelete},
		{name: "defaults of every type", run: createDefaults},
		{name: "several initial states", run: createInitial},
		{name: "ids that are integers", run: createIntIDs},
		{name: "ids compare by bytes", run: createOddIDs},
		{name: "what does not fit is ErrInvalidArgs and leaves nothing", run: createInvalid},
		{name: "a row made elsewhere", run: createOverStranger},
	}
}

func createTells(e *env) {
	e.open(order)
	res := e.create(engine.Row{"id": "o-1", "amount": 9900}, engine.WithActor("shop"), engine.WithMeta(map[string]any{"ip": "::1"}))
	e.wantResult(res, engine.Applied, "pending", 1)
	if res.ID != "o-1" || res.From != "" || res.To != "pending" || res.First != nil {
		e.Fatalf("result is %+v", res)
	}
	if len(res.Key) != 33 || res.Key[0] != '#' {
		e.Fatalf("the generated key is %q", res.Key)
	}
	e.wantRow("o-1", "pending", 1)
	first := e.wantJournal("o-1", "")[0]
	if first.Version != 1 || first.From != "" || first.To != "pending" || first.Key != res.Key || first.Actor != "shop" {
		e.Fatalf("entry is %+v", first)
	}
	e.wantJSON(first.Meta, `{"ip": "::1"}`)
	e.wantJSON(first.Args, `{"amount": 9900, "currency": "CNY"}`)
	e.wantRecent(first.At)
	raw, err := e.b.Journal(e.Context(), e.m.Definition())
	e.must(err)
	if topic := raw["o-1"][0].Topic; topic != "order.created" {
		e.Fatalf("topic is %q", topic)
	}
}

func createAgain(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o-1", "amount": 9900})
	again := func(state string, version int64, row engine.Row) {
		e.Helper()
		res, err := e.m.Create(e.Context(), row)
		e.must(err)
		e.wantResult(res, engine.AlreadyReached, state, version)
	}
	again("pending", 1, engine.Row{"id": "o-1", "amount": 9900})
	again("pending", 1, engine.Row{"id": "o-1", "amount": 9900, "currency": "CNY"}) // as the default filled it in
	e.apply("pay", "o-1", engine.Args{"payment_ref": "wx-1"})
	again("paid", 2, engine.Row{"id": "o-1", "amount": int32(9900)})
	e.wantJournal("o-1", "", "pay")
}

func createMismatch(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o-1", "amount": 9900})
	for name, row := range map[string]engine.Row{
		"another value":          {"id": "o-1", "amount": 9901},
		"not the default":        {"id": "o-1", "amount": 9900, "currency": "EUR"},
		"a value for what was ∅": {"id": "o-1", "amount": 9900, "payment_ref": "wx-1"},
	} {
		_, err := e.m.Create(e.Context(), row)
		if detail := e.wantError(err, engine.ErrMismatch); detail.ID != "o-1" || detail.Version != 1 || detail.State != "pending" {
			e.Errorf("%s: %+v", name, detail)
		}
	}
	e.wantRow("o-1", "pending", 1)
	e.wantJournal("o-1", "")
}

func createKey(e *env) {
	e.open(order)
	row := engine.Row{"id": "o-1", "amount": 9900}
	e.create(row, engine.WithKey("checkout-7"))
	e.apply("pay", "o-1", engine.Args{"payment_ref": "wx-1"})
	res, err := e.m.Create(e.Context(), row, engine.WithKey("checkout-7"))
	e.must(err)
	if res.Outcome != engine.Replayed || res.To != "pending" || res.Version != 1 || res.State != "paid" {
		e.Fatalf("Create again = %+v", res)
	}
	e.remove("o-1")
	res, err = e.m.Create(e.Context(), row, engine.WithKey("checkout-7"))
	e.must(err)
	if res.Outcome != engine.Replayed || res.ID != "o-1" || res.To != "pending" || res.State != "" {
		e.Fatalf("Create of a deleted row under its key = %+v, want Replayed", res)
	}
	if _, err := e.m.Get(e.Context(), "o-1"); err == nil {
		e.Fatal("a replay made the deleted row again")
	}
	e.wantJournal("o-1", "", "pay")
}

func createKeyReused(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o-1", "amount": 9900}, engine.WithKey("k"))
	_, err := e.m.Create(e.Context(), engine.Row{"id": "o-1", "amount": 1}, engine.WithKey("k"))
	if detail := e.wantError(err, engine.ErrKeyReused); detail.Key != "k" {
		e.Errorf("the error's key is %q", detail.Key)
	}
	e.refuse(engine.ErrKeyReused, "pay", "o-1", engine.Args{"payment_ref": "x"}, engine.WithKey("k"))
	e.apply("cancel", "o-1", nil, engine.WithKey("c"))
	_, err = e.m.Create(e.Context(), engine.Row{"id": "o-1", "amount": 9900}, engine.WithKey("c"))
	e.wantError(err, engine.ErrKeyReused)
	// Another row is another matter.
	e.create(engine.Row{"id": "o-2", "amount": 1}, engine.WithKey("k"))
}

func createAfterDelete(e *env) {
	e.open(order)
	e.create(engine.Row{"id": "o-1", "amount": 1})
	e.apply("pay", "o-1", engine.Args{"payment_ref": "a"})
	e.remove("o-1")
	res := e.create(engine.Row{"id": "o-1", "amount": 2})
	e.wantResult(res, engine.Applied, "pending", 3)
	e.wantRow("o-1", "pending", 3)
	// The earlier life is over: its payment is no payment of this row.
	e.refuse(engine.ErrNotAllowed, "ship", "o-1", nil)
	e.wantResult(e.apply("pay", "o-1", engine.Args{"payment_ref": "b"}), engine.Applied, "paid", 4)
	e.apply("ship", "o-1", nil)
	e.wantJournal("o-1", "", "pay", "", "pay", "ship")
	e.remove("o-1")
	e.create(engine.Row{"id": "o-1", "amount": 3})
	e.apply("cancel", "o-1", nil)
	e.refuse(engine.ErrNotAllowed, "pay", "o-1", engine.Args{"payment_ref": "b"})
	e.refuse(engine.ErrNotAllowed, "ship", "o-1", nil)
}

func createDefaults(e *env) {
	e.open(defaults)
	e.create(engine.Row{"id": "p"})
	row := e.rowOf("p")
	e.wantValues(row, engine.Row{"s": "it's ? $1 %s", "e": "", "i": int64(-7), "f": 0.1, "b": true, "d": dec("12.5"), "p": nil, "q": nil, "at": nil})
	e.wantRecent(timeOf(row["t"]))
	e.apply("use", "p", nil)
	row = e.rowOf("p")
	e.wantValues(row, engine.Row{"q": "it's ? $1 %s", "p": "lit'eral", "i": int64(42), "b": false, "f": 0.1, "s": "it's ? $1 %s"})
	e.wantRecent(timeOf(row["at"]))

	e.create(engine.Row{"id": "given", "s": "", "i": 0, "f": 0.0, "b": false, "d": "0"})
	e.wantValues(e.rowOf("given"), engine.Row{"s": "", "i": int64(0), "f": 0.0, "b": false, "d": dec("0")})
}

func createInitial(e *env) {
	e.open(counter)
	e.wantResult(e.create(engine.Row{"id": 1}), engine.Applied, "fresh", 1)
	e.wantResult(e.create(engine.Row{"id": 2, "status": "later"}), engine.Applied, "later", 1)
	res, err := e.m.Create(e.Context(), engine.Row{"id": 2, "status": "later"})
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "later", 1)
	for _, status := range []string{"active", "done", "nonsense", "20", "Later"} {
		_, err := e.m.Create(e.Context(), engine.Row{"id": 3, "status": status})
		e.wantError(err, engine.ErrInvalidArgs)
	}
	_, err = e.m.Get(e.Context(), "3")
	e.wantError(err, engine.ErrNotFound)
}

func createIntIDs(e *env) {
	e.open(counter)
	for _, id := range []any{7, int64(math.MaxInt64), "-5", int32(0), int64(math.MinInt64)} {
		res := e.create(engine.Row{"id": id})
		e.apply("start", res.ID, nil)
		e.wantRow(res.ID, "active", 2)
	}
	for _, id := range []string{"07", "+7", " 7", "7.0", "0x7", "9223372036854775808", "seven", "７", "-0"} {
		e.refuse(engine.ErrInvalidArgs, "start", id, nil)
		_, err := e.m.Create(e.Context(), engine.Row{"id": id})
		e.wantError(err, engine.ErrInvalidArgs)
	}
	rows, err := e.b.Rows(e.Context(), e.m.Definition())
	e.must(err)
	if len(rows) != 5 {
		e.Fatalf("rows are %v, want 5", rows)
	}
}

func createOddIDs(e *env) {
	e.open(order)
	ids := []string{
		"o-1", "O-1", "o-1 ", " o-1", "ö-1", "o\u0308-1", "订单-1", "🛒", "o'1", `o"1`, "o`1", "o%1", "o_1", `o\1`, "?", "$1", ":id", "--", ";", "\t", "0", "00", "1e3", "null",
		"İ", "i", "ß", "ss", "\u200d", strings.Repeat("x", 255), strings.Repeat("字", 85),
	}
	for _, id := range ids {
		e.create(engine.Row{"id": id, "amount": 1}, engine.WithKey("one key for all"))
	}
	for _, id := range ids {
		e.apply("pay", id, engine.Args{"payment_ref": id})
	}
	for _, id := range ids {
		e.wantRow(id, "paid", 2)
		if got := e.rowOf(id)["payment_ref"]; got != id {
			e.Errorf("row %q was paid by %q", id, got)
		}
	}
}

func createInvalid(e *env) {
	e.open(order)
	bad := map[string]engine.Row{
		"no id":               {"amount": 1},
		"empty id":            {"id": "", "amount": 1},
		"id of 256 bytes":     {"id": strings.Repeat("x", 256), "amount": 1},
		"id with NUL":         {"id": "a\x00b", "amount": 1},
		"id not UTF-8":        {"id": "a\xff", "amount": 1},
		"id of another type":  {"id": 1.5, "amount": 1},
		"missing field":       {"id": "x"},
		"nil for a field":     {"id": "x", "amount": nil},
		"unknown field":       {"id": "x", "amount": 1, "amuont": 1},
		"wrong type":          {"id": "x", "amount": "many"},
		"float for an int":    {"id": "x", "amount": 1.0},
		"string with NUL":     {"id": "x", "amount": 1, "currency": "a\x00"},
		"string not UTF-8":    {"id": "x", "amount": 1, "currency": "\xc3("},
		"status not initial":  {"id": "x", "amount": 1, "status": "paid"},
		"status unknown":      {"id": "x", "amount": 1, "status": "payed"},
		"version cannot be":   {"id": "x", "amount": 1, "version": 3},
		"uint64 out of int64": {"id": "x", "amount": uint64(math.MaxUint64)},
	}
	for name, row := range bad {
		_, err := e.m.Create(e.Context(), row)
		if err == nil {
			e.Errorf("%s: no error", name)
			continue
		}
		e.wantError(err, engine.ErrInvalidArgs)
	}
	for name, opt := range badOptions() {
		_, err := e.m.Create(e.Context(), engine.Row{"id": "x", "amount": 1}, opt)
		if err == nil {
			e.Errorf("%s: no error", name)
			continue
		}
		e.wantError(err, engine.ErrInvalidArgs)
	}
	_, err := e.m.Create(e.Context(), engine.Row{"id": "x", "amount": 1}, engine.WithVersion(1))
	e.wantError(err, engine.ErrInvalidArgs)
	e.wantNothing()
}

// badOptions are call options that no journaled call accepts.
func badOptions() map[string]engine.CallOption {
	return map[string]engine.CallOption{
		"empty key":              engine.WithKey(""),
		"key of 256 bytes":       engine.WithKey(strings.Repeat("k", 256)),
		"key of 300 bytes":       engine.WithKey(strings.Repeat("k", 300)),
		"key with NUL":           engine.WithKey("a\x00b"),
		"key not UTF-8":          engine.WithKey("\xff"),
		"key like a derived one": engine.WithKey("=pay:1:a"),
		"key #":                  engine.WithKey("#"),
		"key # short":            engine.WithKey("#0123456789abcdef"),
		"key # not hex":          engine.WithKey("#" + strings.Repeat("g", 32)),
		"key # upper case":       engine.WithKey("#" + strings.Repeat("A", 32)),
		"actor of 256 bytes":     engine.WithActor(strings.Repeat("a", 256)),
		"actor with NUL":         engine.WithActor("\x00"),
		"meta that is no JSON":   engine.WithMeta(func() {}),
	}
}

func createOverStranger(e *env) {
	e.open(order)
	e.insert(engine.Row{"id": "s", "status": "paid", "version": 41, "amount": 5, "currency": "EUR", "payment_ref": "hand"})
	// Fields that no transition writes must be equal; the others tell nothing.
	res, err := e.m.Create(e.Context(), engine.Row{"id": "s", "amount": 5, "currency": "EUR", "payment_ref": "other"})
	e.must(err)
	e.wantResult(res, engine.AlreadyReached, "paid", 41)
	_, err = e.m.Create(e.Context(), engine.Row{"id": "s", "amount": 6})
	e.wantError(err, engine.ErrMismatch)
	e.wantJournal("s")
}
