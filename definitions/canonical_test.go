package definitions

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// sameMachine holds that two machines are equal but for where they came from.
func sameMachine(t *testing.T, want, got *Machine) {
	t.Helper()
	options := cmp.Options{
		cmpopts.IgnoreFields(Machine{}, "Source", "Warnings"),
		cmpopts.IgnoreUnexported(expr.Node{}),
		cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) }),
	}
	if diff := cmp.Diff(want, got, options); diff != "" {
		t.Errorf("machines differ (-want +got):\n%s", diff)
	}
	if want.Hash() != got.Hash() || string(want.Canonical()) != string(got.Canonical()) {
		t.Error("hash or canonical form differ")
	}
}

// TestCanonicalText: what cannot be seen is written as an escape, which JSON and
// YAML read alike.
func TestCanonicalText(t *testing.T) {
	text := strings.Replace(orderYAML, "doc: An order from checkout to delivery.",
		`doc: "tab\t, bell\a, delete\x7f, quote\", backslash\\, line\nbreak, next\x85, \U0001F600, <&>"`, 1)
	m := mustParse(t, []byte(text))
	canonical := m.Canonical()
	if want := `"doc": "tab\t, bell\u0007, delete\u007f, quote\", backslash\\, line\nbreak, next\u0085, 😀, <&>"`; !strings.Contains(string(canonical), want) {
		t.Errorf("canonical form\n%s\ndoes not hold %s", canonical, want)
	}
	var into any
	if err := json.Unmarshal(canonical, &into); err != nil {
		t.Errorf("no JSON: %v", err)
	}
	sameMachine(t, m, mustParse(t, canonical))
}

// TestWrittenOut: what generated code could not read again is refused when it is read first.
func TestWrittenOut(t *testing.T) {
	const plain = "machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions:\n"
	group := "machine: m\ntable: {name: t}\nfields: {n: {type: int}}\ninitial: a\nstates:\n  a:\n  b: {final: true}\n" + numbered("  s%d:\n", 4999) +
		"groups: {g: [a" + numbered(", s%d", 4999) + "]}\ntransitions:\n  reach: {from: a, to: [" + numbered("{state: s%d, when: n == %[1]d},", 4999) + "]}\n"
	for title, tt := range map[string]struct {
		text string
		want string
	}{
		"a group in few moves":  {group + numbered("  t%d: {from: \"@g\", to: b}\n", 10), ""},
		"a group in many moves": {group + numbered("  t%d: {from: \"@g\", to: b}\n", 24), "1:1 too-large"},
		"a group in too many":   {group + numbered("  t%d: {from: \"@g\", to: b}\n", 190), "1:1 too-large"},
		"a long doc":            {"doc: '" + strings.Repeat("a", 700_000) + "'\n" + small, ""},
		"a doc of backslashes":  {"doc: '" + strings.Repeat("\\", 700_000) + "'\n" + small, "1:1 too-large"},
		"a doc of backquotes":   {"doc: '" + strings.Repeat("`", 200_000) + "'\n" + small, "1:1 too-large"},
		"many transitions":      {plain + numbered("  t%d: {from: a, to: b}\n", 20_000), ""},
		"too many transitions":  {plain + numbered("  t%d: {from: a, to: b}\n", 30_000), "1:1 too-large"},
		"too many entries":      {strings.Replace(plain, "a: ,", numbered("%d: ,", 100)+"a: ,", 1) + numbered("  on%d: {from: a, to: %[1]d}\n", 100) + numbered("  t%d: {from: \"@g\", to: b}\n", 1500) + "groups: {g: [" + numbered("%d,", 100) + "]}\n", "1:1 too-large"},
	} {
		t.Run(title, func(t *testing.T) {
			if tt.want != "" {
				check(t, []byte(tt.text), tt.want)
				return
			}
			if _, err := Parse("again.yaml", mustParse(t, []byte(tt.text)).Canonical()); err != nil {
				t.Errorf("the canonical form: %.300v", err)
			}
		})
	}
}
