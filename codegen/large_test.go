package codegen

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
)

// TestLargeMachine: thousands of states and transitions take no longer than both do.
func TestLargeMachine(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: m\ntable: {name: t}\ninitial: [a")
	for i := range 14_000 {
		fmt.Fprintf(&b, ", s%d", i)
	}
	b.WriteString("]\nstates:\n  a:\n")
	for i := range 14_000 {
		fmt.Fprintf(&b, "  s%d: {final: true}\n", i)
	}
	b.WriteString("transitions:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  t%d: {from: a, to: s%d}\n", i, i)
	}
	m, err := definitions.Parse("m.yaml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%.300v", err)
	}
	const bound = 500 * time.Millisecond
	var took time.Duration
	for range 3 { // once it may be the machine that was busy
		begin := time.Now()
		if _, err := newFileView(m, Options{}); err != nil {
			t.Fatal(err)
		}
		if took = time.Since(begin); took <= bound {
			break
		}
	}
	t.Log(took)
	if took > bound {
		t.Errorf("the view took %v, want at most %v", took, bound)
	}
}

// TestManyWays: what is written is no product of a transition's ways with its condition, its
// sources, or its other ways.
func TestManyWays(t *testing.T) {
	many := func(format string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	m, err := definitions.Parse("m.yaml", []byte("machine: m\ntable: {name: t}\nfields: {n: {type: int}}\ninitial: a\nstates: {a: , b: {final: true}, "+many("s%d: ,", 300)+"}\n"+
		"groups: {g: ["+many("s%d,", 300)+"]}\ntransitions:\n  go:\n    from: a\n    when: 'n in ["+many("1%08d, ", 180)+"]'\n    to: ["+many("{state: b, when: n > %d},", 2000)+"]\n"+
		"  on: {from: '@g', key: required, to: ["+many("{state: s%d, when: n == %[1]d},", 300)+"{state: b}]}\n  into: {from: a, to: ["+many("{state: s%d, when: n == %[1]d},", 300)+"]}\n"))
	if err != nil {
		t.Fatalf("%.300v", err)
	}
	files, err := Generate(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if size, most := len(files[0].Data), 6*len(m.Canonical()); size > most {
		t.Errorf("%d bytes are generated, want at most %d", size, most)
	}
	for _, text := range []string{"//\ta → b, if (n in [100000000, ", "…\n", "//\tand 1850 more\n", "//\ton: and 151 more\n"} {
		if !strings.Contains(string(files[0].Data), text) {
			t.Errorf("no comment holds %q", text)
		}
	}
	if text, err := Diagram(m, "dot"); len(text) > 0 {
		t.Errorf("%d bytes of a picture, %v", len(text), err)
	}
	var problems definitions.Problems
	if _, err = Diagram(m, "dot"); !errors.As(err, &problems) || problems[0].Rule != "too-many-edges" {
		t.Errorf("a picture of 90,000 edges: %v", err)
	}
}
