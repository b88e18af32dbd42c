package definitions

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// edgesYAML writes a machine from lines such as "pay: a b -> c". The first state
// named is initial unless initial says otherwise; "!" ends a state.
func edgesYAML(initial string, states string, edges ...string) []byte {
	var b strings.Builder
	b.WriteString("machine: m\ntable: {name: t}\ninitial: [" + strings.ReplaceAll(initial, " ", ", ") + "]\nstates:\n")
	for s := range strings.FieldsSeq(states) {
		name, final := strings.CutSuffix(s, "!")
		b.WriteString("  " + name + ": {final: " + map[bool]string{true: "true", false: "false"}[final] + "}\n")
	}
	b.WriteString("transitions:\n")
	for _, e := range edges {
		name, rest, _ := strings.Cut(e, ": ")
		from, to, _ := strings.Cut(rest, " -> ")
		b.WriteString("  " + name + ": {from: [" + strings.ReplaceAll(from, " ", ", ") + "], to: " + to + "}\n")
	}
	return []byte(b.String())
}

func TestPassedBy(t *testing.T) {
	tests := []struct {
		title           string
		initial, states string
		edges           []string
		transition      string
		want            string
	}{
		{"a line", "a", "a b c d!", []string{"pay: a -> b", "ship: b -> c", "end: c -> d"}, "pay", "c d"},
		{"the middle of a line", "a", "a b c d!", []string{"pay: a -> b", "ship: b -> c", "end: c -> d"}, "ship", "d"},
		{"the end of a line", "a", "a b c!", []string{"pay: a -> b", "end: b -> c"}, "end", ""},
		{"a way around", "a", "a b c d!", []string{"pay: a -> b", "skip: a -> c", "ship: b -> c", "end: c -> d"}, "pay", ""},
		{"a way around to a target", "a", "a b c d!", []string{"pay: a -> b", "gift: a -> b", "ship: b -> c", "end: c -> d"}, "pay", ""},
		{"a second initial state behind it", "a c", "a b c d!", []string{"pay: a -> b", "ship: b -> c", "end: c -> d"}, "pay", ""},
		{"a cycle: what was undone is not passed", "a", "a b c d!", []string{"approve: a -> b", "undo: b -> a", "reject: a -> c", "on: b -> d", "end: c -> d"}, "approve", ""},
		{"a cycle behind it", "a", "a b c d!", []string{"pay: a -> b", "pack: b -> c", "unpack: c -> b", "end: c -> d"}, "pay", "c d"},
		{"cancelled is not passed", "a", "a b c! x!", []string{"pay: a -> b", "ship: b -> c", "cancel: a b -> x"}, "pay", "c"},
		{"several sources", "a", "a b c d!", []string{"go: a b -> c", "mid: a -> b", "end: c -> d"}, "go", "d"},
		{"a source behind the target", "a", "a b c d!", []string{"go: a c -> b", "on: b -> c", "end: c -> d"}, "go", ""},
		{"onto itself", "a", "a b!", []string{"touch: a -> a", "end: a -> b"}, "touch", ""},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			m := mustParse(t, edgesYAML(tt.initial, tt.states, tt.edges...))
			tr, _ := m.Transition(tt.transition)
			got := strings.Join(slices.Sorted(maps.Keys(m.PassedBy(tr))), " ")
			if got != tt.want {
				t.Errorf("PassedBy(%s) = %q, want %q", tt.transition, got, tt.want)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	m := mustParse(t, edgesYAML("a", "a b c d!", "pay: a -> b", "ship: b -> c", "end: c -> d"))
	ship, _ := m.Transition("ship")
	for _, tt := range []struct {
		from    string
		without *Transition
		want    string
	}{
		{"a", nil, "a b c d"}, {"c", nil, "c d"}, {"d", nil, "d"}, {"a", ship, "a b"}, {"a c", ship, "a b c d"},
	} {
		got := strings.Join(slices.Sorted(maps.Keys(m.Reachable(strings.Fields(tt.from), tt.without))), " ")
		if got != tt.want {
			t.Errorf("Reachable(%s) = %q, want %q", tt.from, got, tt.want)
		}
	}
}

func TestAllowed(t *testing.T) {
	m := mustParse(t, []byte(orderYAML))
	for state, want := range map[string]string{"pending": "pay cancel expire", "paid": "cancel ship", "shipped": "complete", "completed": ""} {
		if got := strings.Join(m.Allowed(state), " "); got != want {
			t.Errorf("Allowed(%s) = %q, want %q", state, got, want)
		}
	}
	pay, _ := m.Transition("pay")
	if !pay.Enters("paid") || pay.Enters("pending") || !pay.Leaves("pending") || pay.Leaves("paid") {
		t.Error("pay leads from pending to paid")
	}
}

// TestStar: "*" is every state that is not final, less the targets, and comes
// after the specific moves.
func TestStar(t *testing.T) {
	m := mustParse(t, []byte(`machine: m
table: {name: t}
initial: a
states: {a: , b: , c: , x: {final: true}, y: {final: true}}
transitions:
  go: {from: a, to: b}
  on: {from: b, to: c}
  mixed:
    moves:
      - {from: "*", to: x}
      - {from: a, to: y}
      - {from: [b], to: [{state: c, when: 1 == 1}, {state: y}]}
  back: {from: "*", to: a}
`))
	mixed, _ := m.Transition("mixed")
	var got []string
	for _, move := range mixed.Moves {
		got = append(got, strings.Join(move.From, " ")+" > "+move.Targets[0].State)
	}
	if want := "a > y, b > c, a b c > x"; strings.Join(got, ", ") != want {
		t.Errorf("moves are %v, want %s", got, want)
	}
	back, _ := m.Transition("back")
	if from := strings.Join(back.Moves[0].From, " "); from != "b c" || !back.Moves[0].Any {
		t.Errorf("back leaves %s", from)
	}
}

// TestOrder: everything but states has an order of its own.
func TestOrder(t *testing.T) {
	m := mustParse(t, edgesYAML("a", "a b c d!", "z: a -> b", "y: a -> b", "x: a -> c", "w: c b -> d", "v: c -> d", "u: b -> c"))
	var names []string
	for _, tr := range m.Transitions {
		names = append(names, tr.Name)
	}
	if got := strings.Join(names, " "); got != "y z x u w v" {
		t.Errorf("transitions in the order %s", got)
	}
	all := mustParse(t, []byte(strings.Replace(mustRead(t, "testdata/AllForms/input.yaml"), "early: [draft, imported]", "early: [imported, draft]", 1)))
	if got := strings.Join(all.Groups[0].States, " "); got != "draft imported" {
		t.Errorf("group early = %s", got)
	}
	if !slices.IsSortedFunc(all.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("fields = %v", all.Fields)
	}
}

// hiddenYAML has moves from "*" behind specific ones of the same transition: without
// condition those leave nothing to "*", with one they do.
const hiddenYAML = `
machine: m
table: {name: t}
fields: {n: {type: int}}
initial: a
states: {a: , b: , c: , x: {final: true}, y: {final: true}}
transitions:
  go:
    moves:
      - {from: "*", to: x}
      - {from: a, to: b}
      - {from: b, to: [{state: c, when: n == 1}, {state: a}]}
  try:
    moves:
      - {from: [a, b], to: c, when: n == 2}
      - {from: "*", to: y}
`

func TestHiddenEdges(t *testing.T) {
	m := mustParse(t, []byte(hiddenYAML))
	want := map[string]string{
		"go":  "a: b, b: c a, c: x",
		"try": "a: c y, b: c y, c: y",
	}
	for name, want := range want {
		tr, _ := m.Transition(name)
		targets := tr.Targets()
		var got []string
		for _, from := range slices.Sorted(maps.Keys(targets)) {
			got = append(got, from+": "+strings.Join(targets[from], " "))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s leads %q, want %q", name, got, want)
		}
	}
	// The way from a to x is hidden: it goes through c.
	try, _ := m.Transition("try")
	if got := m.Reachable([]string{"a"}, try); !got["x"] || !got["c"] || got["y"] {
		t.Errorf("from a without try: %v", got)
	}
	only := mustParse(t, edgesYAML("a", "a b! c!", "end: a -> b", "on: a -> c"))
	end, _ := only.Transition("end")
	end.Moves = append(end.Moves, Move{From: []string{"a"}, Any: true, Targets: []Target{{State: "c"}}})
	if end.Enters("c") || !end.Enters("b") {
		t.Error("a target that only a hidden move has is entered by nothing")
	}
}
