package codegen

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fsmgen/fsmgen/definitions"
)

func TestDocLines(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{" \n\t\n", nil},
		{"one", []string{"one"}},
		{"\n\none\n\n\ntwo\n", []string{"one", "", "two"}},
		{"a\r\nb\rc\u2028d\u0085e", []string{"a", "b", "c", "d", "e"}},
		{"  in\tthe \x00 middle\u202e ", []string{"in the middle"}},
		{"+build x", []string{`\+build x`}},
		{"a\n  +build x", []string{"a", `\+build x`}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, docLines(tt.text)); diff != "" {
			t.Errorf("docLines(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestWrap(t *testing.T) {
	got := wrap("aaa bbb ccc +build dddddddddddddd e", 11)
	want := []string{"aaa bbb ccc", `\+build`, "dddddddddddddd", "e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := wrap(strings.Repeat("x ", 3), 80); len(got) != 1 || got[0] != "x x x" {
		t.Errorf("got %q", got)
	}
}

func TestList(t *testing.T) {
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a or b": {"a", "b"}, "a, b or c": {"a", "b", "c"}} {
		if got := list(names, "or"); got != want {
			t.Errorf("list(%q) = %q, want %q", names, got, want)
		}
	}
}

func TestOneLineExpr(t *testing.T) {
	for source, want := range map[string]string{
		" a  ==\n\t1 ":           "a == 1",
		"s  ==  'a  b'":          "s == 'a  b'",
		`s == "a  'b"   and  t`:  `s == "a  'b" and t`,
		`s == 'it\'s  x'   or t`: `s == 'it\'s  x' or t`,
		`s == 'x\\'   or  t`:     `s == 'x\\' or t`,
		"s == `a\\`   or  t":     "s == `a\\` or t",
		"s == `a\n\u2028 b`":     "s == `a   b`",
		"'never   closed":        "'never   closed",
		"":                       "",
	} {
		if got := oneLineExpr(source); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

// TestAnyStateLeavesOutTargets: the doc of "*" says what the move leaves.
func TestAnyStateLeavesOutTargets(t *testing.T) {
	m, err := definitions.Parse("m.yaml", []byte("machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , b: }\ntransitions: {go: {from: \"*\", to: b}, back: {from: b, to: a}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	move, _ := m.Transition("go")
	want := []string{"any state that is neither final nor a target → b"}
	if diff := cmp.Diff(want, edgeTexts(move)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
