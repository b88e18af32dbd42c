package sqlexpr

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

var exprCases = flag.Int("exprcases", 12000, "how many pairs of expression and row the property test tries on every database")

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// row is one row of the test table, as Go sees it.
type row map[string]any

const rowsPerBatch = 7

// A batch is what one draw tries: rows, the values of a call, and what is computed.
type batch struct {
	rows   []row
	args   row
	now    time.Time
	values []assigned   // selected
	holds  []*expr.Expr // selected
	steps  []step       // run one after the other
}

// assigned is an expression for a column.
type assigned struct {
	field testField
	e     *expr.Expr
}

// step is one guarded UPDATE.
type step struct {
	when     *expr.Expr
	set      []assigned
	branches []Branch
	only     int  // a single row, or -1
	bound    bool // reads of the row are bound
}

func (g generator) batch() batch {
	b := batch{args: row{}, now: g.plain(expr.Time).(time.Time)}
	for range rowsPerBatch {
		r := row{"st": "new"}
		for _, f := range testFields {
			r[f.Name] = g.value(f.Var, f.limits)
		}
		b.rows = append(b.rows, r)
	}
	for _, a := range testArgs {
		b.args[a.Name] = g.value(a, expr.Limits{})
	}
	for range 5 {
		f := pick(g, testFields...)
		b.values = append(b.values, assigned{f, g.parsed(f.Var, 1+g.IntN(4))})
	}
	for range 4 {
		b.holds = append(b.holds, g.parsedCondition(1+g.IntN(4)))
	}
	for range 3 {
		b.steps = append(b.steps, g.step())
	}
	return b
}

func (g generator) step() step {
	s := step{only: -1}
	if g.IntN(2) == 0 {
		s.when = g.parsedCondition(1 + g.IntN(2))
	}
	taken := map[string]bool{}
	for range g.IntN(4) {
		f := pick(g, testFields...)
		if g.IntN(2) == 0 {
			f = pick(g, testFields[:4]...) // columns that read each other
		}
		if !taken[f.Name] {
			taken[f.Name] = true
			s.set = append(s.set, assigned{f, g.parsed(f.Var, 1+g.IntN(3))})
		}
	}
	if g.IntN(2) == 0 || len(s.set) == 0 {
		for i := range 1 + g.IntN(3) {
			s.branches = append(s.branches, Branch{When: g.parsedCondition(1 + g.IntN(2)), State: fmt.Sprint("state", i)})
		}
		if g.IntN(2) == 0 {
			s.branches = append(s.branches, Branch{State: "other"})
		}
	}
	if g.IntN(4) == 0 {
		s.only, s.bound = g.IntN(rowsPerBatch), g.IntN(2) == 0
	}
	return s
}

func (b *batch) input(r row) expr.Input {
	return expr.Input{Field: func(n string) any { return r[n] }, Arg: func(n string) any { return b.args[n] }, Now: b.now}
}

// run computes what a step makes of a row; nil where it is refused.
func (s *step) run(b *batch, r row) row {
	in := b.input(r)
	out := row{}
	for k, v := range r {
		out[k] = v
	}
	if s.when != nil {
		if ok, err := s.when.Holds(in); !ok || err != nil {
			return nil
		}
	}
	for _, a := range s.set {
		v, err := a.e.Assign(in, a.field.limits)
		if err != nil {
			return nil
		}
		out[a.field.Name] = v
	}
	if len(s.branches) == 0 {
		return out
	}
	for _, br := range s.branches {
		if br.When == nil {
			out["st"] = br.State
			return out
		}
		ok, err := br.When.Holds(in)
		if err != nil {
			return nil
		}
		if ok {
			out["st"] = br.State
			return out
		}
	}
	return nil
}

// TestGoAndDatabasesAgree holds the evaluation in Go against every database: random
// expressions over random rows give the same value or the same rejection.
func TestGoAndDatabasesAgree(t *testing.T) {
	conns := connect(t)
	applied, pairs := 0, 0
	begin := time.Now()
	for pairs < *exprCases && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			if pairs >= *exprCases {
				return
			}
			g := generator{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
			b := g.batch()
			pairs += rowsPerBatch * (len(b.values) + len(b.holds) + len(b.steps))
			for i, c := range conns {
				n, err := c.try(&b)
				if err != nil {
					t.Fatalf("%s: %v", c.name, err)
				}
				if i == 0 {
					applied += n
				}
			}
		})
	}
	t.Logf("%d pairs on %d connections in %v; %d rows updated", pairs, len(conns), time.Since(begin).Round(time.Millisecond), applied)
}
