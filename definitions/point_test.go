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

// TestPlacesInExpressions: however a text is quoted, folded and tagged, a name in it is
// found where it stands.
func TestPlacesInExpressions(t *testing.T) {
	const head = "machine: order\ntable: {name: orders}\nfields: {n: {type: int}, s: {type: string}}\ninitial: a\nstates: {a: , b: {final: true}}\n" +
		"transitions:\n  go:\n    from: a\n    to: b\n    when: "
	for _, when := range []string{
		"n > 1 and zzz > 1", "  \"  n > 1 and zzz > 1\"", "'s == ''支付'' and zzz > 1'", "\"s == '\\u652f\\x41' and zzz > 1\"", "\"s == '\\\"' and zzz > 1\"",
		"n > 1 and\n      zzz > 1", "'n > 1 and\n\n      zzz > 1'", "|\n      n > 1 and\n      zzz > 1", ">-\n\n      n > 1 and\n\n      zzz > 1", "|2\n      n > 1 and\n        zzz > 1",
		"\"n > 1 and\n      zzz > 1\"", "\"n > 1 \\\n      and zzz > 1\"", "\"n > 1 an\\\n      \\\n      d zzz > 1\"", "\"\\\n      n > 1 and zzz > 1\"",
		"\"\\ \\tn > 1 and zzz > 1\"", "\" \\  n > 1 and zzz > 1\"", "\"n > 1 and \\\n      \\ zzz > 1\"",
		"&x n > 1 and zzz > 1", "!!str n > 1 and zzz > 1", "&x !!str \"n > 1 and zzz > 1\"", "&x\n      n > 1 and\n      zzz > 1", "!!str # words\n      # more\n      n > 1 and zzz > 1",
		"&x\n      !!str\n      \"n > 1 and\n      zzz > 1\"", "&x |\n      n > 1 and\n      zzz > 1", "&x # words\n      |\n      zzz > 1",
	} {
		text := head + when + "\n"
		before, _, _ := strings.Cut(text, "zzz")
		at := pos{1, 1}
		for _, r := range before {
			at = at.after(r)
		}
		_, err := Parse("x.yaml", []byte(text))
		var problems Problems
		if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Line != at.line || problems[0].Column != at.col || problems[0].Name != "zzz" {
			t.Errorf("%s\n%v, want it at %v", when, err, at)
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

// TestHints: a finding says what was probably meant, where it was written, and no other
// finding follows from it.
func TestHints(t *testing.T) {
	const head = `machine: m
table: {name: t}
fields: {s: {type: string}, b: {type: bool}, i: {type: int}, kind: {type: string}}
initial: a
groups: {open: [a]}
states: {a: , z: {final: true}}
transitions:
  go:
    from: a
    to: z
    args: {i: int, j: int}
    `
	for line, want := range map[string]string{
		"when: !b":                     `12:11 unknown-tag: the tag !b is not part of the format; a text that begins with ! is put in quotes: "!b"`,
		"when: !b and i == 1":          `12:11 unknown-tag: the tag !b is not part of the format; a text that begins with ! is put in quotes: "!b and i == 1"`,
		"when: s == 'x #1'":            `12:18 expression-syntax: literal not terminated; YAML ends a text at " #": put all of it in quotes: "s == 'x #1'"`,
		`set: {kind: "manual"}`:        `12:18 unknown-name: there is no field "manual"; a text has quotes of its own here: '"manual"'`,
		"set: {kind: manual}":          `12:17 unknown-name: there is no field "manual"; a text has quotes of its own here: '"manual"'`,
		`set: {kind: "by hand"}`:       `12:21 expression-syntax: unexpected token "hand"; a text has quotes of its own here: '"by hand"'`,
		"set: {i: manual}":             `12:14 unknown-name: there is no field "manual"`,
		"when: arg.i == 1":             `12:11 expression-unsupported: a member of anything but args is not part of the language (did you mean "args.i"?)`,
		"when: 1 == s.i":               `12:16 expression-unsupported: a member of anything but args is not part of the language (did you mean "args.i"?)`,
		"when: 1 == s.length":          `12:16 expression-unsupported: a member of anything but args is not part of the language`,
		"key: requird":                 "12:10 bad-key: \"requird\" is no part of a key: a key is `required` or made of args.NAME; row columns change between a request and its repeat (did you mean \"required\"?)",
		"when: NOT b":                  `12:11 expression-syntax: "NOT" is not an operator (did you mean "not"?)`,
		"when: b AND s == 'OR'":        `12:13 expression-syntax: "AND" is not an operator (did you mean "and"?)`,
		"when: s == 'AND' x":           `12:22 expression-syntax: unexpected token "x"`,
		"when: c":                      `12:11 unknown-name: there is no field "c"`,
		"when: args.k == 1":            `12:11 unknown-name: there is no arg "k"`,
		`when: s == "a\x00"`:           `12:16 literal-range: a string literal that holds the character U+0000, which not every database can store`,
		"when: i == 1__0":              `12:16 literal-range: 1__0 is no number: _ stands between two digits`,
		"when: i == 1_":                `12:16 literal-range: 1_ is no number: _ stands between two digits`,
		"when: i == 1_.5":              `12:16 literal-range: 1_.5 is no number: _ stands between two digits`,
		"when: i == 1_000":             "",
		"when: i == 1  # a comment 'x": "",
	} {
		_, err := Parse("m", []byte(head+line+"\n"))
		got := ""
		if err != nil {
			got = strings.ReplaceAll(err.Error(), "m:", "")
			got = strings.Replace(got, ": ", " ", 1)
		}
		if got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got, want)
		}
	}
	for old, tt := range map[string]struct{ text, want string }{
		"from: a":   {"from: open", `m:9:11: unknown-state: unknown state "open" (did you mean "@open"?)`},
		"machine: ": {"journal: off\nmachine: ", `m:1:10: wrong-type: journal is true, false or {table: NAME}, not "off" (did you mean "false"?)`},
		"true}":     {"yes}", `m:6:26: wrong-type: final is true or false, not "yes" (did you mean "true"?)`},
		"{final":    {"{final: flase}}\n#", `m:6:26: wrong-type: final is true or false, not "flase" (did you mean "false"?)`},
	} {
		_, err := Parse("m", []byte(strings.Replace(head, old, tt.text, 1)))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
}
