package codegen

import (
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
