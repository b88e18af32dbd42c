package storetest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/fsmgen/fsmgen/engine"
)

// sealed has arguments and fields whose values could be changed in place.
const sealed = `
machine: sealed
table: {name: sealeds}
fields:
  n: {type: int, default: 1}
  b: {type: bytes, nullable: true}
  j: {type: json, nullable: true}
initial: open
states: {open: , shut: }
transitions:
  seal:
    from: open
    to: shut
    args: {n: int, b: bytes, j: json, d: "bytes?"}
    set: {n: args.n, b: args.b, j: args.j}
    identity: [n, b, j]
    guard: may
    effect: does
    after: told
    duplicates: accept
  open: {from: shut, to: open}
`

// codeScribbles: what is written is what the journal and the caller hold, whatever the
// hooks make of the values they are shown, and each hook is shown them as they were.
func codeScribbles(e *env) {
	var seen []string
	scribble := func(ev engine.Event) error {
		seen = append(seen, fmt.Sprintf("%s %s", ev.Args, ev.Entity.Values))
		for _, values := range [][]any{ev.Args, ev.Entity.Values} {
			for i, v := range values {
				switch v := v.(type) {
				case []byte:
					v[0] = 'X'
				case json.RawMessage:
					v[1] = 'X'
				}
				values[i] = nil
			}
		}
		return nil
	}
	e.code = map[string]engine.Code{"sealed": {
		"may":  {Guard: func(_ context.Context, ev engine.Event) error { return scribble(ev) }},
		"does": {Effect: func(_ context.Context, _ engine.Tx, ev engine.Event) error { return scribble(ev) }},
		"told": {After: func(_ context.Context, ev engine.Event) error { return scribble(ev) }},
	}}
	e.open(sealed)
	seal := func(m *engine.Machine) (engine.Result, []byte) {
		e.Helper()
		b, j, d := []byte("abc"), json.RawMessage(`{"a":1}`), []byte("def")
		args := engine.Args{"n": 7, "b": b, "j": j, "d": d}
		e.must(m.Can(e.Context(), "s", "seal", args))
		res, err := m.Fire(e.Context(), "seal", "s", args)
		e.must(err)
		if string(b) != "abc" || string(j) != `{"a":1}` || string(d) != "def" {
			e.Errorf("the caller's values are %q, %s, %q", b, j, d)
		}
		return res, b
	}
	check := func(version int64, hooks int) {
		e.Helper()
		row, err := e.m.Get(e.Context(), "s")
		e.must(err)
		e.wantValues(row.Row(), engine.Row{"n": int64(7), "b": []byte("abc"), "j": json.RawMessage(`{"a":1}`)})
		if row.Version != version {
			e.Errorf("the row is at version %d, want %d", row.Version, version)
		}
		entries := e.entries("s")
		if got := string(entries[len(entries)-1].Args); got != `{"b":"YWJj","d":"ZGVm","j":{"a":1},"n":7}` {
			e.Errorf("the journal holds %s", got)
		}
		if len(seen) != hooks {
			e.Fatalf("the hooks were shown %q", seen)
		}
		for _, s := range seen {
			if s != seen[0] || contains(s, "X") {
				e.Errorf("the hooks were shown %q", seen)
			}
		}
		seen = nil
		res := e.fire("seal", "s", engine.Args{"n": 7, "b": []byte("abc"), "j": json.RawMessage(`{"a":1}`)})
		e.wantResult(res, engine.AlreadyReached, "shut", version)
	}
	e.create(engine.Row{"id": "s", "b": []byte("old"), "j": json.RawMessage(`{"o":0}`)})
	seal(e.m)
	check(2, 4)
	for i, form := range e.h.Features.Forms {
		e.apply("open", "s", nil)
		tx := e.begin(form, 0)
		res, b := seal(e.m.In(tx.Tx))
		copy(b, "YYY") // the caller may use it again before the commit
		e.must(tx.Commit())
		e.must(res.AfterCommit(e.Context()))
		check(int64(4+2*i), 4)
	}
}
