package workflowtest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fsmgen/fsmgen/engine"
)

// sum adds as the language does: every step in int64, or rejected.
func sum(first int64, more ...int64) (any, error) {
	for _, x := range more {
		r := first + x
		if (r > first) != (x > 0) && x != 0 {
			return nil, errReject
		}
		first = r
	}
	return first, nil
}

// quotient divides as the language does.
func quotient(a, b int64) (any, error) {
	if b == 0 || a == math.MinInt64 && b == -1 {
		return nil, errReject
	}
	return a / b, nil
}

// remainder: nothing overflows here.
func remainder(a, b int64) (any, error) {
	if b == 0 {
		return nil, errReject
	}
	return a % b, nil
}

// test compares what was computed, if it was.
func test(v any, err error, holds func(n int64) bool) (any, error) {
	if err != nil {
		return nil, err
	}
	return holds(v.(int64)), nil
}

func registersFlow(t testing.TB) *flow {
	t.Helper()
	plus := func(name string) meaning {
		return func(v view) (any, error) { return sum(v.int(name), v.arg("by")) }
	}
	or := func(name string, other func(v view) any) meaning {
		return func(v view) (any, error) {
			if v.row[name] != nil {
				return v.row[name], nil
			}
			return other(v), nil
		}
	}
	positive := func(n int64) bool { return n > 0 }
	return &flow{
		def: load(t, "registers"),
		meaning: meanings{
			"a + b + c":   func(v view) (any, error) { return sum(v.int("a"), v.int("b"), v.int("c")) },
			"a + args.by": plus("a"), "b + args.by": plus("b"), "c + args.by": plus("c"),
			"u ?? s":     or("u", func(v view) any { return v.row["s"] }),
			"u ?? 'end'": or("u", func(view) any { return "end" }),
			"a % c":      func(v view) (any, error) { return remainder(v.int("a"), v.int("c")) },
			"a + args.by > 100": func(v view) (any, error) {
				r, err := sum(v.int("a"), v.arg("by"))
				return test(r, err, func(n int64) bool { return n > 100 })
			},
			"c != 0": means(func(v view) bool { return v.int("c") != 0 }),
			"b > 0":  means(func(v view) bool { return positive(v.int("b")) }),
			"b < 0":  means(func(v view) bool { return v.int("b") < 0 }),
			"a % c != 0 and b > 0": func(v view) (any, error) {
				r, err := remainder(v.int("a"), v.int("c"))
				return test(r, err, func(n int64) bool { return n != 0 && positive(v.int("b")) })
			},
			"s == 'stop' and a / args.by >= 0": func(v view) (any, error) {
				if v.row["s"] != "stop" {
					return false, nil
				}
				r, err := quotient(v.int("a"), v.arg("by"))
				return test(r, err, func(n int64) bool { return n >= 0 })
			},
		},
		rows: []map[string]any{
			registers(3, 5, 7, nil, "s", nil), registers(200, -1, 0, int64(4), "stop", "it's"),
			registers(math.MinInt64, math.MaxInt64, -1, nil, "stop", nil), registers(-9, 0, 4, int64(0), "", "stop"),
		},
		calls: []call{
			{transition: "cycle", args: map[string]any{"by": int64(1)}},
			{transition: "sort", args: map[string]any{"by": int64(0)}},
			{transition: "sort", args: map[string]any{"by": int64(-1)}},
			{transition: "sort", args: map[string]any{"by": int64(5)}},
			{transition: "swap"},
			{transition: "chain"},
		},
	}
}

func registers(a, b, c int64, n any, s string, u any) map[string]any {
	return map[string]any{"a": a, "b": b, "c": c, "n": n, "s": s, "u": u}
}

func gaugeFlow(t testing.TB) *flow {
	t.Helper()
	return &flow{
		def: load(t, "gauge"),
		meaning: meanings{
			"level + args.by": func(v view) (any, error) { return sum(v.int("level"), v.arg("by")) },
			"args.by > 0":     means(func(v view) bool { return v.arg("by") > 0 }),
			"args.by < 0":     means(func(v view) bool { return v.arg("by") < 0 }),
			"level + args.by == 0": func(v view) (any, error) {
				r, err := sum(v.int("level"), v.arg("by"))
				return test(r, err, func(n int64) bool { return n == 0 })
			},
		},
		rows: []map[string]any{{"level": int64(0)}, {"level": int64(5)}, {"level": int64(math.MaxInt64)}},
		calls: []call{
			{transition: "step", args: map[string]any{"by": int64(1)}},
			{transition: "step", args: map[string]any{"by": int64(-5)}},
			{transition: "step", args: map[string]any{"by": int64(0)}},
			{transition: "step", args: map[string]any{"by": int64(math.MinInt64)}},
		},
	}
}

// TestMatrixOfMoves tries definitions that are nothing but moves and assignments: swaps,
// chains and cycles, conditions with a fallback, old values of a state, an int status.
func TestMatrixOfMoves(t *testing.T) {
	for _, f := range []*flow{registersFlow(t), gaugeFlow(t)} {
		t.Run(f.def.Name, func(t *testing.T) {
			onEach(t, kinds(), func(s *site) { runMatrix(s, f) }, f.def)
		})
	}
}

// TestCanAndFireAgree: on any row, what Can says, with and without the database, is what
// Fire then does, on every store.
func TestCanAndFireAgree(t *testing.T) {
	for _, f := range []*flow{registersFlow(t), gaugeFlow(t), paymentIntentFlow(t), fulfillmentFlow(t)} {
		t.Run(f.def.Name, func(t *testing.T) {
			onEach(t, kinds(), func(s *site) {
				rules, err := engine.NewRules(f.def)
				check(t, err)
				ids := int64(0)
				rapid.Check(s.t, func(rt *rapid.T) {
					ids++
					agree(rt, s, f, rules, fmt.Sprint(ids))
				})
			}, f.def)
		})
	}
}

func agree(rt *rapid.T, s *site, f *flow, rules *engine.Rules, id string) {
	state := rapid.SampledFrom(f.def.States).Draw(rt, "state")
	raw := rapid.SampledFrom(append([]any{state.Value}, state.Aliases...)).Draw(rt, "raw")
	version := rapid.Int64Range(1, 5).Draw(rt, "version")
	values := map[string]any{}
	for _, field := range f.def.Fields {
		values[field.Name] = drawValue(rt, f.rows, field.Name)
	}
	c := rapid.SampledFrom(f.every()).Draw(rt, "call")
	c.args = maps.Clone(c.args)
	for name, v := range c.args {
		if _, isInt := v.(int64); isInt {
			c.args[name] = rapid.SampledFrom(numbers()).Draw(rt, name)
		}
	}
	full := engine.Row{"id": idValue(f.def, id), "status": raw, "version": version}
	maps.Copy(full, values)
	if err := s.Insert(context.Background(), f.def, full); err != nil {
		rt.Fatal(err)
	}
	can := s.m.Can(context.Background(), id, c.transition, c.args)
	var fields, args []any
	for _, field := range f.def.Fields {
		fields = append(fields, values[field.Name])
	}
	t, _ := f.def.Transition(c.transition)
	for _, a := range t.Args {
		args = append(args, c.args[a.Name])
	}
	pure := canAt(s.t, s.now(), func() error { return rules.Can(c.transition, id, state.Name, version, fields, args) })
	o := newOracle(f.def, f.meaning)
	o.adopt(id, state.Name, version, values)
	want := o.fire(id, c, s.now())
	got := fire(s.m, id, c)
	if got != want {
		rt.Fatalf("%v in %s%s\n got %+v\nwant %+v", c, state.Name, shown(values), got, want)
	}
	for what, err := range map[string]error{"Can": can, "Rules.Can": pure} {
		if a := answerOf(engine.Result{}, err); a.Kind != want.Kind || err != nil && (a.State != want.State || a.Version != want.Version || a.Allowed != want.Allowed) {
			rt.Fatalf("%s says %v, and Fire %+v", what, err, want)
		}
	}
	if diff := differs(s.m, o, id); diff != "" {
		rt.Fatal(diff)
	}
}

// canAt asks the pure form at a moment of the test's choice: it has no clock but the wall's,
// which stands still in a bubble and can be moved there.
func canAt(t *testing.T, at time.Time, can func() error) (err error) {
	synctest.Test(t, func(*testing.T) {
		time.Sleep(time.Until(at))
		err = can()
	})
	return err
}

func numbers() []int64 { return []int64{0, 1, -1, 2, 3, -7, 100, 101, math.MaxInt64, math.MinInt64} }

// drawValue draws a value like those of the rows.
func drawValue(rt *rapid.T, rows []map[string]any, name string) any {
	options := []any{}
	for _, row := range rows {
		options = append(options, row[name])
		switch row[name].(type) {
		case int64:
			options = append(options, rapid.SampledFrom(numbers()).Draw(rt, name))
		case time.Time:
			options = append(options, start.Add(-time.Hour), start.Add(-time.Microsecond), start.Add(time.Hour))
		}
	}
	return rapid.SampledFrom(options).Draw(rt, name)
}
