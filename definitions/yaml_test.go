package definitions

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// small is a definition of six lines without findings.
const small = "machine: order\ntable: {name: orders}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions:\n  go: {from: a, to: b}\n"

func TestYAML(t *testing.T) {
	tests := []struct {
		title, text string
		want        string // "line:column rule", and what the message holds
		message     string
	}{
		{"nothing", "", "1:1 empty-document", ""},
		{"comments alone", "\n\n# only\n", "1:1 empty-document", ""},
		{"an empty document", "---\n", "1:1 empty-document", ""},
		{"two documents", small + "---\nmachine: x\n", "7:1 several-documents", ""},
		{"an empty second document", small + "---\n", "7:1 several-documents", ""},
		{"an empty first document", "---\n---\n" + small, "2:1 several-documents", ""},
		{"a broken second document", small + "---\nb: [\n", "9:1 syntax", ""},
		{"%YAML 1.2", "%YAML 1.2\n---\n" + small, "1:1 syntax", "leave the %YAML line out"},

		{"tab", small + "  x:\n\tfrom: a\n", "8:1 syntax", "line 8 is indented with a tab"},
		{"tab after spaces", small + "  x:\n    from: a\n\tto: b\n", "9:1 syntax", "line 9 is indented with a tab"},
		{"no-break space before a key", small + "\u00a0x: {from: a, to: b}\n", "7:1 unknown-key", "U+00A0"},
		{"no-break space after a key", small + "  x: {from\u00a0: a, from: a, to: b}\n", "7:7 unknown-key", "U+00A0"},
		{"no-break space after a state", small + "  x: {from: a\u00a0, to: b}\n", "7:13 unknown-state", "U+00A0"},
		{"indentation too small", small + "  x:\n    from: a\n   to: b\n", "9:1 syntax", "did not find expected key"},
		{"indentation too large", small + "  x:\n   from: a\n     to: b\n", "9:1 syntax", "one indentation"},
		{"a list among keys", small + "- x\n", "7:1 syntax", "did not find expected key"},
		{"fault in line 1", "a: b: c\n", "1:1 syntax", ""},
		{"no space after a colon", "machine: order\ntable:orders\ninitial: a\n", "2:1 syntax", "a space follows the colon"},
		{"an open bracket", small + "  x: {from: a, to: b\n  y: {from: a, to: b}\n", "8:1 syntax", ""},
		{"a bracket open to the end", small + "  x: {from: a, to: b\n", "7:1 syntax", "never closed"},
		{"an open quote", small + "  x: 'abc\n", "7:1 syntax", "quote that opens in this line is never closed"},
		{"an open quote in line 1", "x: 'abc\n", "1:1 syntax", "never closed"},
		{"an unknown escape", small + "  x: \"a\\qb\"\n", "7:1 syntax", "unknown escape"},
		{"an unknown anchor", small + "  x: *foo\n", "7:1 syntax", "no &foo stands before it"},

		{"unquoted string?", small + "  x: {from: a, to: b, args: {reason: string?}}\n", "7:1 syntax", `reason: "string?"`},
		{"unquoted string? in line 1", "args: {reason: string?}\n", "1:1 syntax", `reason: "string?"`},
		{"unquoted string? in a list", "a: [int, string?]\n", "1:1 syntax", `"string?"`},
		{"unquoted string? within a flow of lines", small + "  x: {from: a, to: b,\n    args: {a: int,\n      b: string?}\n  }\n", "9:1 syntax", `b: "string?"`},
		{"unquoted list", small + "  x: {from: a, to: b, when: n in [1, 2], emit: x}\n", "7:1 syntax", `when: "n in [1, 2]"`},
		{"unquoted ternary", small + "  x: {from: a, to: b, set: {k: a > 1 ? 1 : 2, n: 1}}\n", "7:1 syntax", `k: "a > 1 ? 1 : 2"`},
		{"unquoted comment sign", small + "  x: {from: a, to: b, when: n # 2}\n", "7:1 syntax", `when: "n # 2"`},
		{"literal first", small + "  x:\n    from: a\n    to: b\n    when: 'x' == k\n", "10:1 syntax", `when: "'x' == k"`},
		{"double-quoted literal first", small + "  x:\n    when: \"x\" == k\n", "8:1 syntax", `when: '"x" == k'`},
		{"literal first in flow", small + "  x: {from: a, to: b, set: {k: 'x' + args.b}}\n", "7:1 syntax", `k: "'x' + args.b"`},
		{"unquoted group", small + "  x: {from: @open, to: b}\n", "7:1 syntax", `from: "@open"`},
		{"unquoted star", small + "  x: {from: *, to: b}\n", "7:1 syntax", `from: "*"`},

		{"unknown tag", small + "  x: !foo {from: a, to: b}\n", "7:6 unknown-tag", "!foo"},
		{"binary", small + "doc: !!binary aGk=\n", "7:6 unknown-tag", "!!binary"},
		{"a tag the text belies", small + "doc: !!int x\n", "7:6 unknown-tag", "!!int"},
		{"merge", small + "  x: {<<: {from: a}, from: a, to: b}\n", "7:7 merge-key", ""},
		{"a transition called <<", small + "  <<: {from: a, to: b}\n", "7:3 merge-key", ""},
		{"an alias in itself", small + "  x: &x {from: a, to: *x}\n", "7:23 alias-cycle", "*x"},
		{"a key that is a list", small + "? [a]\n: b\n", "7:3 wrong-type", "a key must be a name"},
		{"text instead of a definition", "just text\n", "1:1 wrong-type", ""},

		{"UTF-16, little end first", "\xff\xfea\x00", "1:1 not-utf8", "UTF-16"},
		{"UTF-16, big end first", "\xfe\xff\x00a", "1:1 not-utf8", "UTF-16"},
		{"UTF-16 without a mark", "m\x00a\x00", "1:1 not-utf8", "UTF-16"},
		{"a broken character", small + "doc: a\xffb\n", "7:7 not-utf8", ""},
		{"an encoded surrogate", small + "doc: a\xed\xa0\x80b\n", "7:7 not-utf8", ""},
		{"NUL", small + "doc: a\x00b\n", "7:7 control-character", "U+0000"},
		{"bell", small + "doc: a\x07b\n", "7:7 control-character", "U+0007"},
		{"next line", small + "doc: a\u0085b\n", "7:7 control-character", "U+0085"},
		{"line separator", small + "doc: a\u2028b\n", "7:7 control-character", "U+2028"},
		{"zero width space", small + "doc: a\u200bb\n", "7:7 invisible-character", "U+200B"},
		{"direction override in a comment", small + "# a\u202eb\n", "7:4 invisible-character", "U+202E"},
		{"direction override as an escape", small + "doc: \"a\\u202eb\"\n", "7:6 invisible-character", "U+202E"},
		{"a mark in the middle", small + "doc: a\ufeffb\n", "7:7 invisible-character", "U+FEFF"},
		{"a tag character", small + "doc: a\U000e0041b\n", "7:7 invisible-character", "U+E0041"},
		{"a joiner in a name", small + "  x\u200d: {from: a, to: b}\n", "7:3 bad-name", "U+200D"},

		{"101 levels", small + "doc: " + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "\n", "7:105 nesting-too-deep", ""},
		{"10,001 brackets", strings.Repeat("[", 10001), "1:1 nesting-too-deep", ""},
		{"10,001 dashes", strings.Repeat("- ", 10001), "1:1 nesting-too-deep", ""},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			problems := check(t, []byte(tt.text), tt.want)
			if len(problems) > 0 && !strings.Contains(problems[0].Message, tt.message) {
				t.Errorf("message %q does not hold %q", problems[0].Message, tt.message)
			}
		})
	}
}

// TestSameText: what a text editor may do to a file does not change what it says.
func TestSameText(t *testing.T) {
	want, err := Parse("a.yaml", []byte(orderYAML))
	if err != nil {
		t.Fatal(err)
	}
	for title, text := range map[string]string{
		"byte order mark":      "\ufeff" + orderYAML,
		"CRLF":                 strings.ReplaceAll(orderYAML, "\n", "\r\n"),
		"CR":                   strings.ReplaceAll(orderYAML, "\n", "\r"),
		"mark and CRLF":        "\ufeff" + strings.ReplaceAll(orderYAML, "\n", "\r\n"),
		"document marks":       "---\n" + orderYAML + "...\n",
		"no break at the end":  strings.TrimSuffix(orderYAML, "\n"),
		"joiners in a comment": "# \u0645\u06cc\u200c\u0634\u0648\u062f \u2764\ufe0f\n" + orderYAML,
		"tags of the core":     strings.Replace(orderYAML, "initial: pending", "initial: !!str pending", 1),
	} {
		got, err := Parse("a.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", title, err)
			continue
		}
		if !bytes.Equal(got.Canonical(), want.Canonical()) || got.Hash() != want.Hash() {
			t.Errorf("%s changes the definition", title)
		}
	}
}

// TestColumnsBehindMark: a byte order mark does not move the first line.
func TestColumnsBehindMark(t *testing.T) {
	check(t, []byte("\ufeffmachin: order\n"+small), "1:1 unknown-key")
	check(t, []byte(strings.ReplaceAll(small+"  x: {from: q, to: b}\n", "\n", "\r\n")), "7:13 unknown-state")
}

func TestPlainAliases(t *testing.T) {
	text := strings.Replace(small, "  go: {from: a, to: b}", "  go: {from: &src [a], to: b}\n  again: {from: *src, to: b}\n  third: &t {from: a, to: b}\n  fourth: *t", 1)
	m, err := Parse("a.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Transitions) != 4 {
		t.Errorf("%d transitions", len(m.Transitions))
	}
}

// TestBombs: what is made to hurt is refused at once, in little memory.
func TestBombs(t *testing.T) {
	tenfold := "a0: &a0 x\n"
	for i := 1; i <= 9; i++ {
		tenfold += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	deep := "a0: &a0 [x]\n"
	for i := 1; i <= 120; i++ {
		deep += fmt.Sprintf("a%d: &a%d [*a%d]\n", i, i, i-1)
	}
	n := maxFileSize
	tests := []struct{ title, text, rule string }{
		{"ten-fold aliases", tenfold, ruleTooManyAliases},
		{"aliases of aliases", deep, ruleTooDeep},
		{"many aliases", small + "x:\n - &a [a, b, c, d, e, f]\n" + strings.Repeat(" - *a\n", 1500), ruleTooManyAliases},
		{"a long text many times", "doc: &d " + strings.Repeat("a", n/2) + "\n" + small + numbered("  t%d: {from: a, to: b, doc: *d}\n", 2000), ruleTooManyAliases},
		{"50 MB", strings.Repeat("a", 50<<20), ruleTooLarge},
		{"brackets", strings.Repeat("[", n), ruleTooDeep},
		{"brackets and marks", strings.Repeat("[?", n/2), ruleTooDeep},
		{"keys in keys", strings.Repeat("{a: ", n/4), ruleTooDeep},
		{"dashes", strings.Repeat("- ", n/2), ruleTooDeep},
		{"question marks", strings.Repeat("? ", n/2), ruleTooDeep},
		{"commas", "a: {" + strings.Repeat("a,", n/2-4) + "}", ruleTooLarge},
		{"as many commas as fit", "a: {" + strings.Repeat("a,", maxParts) + "}", ruleDuplicateKey},
		{"pairs", "a: [" + strings.Repeat("a: ,", maxParts) + "]", ruleUnknownKey},
		{"lines", strings.Repeat("a:\n", n/3), ruleTooLarge},
		{"items", strings.Repeat("- a\n", maxParts), ruleWrongType},
		{"keys of one letter", strings.Repeat("a:\n", maxParts), ruleDuplicateKey},
		{"different keys", numbered("k%d:\n", 120_000), ruleUnknownKey},
		{"commented keys", strings.Repeat("a:\n #\n", maxParts/2), ruleDuplicateKey},
		{"comments", "a: 1\n" + strings.Repeat("#\n", maxParts-1), ruleUnknownKey},
		{"anchors", strings.Repeat("- &a a\n", n/7), ruleWrongType},
		{"colons", strings.Repeat(":", n), ruleSyntax},
		{"exclamation marks", strings.Repeat("!", n), ruleUnknownTag},
		{"apostrophes", "a: '" + strings.Repeat("''", n/2-4) + "'", ruleUnknownKey},
		{"unknown states", small + numbered("  t%d: {from: q%[1]d, to: r%[1]d}\n", 15_000), ruleUnknownState},
		{"a syntax error in a long line", "a: {" + strings.Repeat("k: v, ", 100_000) + "]\n", ruleSyntax},
		{"open brackets in a long line", "a: {" + strings.Repeat("k: (v, ", 100_000) + "]\n", ruleSyntax},
		{"open quotes in a long line", "a: {" + strings.Repeat("k: v'v, ", 100_000) + "]\n", ruleSyntax},
		{"open brackets and tabs in a long line", "a: {" + strings.Repeat("k:\t(v,", 100_000) + "]\n", ruleSyntax},
		{"a name as long as the file", "machine: m\ntable: {name: t}\ninitial: a\nstates:\n  a:\n  ? " + strings.Repeat("x", 400_000) + "\n  :\ntransitions: {go: {to: a, from: [" + numbered("q%d,", 40_000) + "a]}}\n", ruleUnknownState},
		{"a field as long as the file", "machine: m\ntable: {name: t}\nfields:\n  ? " + strings.Repeat("x", 400_000) + "\n  : {type: int}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b, set: {" + numbered("q%d: 1,", 30_000) + "}}}\n", ruleUnknownField},
		{"syntax error at the end", small + numbered("  t%d: {from: a, to: b}\n", 25_000) + " x\n", ruleSyntax},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			var err error
			took := quickly(t, 2*time.Second, func() { _, err = Parse("x.yaml", []byte(tt.text)) })
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("no findings: %v", err)
			}
			if !hasRule(problems, tt.rule) {
				t.Errorf("no finding %s among %d, first %v", tt.rule, len(problems), problems[0])
			}
			t.Logf("%v, %d findings", took.Round(time.Millisecond), len(problems))
		})
	}
}

func hasRule(ps Problems, rule string) bool {
	for _, p := range ps {
		if p.Rule == rule {
			return true
		}
	}
	return false
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestMemory: the worst file that passes the first look stays within the budget.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("allocates")
	}
	for _, text := range []string{
		"a: {" + strings.Repeat("a,", maxParts) + "}",
		"a: [" + strings.Repeat("a: ,", maxParts) + "]",
		strings.Repeat("- a\n", maxParts),
		strings.Repeat("a:\n", maxParts),
		strings.Repeat("a: {b: c}\n", maxFileSize/10),
		numbered("%d: *a\n", 90_000),
	} {
		runtime.GC()
		var before, peak runtime.MemStats
		runtime.ReadMemStats(&before)
		done := make(chan struct{})
		go func() {
			defer close(done)
			Parse("x.yaml", []byte(text))
		}()
		for high := uint64(0); ; {
			runtime.ReadMemStats(&peak)
			high = max(high, peak.HeapAlloc)
			select {
			case <-done:
				if used := (high - min(high, before.HeapAlloc)) >> 20; used > 200 {
					t.Errorf("%.20q… took %d MB", text, used)
				} else {
					t.Logf("%.20q… took %d MB", text, used)
				}
			case <-time.After(5 * time.Millisecond):
				continue
			}
			break
		}
	}
}

// quickly fails the test where fn takes longer than it may three times in a row: once it
// may be the machine that was busy.
func quickly(t *testing.T, bound time.Duration, fn func()) time.Duration {
	t.Helper()
	var took time.Duration
	for range 3 {
		begin := time.Now()
		fn()
		if took = time.Since(begin); took <= bound {
			return took
		}
	}
	t.Errorf("took %v, want at most %v", took, bound)
	return took
}

// TestLargeMachine: five thousand states are loaded and checked in two seconds.
func TestLargeMachine(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: large\ntable: {name: t}\ninitial: s0\nstates:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  s%d:\n", i)
	}
	b.WriteString("  end: {final: true}\ntransitions:\n")
	for i := range 4999 {
		fmt.Fprintf(&b, "  t%d: {from: [s%d, s%d], to: s%d, args: {a: int, b: \"string?\"}, emit: e}\n", i, i, (i+13)%5000, i+1)
	}
	b.WriteString("  stop: {from: \"*\", to: end}\n")
	var m *Machine
	var err error
	took := quickly(t, 2*time.Second, func() { m, err = Parse("large.yaml", []byte(b.String())) })
	t.Log(took, b.Len(), "bytes")
	if err != nil {
		t.Fatalf("%.500v", err)
	}
	begin := time.Now()
	again, err := Parse("large.yaml", m.Canonical())
	if err != nil || again.Hash() != m.Hash() {
		t.Errorf("canonical form: %.500v", err)
	}
	t.Log("canonical and back", time.Since(begin))
}

// TestManyMoves: the conditions of thousands of moves are held apart in a second.
func TestManyMoves(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: m\ntable: {name: t}\nfields: {n: {type: int}}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions:\n  go:\n    moves:\n")
	for i := range 24_000 {
		fmt.Fprintf(&b, "      - {from: a, to: b, when: n == %d}\n", i)
	}
	b.WriteString("      - {from: a, to: b, when: n == 7}\n")
	quickly(t, 1500*time.Millisecond, func() { check(t, []byte(b.String()), "24009:16 ambiguous-moves") })
}

// TestManyReads: however many fields there are, and however many expressions read them, a
// name is found at once, and one that is none is answered at once.
func TestManyReads(t *testing.T) {
	for title, read := range map[string]string{"fields": "f9%03d", "names that are none": "q4%03d", "args": "args.a4%03d", "args that are none": "args.b4%03d"} {
		t.Run(title, func(t *testing.T) {
			var b strings.Builder
			fmt.Fprintf(&b, "doc: &w \"%s == 0\"\nmachine: m\ntable: {name: t}\nfields:\n", strings.TrimSuffix(numbered(read+"+", 90), "+"))
			b.WriteString(numbered("  f%d: {type: int}\n", 30_000))
			b.WriteString("initial: a\nstates: {a: , b: {final: true}}\ntransitions:\n")
			b.WriteString("  t: {from: a, to: b, args: {" + numbered("a%d: int,", 5000) + "}, set: {" + numbered("f%d: args.a0,", 5000) + "}, when: *w}\n")
			b.WriteString(numbered("  t%d: {from: a, to: b, when: *w}\n", 1500))
			quickly(t, 3*time.Second, func() { Parse("m.yaml", []byte(b.String())) })
		})
	}
}

// TestManyOfTwo: where there are many of one thing and many of another, the work is that of
// both, and not that of each with each.
func TestManyOfTwo(t *testing.T) {
	const head = "machine: m\ntable: {name: t}\n"
	const ab = "initial: a\nstates: {a: , b: {final: true}}\n"
	states := func(n int, body string) string {
		return "initial: a\nstates:\n  a:\n  b: {final: true}\n" + numbered("  s%d: "+body+"\n", n)
	}
	list := func(format string, n int) string { return "[" + strings.TrimSuffix(numbered(format+",", n), ",") + "]" }
	for title, text := range map[string]string{
		"fields and names that are none": head + "fields:\n" + numbered("  f%d: {type: int}\n", 20_000) + ab + "unique: [" + list("q%d", 60_000) + "]\ntransitions: {go: {from: a, to: b}}\n",
		"fields and what is set":         head + "fields:\n" + numbered("  f%d: {type: int}\n", 22_000) + ab + "transitions: {go: {from: a, to: b, set: {" + numbered("f%d: 1,", 22_000) + "}}}\n",
		"states and names that are none": head + states(20_000, "") + "transitions: {go: {from: " + list("q%d", 60_000) + ", to: b}}\n",
		"groups and names that are none": head + ab + "groups:\n" + numbered("  g%d: [a]\n", 20_000) + "transitions: {go: {from: " + list("'@q%d'", 50_000) + ", to: b}}\n",
		"args and names that are none":   head + ab + "transitions: {go: {from: a, to: b, args: {" + numbered("a%d: int,", 20_000) + "}, identity: " + list("q%d", 60_000) + "}}\n",
		"args and their identity": head + "fields:\n" + numbered("  f%d: {type: int}\n", 12_000) + ab + "transitions: {go: {args: {" + numbered("a%d: int,", 12_000) + "}, identity: " + list("a%d", 12_000) +
			", moves: [{from: a, to: b, set: {" + numbered("f%d: args.a%[1]d,", 12_000) + "}}]}}\n",
		"args and parts of a key":          head + ab + "transitions: {go: {from: a, to: b, args: {" + numbered("a%d: int,", 30_000) + "}, key: " + list("args.a%d", 30_000) + "}}\n",
		"timeouts and sources":             head + states(9000, "{timeout: {after: 1m, fire: x}}") + "groups: {g: " + list("s%d", 1000) + "}\ntransitions: {x: {moves: [" + numbered("{from: '@g', to: b, when: n == %d},", 900) + "]}}\nfields: {n: {type: int}}\n",
		"timeouts and args":                head + states(9000, "{timeout: {after: 1m, fire: x}}") + "transitions: {x: {from: a, to: b, args: {" + numbered("a%d: 'int?',", 25_000) + "}}}\n",
		"timeouts and names that are none": head + states(10_000, "{timeout: {after: 1m, fire: q}}") + "transitions:\n" + numbered("  t%d: {from: a, to: b}\n", 20_000),
		"moves onto themselves and what is set": head + "fields:\n" + numbered("  f%d: {type: int}\n", 12_000) + ab + "transitions: {go: {set: {" + numbered("f%d: 1,", 12_000) + "}, moves: [" +
			numbered("{from: a, to: a, when: f1 == %d},", 10_000) + "]}}\n",
		"sources and long conditions":  head + "fields: {n: {type: int}}\n" + states(4000, "") + "groups: {g: " + list("s%d", 4000) + "}\ntransitions: {go: {moves: [" + numbered("{from: '@g', to: b, when: '"+strings.Repeat("n + ", 150)+"1 == %d'},", 240) + "]}}\n",
		"moves and groups":             head + states(15_000, "") + "groups: {g: " + list("s%d", 15_000) + "}\ntransitions:\n" + numbered("  t%d: {from: '@g', to: b}\n", 20_000),
		"moves and groups, none known": head + states(15_000, "") + "groups: {g: " + list("s%d", 15_000) + "}\ntransitions:\n" + numbered("  t%d: {from: ['@g', q], to: b}\n", 15_000),
		"moves and overlapping groups": head + states(300, "") + "groups:\n" + strings.ReplaceAll(numbered("  g%d: *\n", 300), "*", list("s%d", 300)) + "transitions:\n" + strings.ReplaceAll(numbered("  t%d: {from: *, to: b}\n", 100), "*", list("'@g%d'", 300)),
		"sources and targets":          head + "fields: {n: {type: int}}\n" + states(16_000, "") + "groups: {g: " + list("s%d", 16_000) + "}\ntransitions: {go: {from: '@g', to: " + list("{state: s%d, when: n == %[1]d}", 16_000) + "}}\n",
		"final states and moves":       head + strings.Replace(states(1000, "{final: true}"), "a: {final: true}", "a:", 1) + "groups: {g: " + list("s%d", 1000) + "}\ntransitions:\n" + numbered("  t%d: {from: '@g', to: b}\n", 990),
	} {
		t.Run(title, func(t *testing.T) {
			if len(text) > maxFileSize {
				t.Fatalf("%d bytes", len(text))
			}
			var err error
			took := quickly(t, 3*time.Second, func() { _, err = Parse("m.yaml", []byte(text)) })
			var problems Problems
			if errors.As(err, &problems); hasRule(problems, ruleSyntax) || hasRule(problems, ruleTooLarge) {
				t.Errorf("%v", problems[0])
			}
			t.Logf("%v, %d findings", took.Round(time.Millisecond), len(problems))
		})
	}
}

// TestFinalStatesLeft: a move that leaves several final states is one finding.
func TestFinalStatesLeft(t *testing.T) {
	text := "machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , " + numbered("z%d: {final: true}, ", 10) + "}\ngroups: {g: [a, " + numbered("z%d, ", 10) + "]}\n" +
		"transitions:\n  x: {from: \"@g\", to: a}\n  y: {from: [z1, a, z0], to: z3}\n"
	_, err := Parse("m.yaml", []byte(text))
	var got []string
	var problems Problems
	errors.As(err, &problems)
	for _, p := range problems {
		if p.Rule == ruleFinalLeft {
			got = append(got, fmt.Sprintf("%d:%d %s: %s", p.Line, p.Column, p.Name, p.Message))
		}
	}
	want := []string{
		`7:13 z0: "z0" (line 4), "z1" (line 4), "z2" (line 4), "z3" (line 4), "z4" (line 4), "z5" (line 4), "z6" (line 4), "z7" (line 4) and 2 more are final, so nothing can leave them`,
		`8:13 z0: "z0" (line 4), "z1" (line 4) are final, so nothing can leave them`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestOneLongLine: a place in a line is found without reading all of the line again.
func TestOneLongLine(t *testing.T) {
	text := strings.Replace(small, "\n  go: {from: a, to: b}", " {go: {from: a, to: b}"+numbered(", t%d: {from: a, to: b, when: q ==}", 20_000)+"}", 1)
	quickly(t, 2*time.Second, func() { Parse("m.yaml", []byte(text)) })
}

// TestManyMistakes: looking for what was meant does not take longer than reading.
func TestManyMistakes(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: m\ntable: {name: t}\ninitial: state_number_0\nstates:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  state_number_%d:\n", i)
	}
	b.WriteString("transitions:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  t%d: {from: stote_number_%d, to: stite_number_%d}\n", i, i, i)
	}
	quickly(t, 2*time.Second, func() {
		if _, err := Parse("m.yaml", []byte(b.String())); err == nil {
			t.Error("no findings")
		}
	})
}

// TestNoFollowers: one mistake is one finding, not also those that follow from it.
func TestNoFollowers(t *testing.T) {
	const head = "machine: m\ntable: {name: t}\n"
	const ab = "initial: a\nstates: {a: , b: {final: true}}\n"
	for title, tt := range map[string]struct{ text, want string }{
		"fields that are no mapping": {"machine: m\ntable: {name: t}\nfields: [f]\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b, args: {x: int}, set: {f: args.x}, when: f == 1}}\n", "3:9 wrong-type"},
		"a type that is none":        {"machine: m\ntable: {name: t}\nfields: {f: {type: strng}}\ninitial: a\nstates: {a: , b: {final: true}}\ntransitions: {go: {from: a, to: b, set: {f: f + 1}, when: f == 'x'}}\n", "3:20 unknown-type"},
		"states that are no mapping": {"machine: m\ntable: {name: t}\ninitial: a\nstates: [a, b]\ntransitions: {go: {from: a, to: b}}\n", "4:9 wrong-type"},
		"a target that is none":      {"machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , bbbb: {final: true}}\ntransitions: {go: {from: a, to: zzzzzz}}\n", "5:33 unknown-state"},
		"a source that is none":      {"machine: m\ntable: {name: t}\ninitial: a\nstates: {a: , bbbb: {final: true}}\ntransitions: {go: {from: zzzzzz, to: bbbb}}\n", "5:26 unknown-state"},
		"branch whose condition failed": {
			head + ab + "fields: {n: {type: int}}\ntransitions:\n  go: {from: a, to: [{state: b, when: nn > 1}, {state: a, when: n > 1}, {state: b, when: m == 1}, {state: a}], key: required}\n",
			"7:39 unknown-name, 7:90 unknown-name",
		},
		"moves whose conditions failed": {
			head + ab + "fields: {n: {type: int}}\ntransitions:\n  go:\n    moves:\n      - {from: a, to: b, when: n > x}\n      - {from: a, to: b, when: n > }\n      - {from: a, to: b, when: [n]}\n      - {from: a, to: b}\n",
			"9:36 unknown-name, 10:35 expression-syntax, 11:32 wrong-type",
		},
		"a transition whose condition is never true": {
			head + ab + "transitions:\n  go: {from: a, to: b, when: false}\n",
			"6:30 unreachable-branch",
		},
		"transitions that are a list":  {head + ab + "transitions: [go]\n", "5:14 wrong-type"},
		"transitions that are nothing": {head + ab + "transitions:\n", "5:13 null-value"},
		"a misspelt final":             {head + "initial: a\nstates: {a: , b: {finl: true}}\ntransitions: {go: {from: a, to: b}}\n", "4:19 unknown-key"},
		"another word for true":        {head + "initial: a\nstates: {a: , b: {final: yes}}\ntransitions: {go: {from: a, to: b}}\n", "4:26 wrong-type"},
		"a state that is a word":       {head + "initial: a\nstates: {a: , b: final}\ntransitions: {go: {from: a, to: b}}\n", "4:18 wrong-type"},
		"groups that are a list":       {head + ab + "groups: [a]\ntransitions: {go: {from: \"@x\", to: b}}\n", "5:9 wrong-type"},
		"a group that is a mapping":    {head + ab + "groups: {x: {a: }}\ntransitions: {go: {from: \"@x\", to: b}}\n", "5:13 wrong-type"},
		"args that are a list":         {head + ab + "fields: {s: {type: string}}\ntransitions:\n  go: {from: a, to: b, args: [r], when: args.r == 'x', set: {s: args.r}, identity: [r], key: [args.r]}\n", "7:30 wrong-type"},
		"a field that is a column":     {head + ab + "fields: {id: {type: string}, Version: {type: int}}\ntransitions: {go: {from: a, to: b}}\n", "5:10 duplicate-column, 5:30 duplicate-column"},
		"blocks in an expression":      {head + ab + "fields: {n: {type: int}}\ntransitions:\n  go: {from: a, to: b, when: \"if n > 1 {true} else {false}\"}\n", "7:40 expression-unsupported"},
		"two wrong operators are two":  {head + ab + "fields: {n: {type: int}}\ntransitions:\n  go: {from: a, to: b, when: n = 1 and n = 2}\n", "7:32 expression-syntax, 7:42 expression-syntax"},
	} {
		t.Run(title, func(t *testing.T) {
			check(t, []byte(tt.text), strings.Split(tt.want, ", ")...)
		})
	}
}

// followedField and followedArg do everything with one field, or arg, of a type TYPE.
const (
	followedField = `machine: m
table: {name: t}
fields: {f: {type: TYPE, nullable: true, default: x}, g: {type: string, nullable: true}, n: {type: int}}
initial: a
states: {a: , b: {final: true}, c: {final: true}, d: {final: true}}
unique: [[f, n]]
transitions:
  go:
    args: {x: string}
    when: f == args.x and (f ?? args.x) in [args.x, f] or not (f > args.x) or -f < f + 1 or f == nil or n == f
    set: {f: args.x, g: "args.x ?? (f == args.x ? f : g)", n: f + args.x}
    identity: [x]
    moves:
      - {from: a, to: [{state: b, when: f}, {state: c, when: not f}, {state: b, when: f > 3}, {state: c}], when: n == f}
      - {from: a, to: b, when: f % 2 == 0}
      - {from: "*", to: d}
`
	followedArg = `machine: m
table: {name: t}
fields: {g: {type: string, nullable: true}, n: {type: int}}
initial: a
states: {a: , b: {final: true}, c: {final: true}, d: {final: true}}
transitions:
  go:
    args: {x: {type: TYPE}, y: "int?"}
    when: g == args.x and args.x + 1 > args.y
    set: {g: args.x, n: args.x * n}
    identity: [x]
    key: [args.x]
    moves:
      - {from: a, to: [{state: b, when: args.x}, {state: c}], when: "args.x in [n, 1]"}
      - {from: a, to: b, when: args.x}
      - {from: "*", to: d}
`
)

// A type that cannot be read is one finding, whatever is done with what has it.
func TestUnreadableTypesHaveNoFollowers(t *testing.T) {
	for bad, rule := range map[string]string{
		"strng": ruleUnknownType, "itn": ruleUnknownType, "duration": ruleUnknownType, "invalid": ruleUnknownType, "varchar": ruleUnknownType,
		"[int]": ruleWrongType, "{a: b}": ruleWrongType, `""`: ruleUnknownType, "~": ruleNull,
	} {
		for title, text := range map[string]string{"field": followedField, "arg": followedArg} {
			t.Run(title+" "+bad, func(t *testing.T) { checkRules(t, strings.ReplaceAll(text, "TYPE", bad), rule) })
		}
	}
}

// What cannot be read of a condition or an assignment may be anything: nothing follows
// from it.
func TestUnreadableExpressionsHaveNoFollowers(t *testing.T) {
	fill := func(parts ...string) string {
		return strings.NewReplacer(append(parts, "SET", "f: args.x", "BRANCH", "n == 1", "MOVE1", "n == 2", "MOVE2", "n == 3")...).Replace(`machine: m
table: {name: t}
fields: {f: {type: string, nullable: true}, n: {type: int}}
initial: a
states: {a: , b: {final: true}, c: {final: true}, d: {final: true}}
transitions:
  go:
    args: {x: string}
    set: {SET}
    identity: [x]
    moves:
      - {from: a, to: [{state: b, when: BRANCH}, {state: c, when: n == 4}, {state: b}], when: MOVE1}
      - {from: a, to: c, when: MOVE2}
      - {from: "*", to: d}
`)
	}
	checkRules(t, fill())
	for broken, rule := range map[string]string{"nn == 1": expr.RuleUnknownName, "n == 'x'": expr.RuleType, "n ==": expr.RuleSyntax, "n": expr.RuleType, `""`: ruleEmptyText, "[a]": ruleWrongType, "~": ruleNull} {
		t.Run(broken, func(t *testing.T) {
			checkRules(t, fill("BRANCH", broken), rule)
			checkRules(t, fill("MOVE1", broken), rule)
			checkRules(t, fill("MOVE1", broken, "MOVE2", broken), rule, rule)
			checkRules(t, fill("SET", "f: "+broken), rule)
		})
	}
	checkRules(t, fill("SET", "ff: args.x"), ruleUnknownField)
}

// checkRules holds the rules of all findings.
func checkRules(t *testing.T, text string, want ...string) {
	t.Helper()
	_, err := Parse("m.yaml", []byte(text))
	var problems Problems
	errors.As(err, &problems)
	var got []string
	for _, p := range problems {
		got = append(got, p.Rule)
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %v, want %v:\n%v", got, want, err)
	}
}

// TestFindingsOnce: a fault that two aliases lead to is one finding.
func TestFindingsOnce(t *testing.T) {
	text := strings.Replace(small, "  go: {from: a, to: b}", "  go: &go {from: a, to: b, emit: ''}\n  again: *go\n  third: *go", 1)
	check(t, []byte(text), "6:34 empty-text")
}

// TestRepeatedFindingsAreNotKept: what many aliases lead to takes no more memory than what
// one does.
func TestRepeatedFindingsAreNotKept(t *testing.T) {
	text := "doc: &w " + strings.TrimSuffix(numbered("q%d + ", 20), "+ ") + "> 0\n" + small + numbered("  t%d: {from: a, to: b, when: *w}\n", 1000)
	f := &findings{}
	parse(f, []byte(text))
	if len(f.found) != 20 {
		t.Errorf("%d findings are kept, want 20", len(f.found))
	}
}

func TestTooManyEdges(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: large\ntable: {name: t}\ninitial: s0\nstates:\n")
	for i := range 5000 {
		fmt.Fprintf(&b, "  s%d:\n", i)
	}
	b.WriteString("  end: {final: true}\ntransitions:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  t%d: {from: \"*\", to: s%d}\n", i, i)
	}
	quickly(t, 2*time.Second, func() {
		_, err := Parse("large.yaml", []byte(b.String()))
		var problems Problems
		if !errors.As(err, &problems) || !hasRule(problems, ruleTooManyEdges) {
			t.Errorf("%.300v", err)
		}
	})
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "order.yaml")
	if err := os.WriteFile(path, []byte(orderYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if m.Source != "order.yaml" {
		t.Errorf("Source = %q", m.Source)
	}
	if len(m.Warnings) != 1 || m.Warnings[0].File != path {
		t.Errorf("Warnings = %v", m.Warnings)
	}
}

// TestLoadSystemFailure: what cannot be read is no finding.
func TestLoadSystemFailure(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "missing.yaml"), dir} {
		m, err := Load(path)
		var problems Problems
		if m != nil || err == nil || errors.As(err, &problems) {
			t.Errorf("Load(%s) = %v, %v", path, m, err)
		}
	}
	if _, err := Load(filepath.Join(dir, "missing.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v does not say that the file is missing", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(orderYAML))
	inputs, _ := filepath.Glob("testdata/*/input.yaml")
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, s := range []string{"a: &a [*a]", "<<: *a", "- - -", "? ", "%YAML 1.1\n---", "a: |2\n   x", "\"\\U0010ffff\"", "{a: b", "- &x\n  *x : y", "a: !!binary"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m *Machine
		var err error
		quickly(t, 2*time.Second, func() { m, err = Parse("x.yaml", data) })
		if err != nil {
			checkProblems(t, data, err)
			return
		}
		again, err := Parse("x.yaml", m.Canonical())
		if err != nil {
			t.Fatalf("canonical form has findings: %v\n%s", err, m.Canonical())
		}
		sameMachine(t, m, again)
	})
}

// checkProblems holds that findings are in order and point into the file.
func checkProblems(t *testing.T, data []byte, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) || !problems.Failed() {
		t.Fatalf("%v is no finding", err)
	}
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	last := pos{}
	for _, p := range problems {
		at := pos{p.Line, p.Column}
		if at.before(last) || p.Line < 1 || p.Line > lines+1 || p.Column < 1 || p.Rule == "" || p.Message == "" {
			t.Errorf("%+v behind %v, %d lines", p, last, lines)
		}
		if !knownRule(p.Rule) {
			t.Errorf("%s is no rule of Rules", p.Rule)
		}
		last = at
	}
}

func knownRule(id string) bool {
	for _, r := range Rules() {
		if r.ID == id {
			return true
		}
	}
	return false
}
