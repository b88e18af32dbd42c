package enginetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// plan is a row to create and the calls that bring it somewhere.
type plan struct {
	initial string
	row     []any // fields in the order of the definition
	steps   []step
}

// step is a call that takes one edge.
type step struct {
	edge
	args []any
	// after are the fields of the row behind it.
	after []any
}

func (p plan) state() string {
	if len(p.steps) == 0 {
		return p.initial
	}
	return p.steps[len(p.steps)-1].to
}

func (p plan) values() []any {
	if len(p.steps) == 0 {
		return p.row
	}
	return p.steps[len(p.steps)-1].after
}

// then is the plan with one step more.
func (p plan) then(s step) plan {
	p.steps = append(slices.Clone(p.steps), s)
	return p
}

// search looks for rows and arguments that meet the conditions of the edges.
type search struct {
	c     Config
	def   *definitions.Machine
	rules *engine.Rules
	graph *graph
	*values
	// found has a shortest plan per edge, reached one per state.
	found   map[edge]plan
	reached map[string]plan
}

// mostPlans bounds the search: what takes more steps than this is the caller's to give.
const mostPlans = 3000

// newSearch finds a plan for every edge and state that it can.
func newSearch(c Config, rules *engine.Rules, g *graph) (*search, error) {
	s := &search{c: c, def: c.Definition, rules: rules, graph: g, values: newValues(c.Definition), found: map[edge]plan{}, reached: map[string]plan{}}
	queue, err := s.seeds()
	if err != nil {
		return nil, err
	}
	for _, p := range queue {
		s.reach(p)
	}
	seen := map[string]bool{}
	for i := 0; i < len(queue) && len(queue) < mostPlans && len(s.found) < len(g.edges); i++ {
		for _, next := range s.next(queue[i]) {
			e := next.steps[len(next.steps)-1].edge
			if _, ok := s.found[e]; !ok {
				s.found[e] = next
			}
			s.reach(next)
			if key := next.standing(s); !seen[key] {
				seen[key] = true
				queue = append(queue, next)
			}
		}
	}
	return s, nil
}

// reach keeps the first plan that leads to a state.
func (s *search) reach(p plan) {
	if _, ok := s.reached[p.state()]; !ok {
		s.reached[p.state()] = p
	}
}

// standing is what of a plan decides on what can follow.
func (p plan) standing(s *search) string {
	var b strings.Builder
	b.WriteString(p.state())
	for i, v := range p.values() {
		if f := &s.def.Fields[i]; s.read[f.Name] {
			b.WriteString(" " + expr.FormatValue(f.Type, v))
		}
	}
	return b.String()
}

// seeds are the rows to begin with.
func (s *search) seeds() ([]plan, error) {
	var out []plan
	for _, initial := range s.def.Initial {
		var given engine.Row
		if s.c.Row != nil {
			given = s.c.Row(initial)
		}
		places := make([][]any, len(s.def.Fields))
		for i := range s.def.Fields {
			f := &s.def.Fields[i]
			places[i] = s.field(f)
			if raw, ok := given[f.Name]; ok {
				v, err := expr.Coerce(f.Type, f.Scale, raw)
				if err != nil {
					return nil, fmt.Errorf("enginetest: Row gives field %s: %w", f.Name, err)
				}
				places[i] = []any{v}
			}
		}
		for _, row := range combinations(places, fewCombinations) {
			out = append(out, plan{initial: initial, row: row})
		}
	}
	return out, nil
}

// next are the plans with one step more, one per edge that can be taken, and per
// argument that could make a difference.
func (s *search) next(p plan) []plan {
	var out []plan
	for _, e := range s.graph.leave[p.state()] {
		if st, ok := s.step(p, e); ok {
			out = append(out, p.then(st))
		}
	}
	return out
}

// step finds arguments with which the row of a plan takes an edge.
func (s *search) step(p plan, e edge) (step, bool) {
	for _, args := range s.arguments(p, e) {
		if st, ok := s.taken(p, e, args); ok {
			return st, true
		}
	}
	return step{}, false
}

// taken is the step in which the row of a plan takes an edge with these arguments.
func (s *search) taken(p plan, e edge, args []any) (step, bool) {
	i := slices.IndexFunc(s.def.Transitions, func(t definitions.Transition) bool { return t.Name == e.transition })
	state, _ := s.rules.StateIndex(e.from)
	in := s.rules.Input(i, p.values(), args, instant)
	move, target, err := s.rules.Target(i, state, in)
	if err != nil || move < 0 || s.def.States[target].Name != e.to || s.repeats(p, &s.def.Transitions[i], args) {
		return step{}, false
	}
	after, err := s.rules.Assign(i, move, in, p.values())
	return step{e, args, after}, err == nil
}

// repeats reports whether the derived key of a call was used on the way: such a call
// would be a repeat and not a step.
func (s *search) repeats(p plan, t *definitions.Transition, args []any) bool {
	return t.Key.Derived() && slices.ContainsFunc(p.steps, func(before step) bool {
		if before.transition != t.Name {
			return false
		}
		for i := range t.Args {
			if slices.Contains(t.Key.Args, t.Args[i].Name) && !expr.Equal(t.Args[i].Type, before.args[i], args[i]) {
				return false
			}
		}
		return true
	})
}

// arguments are candidates for a call that is to take an edge.
func (s *search) arguments(p plan, e edge) [][]any {
	t, _ := s.def.Transition(e.transition)
	if s.c.Args != nil {
		if given := s.c.Args(e.transition, e.to, rowOf(s.def, p.values())); given != nil {
			if args, ok := coerced(t, given); ok {
				return [][]any{args}
			}
			return nil
		}
	}
	return s.candidates(p, t)
}

// candidates are arguments of the walker's own choice.
func (s *search) candidates(p plan, t *definitions.Transition) [][]any {
	read := map[string]bool{}
	for _, x := range expressions(t) {
		for _, name := range x.Args() {
			read[name] = true
		}
	}
	places := make([][]any, len(t.Args))
	for i := range t.Args {
		places[i] = s.argument(p, &t.Args[i])
		if a := &t.Args[i]; !read[a.Name] && !slices.Contains(t.Key.Args, a.Name) {
			places[i] = places[i][:1]
		} else if a.Optional {
			places[i] = append(places[i], nil)
		}
	}
	return combinations(places, fewCombinations)
}

// argument are the candidates of one argument: also what the row holds, since
// conditions compare the two.
func (s *search) argument(p plan, a *definitions.Arg) []any {
	var held []any
	for i, v := range p.values() {
		if s.def.Fields[i].Type == a.Type {
			held = append(held, v)
		}
	}
	return s.of(a.Type, a.Scale, held...)
}

// rowOf names the fields of a row.
func rowOf(def *definitions.Machine, values []any) engine.Row {
	row := engine.Row{}
	for i, v := range values {
		row[def.Fields[i].Name] = v
	}
	return row
}

// coerced puts arguments into the order of the definition; false where one does not fit.
func coerced(t *definitions.Transition, given engine.Args) ([]any, bool) {
	args := make([]any, len(t.Args))
	for i, a := range t.Args {
		v, err := expr.Coerce(a.Type, a.Scale, given[a.Name])
		if err != nil {
			return nil, false
		}
		args[i] = v
	}
	return args, true
}
