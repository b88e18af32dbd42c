package definitions

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFindingsPointAtNames: where a finding names something that was written, the
// place is where it stands.
func TestFindingsPointAtNames(t *testing.T) {
	rules := []string{
		ruleUnknownKey, ruleUnknownState, ruleUnknownField, ruleUnknownGroup, ruleUnknownTransition, ruleUnknownType,
		ruleDeadEnd, ruleUnreachableState, ruleSetOwnColumn, ruleColumnSetTwice, ruleMixedEntry, ruleBadDefault,
		"unknown-name", "not-readable",
	}
	inputs, err := filepath.Glob("testdata/*/input.yaml")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(data), "\n")
		_, err = Parse(input, data)
		var problems Problems
		errors.As(err, &problems)
		for _, p := range problems {
			if !slices.Contains(rules, p.Rule) || p.Rule == "unknown-name" && strings.Contains(p.Message, "arg") {
				continue
			}
			seen[p.Rule] = true
			text := strings.TrimLeft(string([]rune(lines[p.Line-1])[p.Column-1:]), `'"`)
			if !strings.HasPrefix(text, p.Name) {
				t.Errorf("%v\npoints at %q", p, text)
			}
		}
	}
	for _, rule := range rules {
		if !seen[rule] {
			t.Errorf("no golden case has %s", rule)
		}
	}
}

func TestProblemText(t *testing.T) {
	p := Problem{File: "order.yaml", Line: 12, Column: 5, Rule: "unknown-state", Message: `unknown state "payd"`, Nearest: "paid"}
	if got, want := p.String(), `order.yaml:12:5: unknown-state: unknown state "payd" (did you mean "paid"?)`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	p.Warning, p.Nearest = true, ""
	if got, want := p.String(), `order.yaml:12:5: warning: unknown-state: unknown state "payd"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if ps := (Problems{p}); ps.Failed() || ps.Error() != p.String() {
		t.Errorf("%v", ps)
	}
}

// TestWarningsBesideErrors: a definition with errors has its warnings among the
// problems, by place.
func TestWarningsBesideErrors(t *testing.T) {
	_, err := Parse("x.yaml", []byte(strings.Replace(orderYAML, "{from: paid, to: shipped}", "{from: payd, to: shipped}", 1)))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 2 || !problems[0].Warning || problems[1].Warning {
		t.Errorf("%v", err)
	}
}

func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rules() {
		if seen[r.ID] || r.Summary == "" || !strings.HasSuffix(r.Summary, ".") || strings.ToLower(r.ID) != r.ID || strings.ContainsAny(r.ID, "_ ") {
			t.Errorf("%+v", r)
		}
		seen[r.ID] = true
	}
}

func TestNearest(t *testing.T) {
	f := &findings{}
	known := slices.Values([]string{"pending", "paid", "shipped", "a", "id", "from"})
	for name, want := range map[string]string{
		"pendng": "pending", "payd": "paid", "PAID": "paid", "shippd": "shipped", "form": "from", "ib": "", "x": "", "zzzz": "",
		"Pending ": "pending", "aid": "paid",
	} {
		if got := f.nearest(name, known); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}

// TestFindingsAreOneLine: whatever is echoed, a finding is one line of readable length.
func TestFindingsAreOneLine(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, yaml := range []string{
		"machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , \"b\\nc.yaml:1:1: lie\": {final: true}}\ntransitions: {\"g\\e[31mo\\n\": {moves: [{from: a, to: \"b\\nc.yaml:1:1: lie\"}, {from: a, to: \"b\\nc.yaml:1:1: lie\"}]}}\n",
		"machine: !x\\n" + long + " m\n",
		"machine: " + long + "\ntable: {name: " + long + "}\ninitial: " + long + "\nstates: {a: , " + long + ": }\ntransitions: {go: {from: a, to: " + long + "y, when: " + long + " > 1}}\n" + long + ": 1\n",
	} {
		_, err := Parse("a\nb\u2028.yaml", []byte(yaml))
		var problems Problems
		if !errors.As(err, &problems) {
			t.Fatal(err)
		}
		for _, p := range problems {
			if text := p.String(); strings.ContainsAny(text, "\n\u2028\x1b") || len(text) > 1200 {
				t.Errorf("%d bytes: %.300q", len(text), text)
			}
		}
	}
}
