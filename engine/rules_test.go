package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
)

// looplab overwrites a second edge of one event from one state; here it is an error.
func TestDuplicateEdgesAreRefused(t *testing.T) {
	def := *define(t, orderWith(""))
	pay, _ := def.Transition("pay")
	twice := *pay
	twice.Moves = append(twice.Moves[:1:1], definitions.Move{From: []string{"pending"}, Targets: []definitions.Target{{State: "paid"}}})
	def.Transitions = []definitions.Transition{twice, twice}
	if _, err := NewFSM(&def, "pending"); err == nil {
		t.Error("two transitions of one name and source must be an error")
	} else {
		wantText(t, err, "pay", `"pending" twice`, `"paid"`)
	}
	if _, err := NewRules(&def); err == nil {
		t.Error("NewRules must refuse them too")
	}
	if _, err := NewFSM(&def, "nowhere"); err == nil {
		t.Error("NewFSM in an unknown state must be an error")
	}
}

func TestNewFSM(t *testing.T) {
	f, err := NewFSM(define(t, orderWith("")), "paid")
	if err != nil {
		t.Fatal(err)
	}
	for event, can := range map[string]bool{"ship": true, "cancel": true, "dispute": true, "pay": false, "reopen": false} {
		if f.Can(event) != can {
			t.Errorf("from paid, %s is possible: %v, want %v", event, f.Can(event), can)
		}
	}
	if err := f.Event(context.Background(), "ship"); err != nil || f.Current() != "shipped" {
		t.Errorf("after ship: %s, %v", f.Current(), err)
	}
	ballot, err := NewFSM(define(t, ballotText), "open")
	if err != nil {
		t.Fatal(err)
	}
	if !ballot.Can("vote→closed") || !ballot.Can("vote→open") || ballot.Can("vote") {
		t.Error("a transition with two targets has an event per target")
	}
}

// A move from "*" behind a specific one without condition is no event of its own, and
// makes no target.
func TestHiddenMoves(t *testing.T) {
	def := define(t, `
machine: errand
table: {name: errands}
fields: {tries: {type: int}}
initial: waiting
states: {waiting: , running: , closed: {final: true}, paused: {final: true}}
transitions:
  start: {from: waiting, to: running}
  close: {from: "*", to: closed}
  stop:
    moves:
      - {from: [waiting, running], to: paused}
      - {from: "*", to: closed}
  end:
    moves:
      - {from: running, to: paused, when: tries < 3}
      - {from: "*", to: closed}
`)
	f, err := NewFSM(def, "running")
	if err != nil {
		t.Fatal(err)
	}
	for event, can := range map[string]bool{"stop": true, "stop→closed": false, "stop→paused": false, "end→closed": true, "end→paused": true, "end": false} {
		if f.Can(event) != can {
			t.Errorf("from running, %s is possible: %v, want %v", event, f.Can(event), can)
		}
	}
	r, err := NewRules(def)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Can("stop", "e", "closed", 3, []any{int64(0)}, nil); !errors.Is(err, ErrNotAllowed) {
		t.Errorf("stop of a row that is closed: %v, want ErrNotAllowed: it leads there from nowhere", err)
	}
}

// wideText is a machine of n states: a ring that can be left from everywhere.
func wideText(n int) string {
	var b strings.Builder
	b.WriteString("machine: wide\ntable: {name: wide}\ninitial: s0\nstates:\n")
	for i := range n {
		fmt.Fprintf(&b, "  s%d:\n", i)
	}
	b.WriteString("  end: {final: true}\ntransitions:\n  quit: {from: \"*\", to: end}\n")
	for i := range n {
		fmt.Fprintf(&b, "  t%d: {from: s%d, to: s%d}\n", i, i, (i+1)%n)
	}
	return b.String()
}

// Five thousand states, each with its own transition, compile in an eighth of a second,
// and with the race detector in a whole one. Work that grows with the square of the states
// takes twenty.
func TestFiveThousandStates(t *testing.T) {
	bound := time.Second
	if raceDetector {
		bound = 5 * time.Second
	}
	for name, text := range map[string]string{"a ring": wideText(5000), "a chain": strings.Replace(wideText(5000), "to: s0}\n", "to: end}\n", 1)} {
		def := define(t, text)
		start := time.Now()
		r, err := NewRules(def)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > bound {
			t.Errorf("%s: NewRules took %v, want at most %v", name, took, bound)
		}
		if len(r.transitions) != 5001 {
			t.Errorf("%s: %d transitions", name, len(r.transitions))
		}
	}
}

func BenchmarkNewRules(b *testing.B) {
	for _, n := range []int{10, 100, 1000, 5000} {
		def := define(b, wideText(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if _, err := NewRules(def); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The pure Can answers without I/O, and where the state decides without allocation.
func TestCanPure(t *testing.T) {
	r := rulesOf(t, orderWith(", identity: [ref]"))
	row := func(amount int64) []any { return values(r, Row{"amount": amount, "ref": "r"}) }
	pay := func(amount int64, ref any) []any { return []any{amount, ref} }
	for _, c := range []struct {
		name, fire, state string
		fields, args      []any
		want              error
	}{
		{"allowed by the state", "ship", "paid", row(1), nil, nil},
		{"allowed by the condition", "pay", "pending", row(1), pay(1, nil), nil},
		{"rejected by the condition", "pay", "pending", row(2), pay(1, nil), ErrRejected},
		{"a duplicate", "pay", "paid", row(1), pay(1, "r"), nil},
		{"another request", "pay", "paid", row(1), pay(1, "s"), ErrMismatch},
		{"not allowed", "ship", "pending", row(1), nil, ErrNotAllowed},
		{"unknown state", "ship", "gone", row(1), nil, ErrUnknownState},
		{"unknown transition", "fly", "paid", row(1), nil, ErrInvalidArgs},
		{"missing args", "pay", "paid", row(1), nil, ErrInvalidArgs},
		{"ill-typed args", "pay", "pending", row(1), []any{"x", nil}, ErrInvalidArgs},
	} {
		if err := r.Can(c.fire, "o-1", c.state, 3, c.fields, c.args); !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	fields := row(1)
	if n := testing.AllocsPerRun(100, func() { _ = r.Can("ship", "o-1", "paid", 3, fields, nil) }); n != 0 {
		t.Errorf("Can allocates %v times", n)
	}
}

func BenchmarkCan(b *testing.B) {
	r := rulesOf(b, orderWith(""))
	fields := values(r, Row{"amount": int64(1)})
	b.ReportAllocs()
	for b.Loop() {
		if err := r.Can("ship", "o-1", "paid", 3, fields, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Machine.Can gives the error that the call would give, and sends no write.
func TestCanWithStore(t *testing.T) {
	s := &fakeStore{}
	m := machineOver(t, s, orderWith(""))
	for state, want := range map[string]error{"paid": nil, "shipped": nil, "pending": ErrNotAllowed} {
		s.inspect = []sight{{snapshot: m.rowIn(state, 2)}}
		if err := m.Can(context.Background(), "o-1", "ship", nil); !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("ship from %s: %v, want %v", state, err, want)
		}
	}
	s.inspect = []sight{{}}
	if err := m.Can(context.Background(), "o-1", "ship", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("no row: %v", err)
	}
	if s.count("apply") != 0 {
		t.Errorf("sent %v", s.sent)
	}
	ballot := machineOver(t, s, ballotText)
	s.inspect = []sight{{snapshot: Snapshot{Found: true, Row: RowState{State: 0, Raw: "open", Version: 1, Values: values(ballot.rules, Row{"votes": int64(0), "needed": int64(2)})}}}}
	if err := ballot.Can(context.Background(), "b", "close", nil); err != nil {
		t.Errorf("a required key is not asked of Can: %v", err)
	}
}
