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
