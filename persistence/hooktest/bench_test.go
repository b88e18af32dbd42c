package hooktest

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

var ratios = flag.Bool("ratios", false, "hold the cost of hooks against its bound")

// lamp goes round for ever; hooked is the same with Go code in every place.
const (
	lamp = `
machine: lamp
table: {name: lamps}
initial: "off"
states: {"off": , "on": }
transitions:
  switch_on:  {from: "off", to: "on"}
  switch_off: {from: "on", to: "off"}
journal: false
`
	code = ", guard: may, effect: does, after: told, duplicates: own}"
)

func hooked() string { return strings.ReplaceAll(lamp, `"on"}`, `"on"`+code) }

// round gives a function that switches a lamp on and off.
func round(tb testing.TB, text string) func() {
	tb.Helper()
	def, err := definitions.Parse("lamp.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	eng, err := engine.New(memory.New())
	if err != nil {
		tb.Fatal(err)
	}
	code := engine.Code{}
	if def.Transitions[0].HasCode() {
		code = engine.Code{
			"may":  {Guard: func(context.Context, engine.Event) error { return nil }},
			"does": {Effect: func(context.Context, engine.Tx, engine.Event) error { return nil }},
			"told": {After: func(context.Context, engine.Event) error { return nil }},
		}
	}
	ctx := context.Background()
	m, err := eng.Machine(ctx, def, code)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := m.Create(ctx, engine.Row{"id": "l"}); err != nil {
		tb.Fatal(err)
	}
	return func() {
		for _, transition := range []string{"switch_on", "switch_off"} {
			if _, err := m.Fire(ctx, transition, "l", nil); err != nil {
				tb.Fatal(err)
			}
		}
	}
}

func BenchmarkTwoTransitions(b *testing.B) {
	for name, text := range map[string]string{"plain": lamp, "one with hooks": hooked()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run := round(b, text)
			for b.Loop() {
				run()
			}
		})
	}
}

// TestHooksCost: a transition with a guard, an effect and an after costs at most 3 µs
// more than one without. The best of many short rounds is what the code costs, whatever
// else the machine does.
func TestHooksCost(t *testing.T) {
	if !*ratios {
		t.Skip("measures; run it with -ratios")
	}
	const bound, calls = 3 * time.Microsecond, 500
	best := func(run func()) time.Duration {
		least := time.Hour
		for range 100 {
			begun := time.Now()
			for range calls {
				run()
			}
			least = min(least, time.Since(begun)/calls)
		}
		return least
	}
	plain, with := best(round(t, lamp)), best(round(t, hooked()))
	t.Logf("two transitions: %v plain, %v where one has hooks", plain, with)
	if with-plain > bound {
		t.Errorf("hooks cost %v, want at most %v", with-plain, bound)
	}
}
