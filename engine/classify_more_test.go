package engine

import (
	"encoding/json"
	"testing"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

func TestClassifyKeySeen(t *testing.T) {
	r := rulesOf(t, orderWith(", identity: [ref]"))
	pay := call{fire: "pay", args: Args{"amount": 10, "ref": "r-1"}, key: "k"}
	journal := then(created, entry("pay", "pending", "paid").of(t, r, pay), entry("ship", "paid", "shipped"))
	checkAll(t, r, []judgement{
		{"same request", pay, view{state: "shipped", journal: journal}, Replayed, 2, nil},
		{"same request, the row is gone", pay, view{journal: journal}, Replayed, 2, nil},
		{"same request, unknown state since", pay, view{state: "?x", version: 3, journal: journal}, Replayed, 2, nil},
		{"same request, a source again", pay, view{state: "pending", journal: then(journal, entry("dispute", "shipped", "disputed"), entry("reopen", "disputed", "pending"))}, Replayed, 2, nil},
		{"same request, another version named", call{fire: "pay", args: pay.args, key: "k", version: 7}, view{state: "shipped", journal: journal}, Replayed, 2, nil},
		{"same request, the row was created again", pay, view{state: "pending", journal: then(journal, entry("", "", "pending"))}, Replayed, 2, nil},
		{"other arguments", call{fire: "pay", args: Args{"amount": 11, "ref": "r-1"}, key: "k"}, view{state: "shipped", journal: journal}, ErrKeyReused, 0, []string{`"k"`, "version 2", `"amount":10`, `"amount":11`}},
		{"other transition", call{fire: "ship", key: "k"}, view{state: "shipped", journal: journal}, ErrKeyReused, 0, []string{"pay", "ship"}},
		{"the key of the creation", call{fire: "ship", key: "k"}, view{state: "pending", journal: []Entry{{To: "pending", Key: "k", Fingerprint: "f"}}}, ErrKeyReused, 0, []string{"the creation"}},
		{"another key", call{fire: "ship", key: "other"}, view{state: "shipped", journal: journal}, AlreadyReached, 3, nil},
	})
}

// A call that finds its own attempt in the journal was applied: only the reply got lost.
func TestClassifyOwnAttempt(t *testing.T) {
	r := rulesOf(t, orderWith(""))
	for _, key := range []string{"k", ""} {
		q := requestFor(t, r, call{fire: "ship", key: key})
		e := entry("ship", "paid", "shipped")
		e.Attempt, e.Version = q.call.Attempt, 3
		v := r.classify(q, &Snapshot{Found: true, Row: RowState{State: r.byName["cancelled"], Version: 4}, ByKey: &e})
		if v.err != nil || v.outcome != Applied || v.first != &e {
			t.Errorf("key %q: outcome %v, error %v, want Applied by %v", key, v.outcome, v.err, e)
		}
	}
}

// Only a seen key makes a duplicate where the transition declares `key`.
func TestClassifyDeclaredKey(t *testing.T) {
	r := rulesOf(t, ballotText)
	vote := func(by string, weight int) call { return call{fire: "vote", args: Args{"by": by, "weight": weight}} }
	open := []Entry{entry("", "", "open")}
	voted := then(open, entry("vote", "open", "open").of(t, r, vote("ann", 1)))
	closed := then(voted, entry("vote", "open", "closed").of(t, r, vote("bob", 1)))
	votes := func(n int64) Row { return Row{"votes": n, "needed": int64(2)} }
	checkAll(t, r, []judgement{
		{"the same vote", vote("ann", 1), view{state: "closed", journal: closed}, Replayed, 2, nil},
		{"the same voter, another vote", vote("ann", 5), view{state: "closed", journal: closed}, ErrMismatch, 0, []string{"=vote:3:ann", `"weight":1`, `"weight":5`}},
		{"another voter while open", vote("cid", 1), view{state: "open", fields: votes(1), journal: voted}, errAgain, 0, nil},
		{"another voter when closed", vote("cid", 1), view{state: "closed", fields: votes(2), journal: closed}, ErrNotAllowed, 0, []string{"only a seen key", "closed (version 3)"}},
		{"another voter when closed, a version named", call{fire: "vote", args: Args{"by": "cid", "weight": 1}, version: 1}, view{state: "closed", journal: closed}, ErrConflict, 0, nil},
		{"a required key not seen, in the target", call{fire: "close", key: "k"}, view{state: "closed", journal: closed}, ErrNotAllowed, 0, []string{"only a seen key"}},
		{"a required key not seen, another version", call{fire: "close", key: "k", version: 2}, view{state: "closed", journal: closed}, ErrConflict, 0, nil},
		{"an operation overflows", vote("cid", 1), view{state: "open", fields: votes(1<<63 - 1), journal: voted}, ErrRejected, 0, []string{"votes + args.weight"}},
	})
}

func TestClassifyRejections(t *testing.T) {
	r := rulesOf(t, `
machine: m
table: {name: m}
fields: {a: {type: int, default: 0}, b: {type: int, default: 0}}
initial: s
states: {s: , x: {final: true}, y: {final: true}, z: {final: true}}
transitions:
  split:  {from: s, to: [{state: x, when: a > 10}, {state: y, when: a < 0}]}
  divide: {from: s, to: z, set: {b: a / b}}
  several:
    moves:
      - {from: s, to: x, when: a == 1}
      - {from: s, to: y, when: a == 2}
`)
	at := func(a, b int64) view { return view{state: "s", fields: Row{"a": a, "b": b}, version: 3} }
	checkAll(t, r, []judgement{
		{"no branch holds", call{fire: "split"}, at(5, 0), ErrRejected, 0, []string{"no branch holds", "a > 10", "a < 0", "5"}},
		{"a branch holds", call{fire: "split"}, at(11, 0), errAgain, 0, nil},
		{"division by zero", call{fire: "divide"}, at(5, 0), ErrRejected, 0, []string{"set b", "a / b"}},
		{"division", call{fire: "divide"}, at(5, 1), errAgain, 0, nil},
		{"no move holds", call{fire: "several"}, at(3, 0), ErrRejected, 0, []string{"a == 1", "a == 2"}},
		{"the second move holds", call{fire: "several"}, at(2, 0), errAgain, 0, nil},
		{"a version comes before a rejection", call{fire: "split", version: 2}, at(5, 0), ErrConflict, 0, nil},
	})
}

func TestClassifyIdentity(t *testing.T) {
	r := rulesOf(t, orderWith(", identity: [ref]"))
	pay := func(ref any) call {
		if ref == nil {
			return call{fire: "pay", args: Args{"amount": 10}}
		}
		return call{fire: "pay", args: Args{"amount": 10, "ref": ref}}
	}
	paidBy := func(ref any) []Entry { return then(created, entry("pay", "pending", "paid").of(t, r, pay(ref))) }
	field := func(state string, ref any, journal []Entry) view {
		return view{state: state, version: 9, fields: Row{"ref": ref}, journal: journal}
	}
	passed := then(paidBy("r-1"), entry("ship", "paid", "shipped"))
	checkAll(t, r, []judgement{
		{"reached, equal to its entry", pay("r-1"), field("paid", "changed since", paidBy("r-1")), AlreadyReached, 2, nil},
		{"reached, unlike its entry", pay("r-2"), field("paid", "r-2", paidBy("r-1")), ErrMismatch, 0, []string{`"r-1"`, `"r-2"`, "version 2"}},
		{"reached, no entry, equal to the row", pay("r-1"), field("paid", "r-1", nil), AlreadyReached, 0, nil},
		{"reached, no entry, unlike the row", pay("r-2"), field("paid", "r-1", nil), ErrMismatch, 0, []string{"the row's ref", `"r-1"`, `"r-2"`}},
		{"passed, equal to its entry", pay("r-1"), field("shipped", nil, passed), AlreadyPassed, 3, nil},
		{"passed, unlike its entry", pay("r-2"), field("shipped", "r-2", passed), ErrMismatch, 0, nil},
		{"passed, no entry, equal to the row", pay("r-1"), field("shipped", "r-1", nil), AlreadyPassed, 0, nil},
		{"passed, no entry, unlike the row", pay("r-1"), field("shipped", "r-2", nil), ErrMismatch, 0, nil},
		{"nil equals nil in its entry", pay(nil), field("paid", "x", paidBy(nil)), AlreadyReached, 2, nil},
		{"nil is not a value of its entry", pay(nil), field("paid", nil, paidBy("r-1")), ErrMismatch, 0, []string{"nil"}},
		{"a value is not nil in its entry", pay("r-1"), field("paid", "r-1", paidBy(nil)), ErrMismatch, 0, nil},
		{"nil equals NULL", pay(nil), field("paid", nil, nil), AlreadyReached, 0, nil},
		{"a value is not NULL", pay("r-1"), field("paid", nil, nil), ErrMismatch, 0, nil},
		{"an empty text is not NULL", pay(""), field("paid", nil, nil), ErrMismatch, 0, nil},
		{"no answer for a state that is neither", pay("r-2"), field("cancelled", "r-1", cancelled), ErrNotAllowed, 0, nil},
		{"an undone entry does not count: the row does", pay("r-2"), view{
			state: "paid", version: 9, fields: Row{"ref": "r-2"},
			journal: then(reopened, entry("adjust", "pending", "paid")),
		}, AlreadyReached, 5, nil},
	})
}

func TestClassifyDuplicatesOwn(t *testing.T) {
	r := rulesOf(t, orderWith(", duplicates: own", "  settle: {from: paid, to: paid}\n"))
	pay := call{fire: "pay", args: Args{"amount": 10}}
	checkAll(t, r, []judgement{
		{"entered by its own", pay, view{state: "paid", journal: paid}, AlreadyReached, 2, nil},
		{"entered by its own, stayed by another", pay, view{state: "paid", journal: then(paid, entry("settle", "paid", "paid"))}, AlreadyReached, 2, nil},
		{"entered by another, its own before", pay, view{state: "paid", journal: resolved}, AlreadyPassed, 4, nil},
		{"entered by another alone", pay, view{state: "paid", journal: then(created, entry("adjust", "pending", "paid"))}, ErrNotAllowed, 0, nil},
		{"entered by hand", pay, view{state: "paid", version: 5, journal: created}, ErrNotAllowed, 0, nil},
		{"without journal", pay, view{state: "paid", version: 5}, ErrNotAllowed, 0, nil},
		{"passed by its entry", pay, view{state: "shipped", journal: shipped}, AlreadyPassed, 3, nil},
		{"passed by the graph alone", pay, view{state: "shipped", version: 5}, ErrNotAllowed, 0, nil},
		{"its entry was undone", pay, view{state: "cancelled", journal: undone}, ErrNotAllowed, 0, nil},
	})
}

func TestClassifyOwnSelfMove(t *testing.T) {
	r := rulesOf(t, `
machine: m
table: {name: m}
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  go:   {from: a, to: b}
  poke: {from: a, to: [{state: b}], duplicates: own}
  stay: {from: b, to: b, key: required}
  end:  {from: b, to: c}
`)
	journal := []Entry{entry("", "", "a"), entry("poke", "a", "b"), entry("stay", "b", "b")}
	checkAll(t, r, []judgement{
		{"its own entered, another stayed", call{fire: "poke"}, view{state: "b", journal: journal}, AlreadyReached, 2, nil},
		{"another entered", call{fire: "poke"}, view{state: "b", journal: []Entry{entry("", "", "a"), entry("go", "a", "b")}}, ErrNotAllowed, 0, nil},
	})
}

func TestClassifyDuplicatesRefuse(t *testing.T) {
	r := rulesOf(t, orderWith(", duplicates: refuse, identity: [ref]"))
	pay := call{fire: "pay", args: Args{"amount": 10, "ref": "r"}, key: "k"}
	journal := then(created, entry("pay", "pending", "paid").of(t, r, pay))
	other := call{fire: "pay", args: pay.args}
	checkAll(t, r, []judgement{
		{"a seen key is replayed", pay, view{state: "paid", journal: journal}, Replayed, 2, nil},
		{"in the target", other, view{state: "paid", journal: journal}, ErrNotAllowed, 0, []string{"paid"}},
		{"in the target, other identity", call{fire: "pay", args: Args{"amount": 10, "ref": "s"}}, view{state: "paid", journal: journal}, ErrNotAllowed, 0, nil},
		{"passed", other, view{state: "shipped", journal: then(journal, entry("ship", "paid", "shipped"))}, ErrNotAllowed, 0, nil},
		{"another version", call{fire: "pay", args: pay.args, version: 7}, view{state: "paid", journal: journal}, ErrConflict, 0, nil},
	})
}

// A machine without journal knows the row alone.
func TestClassifyBare(t *testing.T) {
	r := rulesOf(t, orderWith(", identity: [ref]", "journal: false\n"))
	at := func(version int64) call {
		return call{fire: "pay", args: Args{"amount": 10, "ref": "r"}, version: version}
	}
	row := func(state string, version int64, ref string) view {
		return view{state: state, version: version, fields: Row{"ref": ref, "amount": int64(10)}}
	}
	checkAll(t, r, []judgement{
		{"source", at(0), row("pending", 1, ""), errAgain, 0, nil},
		{"reached", at(0), row("paid", 2, "r"), AlreadyReached, 0, nil},
		{"reached by another request", at(0), row("paid", 2, "s"), ErrMismatch, 0, nil},
		{"passed by the graph", at(0), row("shipped", 3, "r"), AlreadyPassed, 0, nil},
		{"not passed", at(0), row("cancelled", 3, "r"), ErrNotAllowed, 0, nil},
		{"one version on, in the target", at(1), row("paid", 2, "r"), AlreadyReached, 0, nil},
		{"two versions on, in the target", at(1), row("paid", 3, "r"), ErrConflict, 0, nil},
		{"one version on, elsewhere", at(1), row("cancelled", 2, "r"), ErrConflict, 0, nil},
		{"the row's version, in the target", at(2), row("paid", 2, "r"), AlreadyReached, 0, nil},
	})
}

// Entries written before a state was renamed name it by an alias.
func TestClassifyRenamedState(t *testing.T) {
	r := rulesOf(t, `
machine: m
table: {name: m}
initial: a
states: {a: , b: {aliases: [old_b]}, c: {final: true}}
transitions:
  go:  {from: a, to: b, duplicates: own}
  end: {from: b, to: c}
`)
	j := judgement{call: call{fire: "go"}, view: view{state: "b", journal: []Entry{entry("", "", "a"), entry("go", "a", "old_b")}}, want: AlreadyReached, first: 2}
	j.check(t, r)
}

// A column of JSON may write numbers in its own way. Of what the journal holds the text counts.
func TestEqualStored(t *testing.T) {
	for _, c := range []struct {
		stored, given string
		want          bool
	}{
		{"100", "1e2", true},
		{"100", "1E+2", true},
		{"0.010", "1e-2", true},
		{"0", "-0.00e7", true},
		{"-1.5", "-15e-1", true},
		{"1.5", "-1.5", false},
		{"10", "1", false},
		{"100", "1e3", false},
		{"12345678901234567890.5", "12345678901234567890.50", true},
		{"12345678901234567891", "12345678901234567890", false},
		{"1e99999999999999999999", "1e99999999999999999999", true},
		{"1e99999999999999999999", "1e99999999999999999998", false},
		{`{"a": [1, {"b": 20}], "c": null}`, `{"c":null,"a":[1.0,{"b":2e1}]}`, true},
		{`{"a": 1}`, `{"a":1.0,"b":1}`, false},
		{`{"a": 1}`, `{"b":1.0}`, false},
		{`[1, 2]`, `[2.0, 1]`, false},
		{`[1]`, `{"0":1}`, false},
		{`"1"`, `1`, false},
		{`"1e2"`, `"100"`, false},
		{`"\u00e4"`, `"ä"`, true},
		{`true`, `1`, false},
		{`null`, `0`, false},
		{`{"a": 2}`, `{"a":1,"a":2.0}`, true},
	} {
		if got := equalStored(expr.JSON, json.RawMessage(c.stored), json.RawMessage(c.given)); got != c.want {
			t.Errorf("%s is %s: %v, want %v", c.stored, c.given, got, c.want)
		}
	}
	if equalStored(expr.JSON, nil, json.RawMessage("null")) || !equalStored(expr.JSON, nil, nil) || equalStored(expr.Bytes, []byte("1"), []byte("1.0")) {
		t.Error("NULL is nil alone, and bytes are no JSON")
	}
}
