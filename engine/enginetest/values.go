package enginetest

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// instant is the time of every call of a walk: a condition on now() has one answer.
var instant = time.Date(2026, 2, 3, 4, 5, 6, 789000000, time.UTC)

// values are candidates for fields and arguments: some of every type, and whatever the
// expressions of the definition name, with its neighbours.
type values struct {
	literals map[expr.Type][]any
	read     map[string]bool // fields that an expression reads
}

func newValues(def *definitions.Machine) *values {
	v := &values{literals: map[expr.Type][]any{}, read: map[string]bool{}}
	for i := range def.Transitions {
		for _, e := range expressions(&def.Transitions[i]) {
			for _, name := range e.Fields() {
				v.read[name] = true
			}
			e.Root.Walk(v.literal)
		}
	}
	return v
}

// expressions are all of a transition, conditions and assignments.
func expressions(t *definitions.Transition) []*expr.Expr {
	all := []*expr.Expr{t.When}
	sets := func(list []definitions.Assignment) {
		for _, a := range list {
			all = append(all, a.Value)
		}
	}
	sets(t.Set)
	for _, m := range t.Moves {
		all = append(all, m.When)
		sets(m.Set)
		for _, target := range m.Targets {
			all = append(all, target.When)
		}
	}
	return slices.DeleteFunc(all, func(e *expr.Expr) bool { return e == nil })
}

func (v *values) literal(n *expr.Node) {
	add := func(t expr.Type, list ...any) { v.literals[t] = append(v.literals[t], list...) }
	switch lit := n.Value.(type) {
	case int64:
		d := decimal.NewFromInt(lit)
		add(expr.Int, lit, lit+1, lit-1)
		add(expr.Decimal, d, d.Add(cent), d.Sub(cent))
		add(expr.Float, float64(lit), float64(lit)+0.5, float64(lit)-0.5)
	case float64:
		add(expr.Float, lit, lit+0.5, lit-0.5)
	case decimal.Decimal:
		add(expr.Decimal, lit, lit.Add(cent), lit.Sub(cent))
	case string:
		add(expr.String, lit)
	case time.Time:
		add(expr.Time, lit, lit.Add(-time.Second), lit.Add(time.Second))
	case time.Duration:
		add(expr.Time, instant.Add(lit+time.Second), instant.Add(-lit-time.Second))
	}
}

var cent = decimal.New(1, -2)

// samples are values of each type; the first is the plainest.
var samples = map[expr.Type][]any{
	expr.Int:     {int64(1), int64(0), int64(2), int64(3), int64(10), int64(100), int64(-1)},
	expr.Float:   {1.0, 0.0, 0.5, 100.0, -1.0},
	expr.Decimal: {decimal.NewFromInt(1), decimal.Zero, decimal.NewFromInt(2), decimal.NewFromInt(100), decimal.NewFromInt(-1)},
	expr.String:  {"a", "b", "c", "d", ""},
	expr.Bool:    {true, false},
	expr.Time:    {instant, instant.Add(-time.Hour), instant.Add(time.Hour)},
	expr.Bytes:   {[]byte("a"), []byte("b")},
	expr.JSON:    {json.RawMessage(`{"a":1}`), json.RawMessage(`[]`)},
}

// of are the candidates of a type, canonical and each once.
func (v *values) of(t expr.Type, scale int, more ...any) []any {
	var out []any
	for _, list := range [][]any{samples[t][:1], more, v.literals[t], samples[t]} {
		for _, raw := range list {
			c, err := expr.Coerce(t, scale, raw)
			if err == nil && c != nil && !slices.ContainsFunc(out, func(x any) bool { return expr.Equal(t, x, c) }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// field are the candidates of a field; where nothing reads it one is enough.
func (v *values) field(f *definitions.Field) []any {
	all := v.of(f.Type, f.Scale)
	if f.Default != nil && !f.Default.Now {
		all = append([]any{f.Default.Value}, all...)
	}
	if !v.read[f.Name] {
		return all[:1]
	}
	if f.Nullable && f.Default == nil { // else a row is not created with nil
		all = append(all, nil)
	}
	return all
}

// fewCombinations is how many combinations are tried of a place where all would be more.
const fewCombinations = 200

// combinations are lists with one candidate of each place: all of them where they are
// few, else every candidate once beside the plainest of the others, and some by chance.
func combinations(places [][]any, few int) [][]any {
	all := 1
	for _, p := range places {
		if all *= len(p); all > few {
			return chosen(places, few)
		}
	}
	out := [][]any{nil}
	for _, p := range places {
		var next [][]any
		for _, begun := range out {
			for _, v := range p {
				next = append(next, append(slices.Clone(begun), v))
			}
		}
		out = next
	}
	return out
}

func chosen(places [][]any, few int) [][]any {
	plain := make([]any, len(places))
	for i, p := range places {
		plain[i] = p[0]
	}
	out := [][]any{plain}
	for i, p := range places {
		for _, v := range p[1:] {
			one := slices.Clone(plain)
			one[i] = v
			out = append(out, one)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same at every run
	for len(out) < few {
		one := make([]any, len(places))
		for i, p := range places {
			one[i] = p[rng.IntN(len(p))]
		}
		out = append(out, one)
	}
	return out
}
