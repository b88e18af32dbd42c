package engine

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// GeneratedABI1 is what generated code asserts. It is renamed when generated
// code of an older fsmgen would be wrong with this engine: run `fsmgen generate`.
const GeneratedABI1 = true

// Rules are a definition compiled to tables. They decide without
// I/O, and are safe for concurrent use once they are bound to a table.
type Rules struct {
	def         *definitions.Machine
	byName      map[string]int // state name -> index
	byText      map[string]int // value or alias of a string status -> index
	byNumber    map[int64]int  // the same for an int status
	transitions []transitionRules
	byTransit   map[string]int
	allowed     [][]string // per state: the transitions that leave it
	fields      map[string]int
	written     []bool // per field: some transition writes it
	limits      []expr.Limits
	lastVersion int64 // the greatest that the version column holds
}

// transitionRules is one transition as tables over state indexes.
type transitionRules struct {
	def     *definitions.Transition
	sources []bool
	targets []bool
	moves   []moveRules
	args    map[string]int
	// identity pairs an argument with the field it is stored in.
	identity []identityPart
	// byState: nothing but the state decides.
	byState bool
	// passed are the states that no row can be in without this transition.
	// rerunnable: no source can be reached from a target, so running the call
	// twice cannot apply twice; the rule for bare machines with unknown outcome.
	// Both walk the graph, so they are computed when they are first asked for.
	passed     func() []bool
	rerunnable func() bool
}

type moveRules struct {
	def     *definitions.Move
	sources []bool
	targets []int
	set     []assignment // the transition's and the move's own
}

type assignment struct {
	field int
	value *expr.Expr
}

type identityPart struct {
	arg   int
	field int
}

// NewRules compiles a definition.
func NewRules(def *definitions.Machine) (*Rules, error) {
	if def == nil {
		return nil, errors.New("engine: the definition is nil")
	}
	r := &Rules{
		lastVersion: math.MaxInt64,
		def:         def, byName: map[string]int{}, byText: map[string]int{}, byNumber: map[int64]int{},
		byTransit: map[string]int{}, fields: map[string]int{},
		allowed: make([][]string, len(def.States)),
	}
	for i, s := range def.States {
		r.byName[s.Name] = i
		for _, v := range append([]any{s.Value}, s.Aliases...) {
			switch v := v.(type) {
			case string:
				r.byText[v] = i
			case int64:
				r.byNumber[v] = i
			default:
				return nil, fmt.Errorf("engine: machine %s: state %q has a value of type %T", def.Name, s.Name, v)
			}
		}
	}
	r.limits = make([]expr.Limits, len(def.Fields))
	for i, f := range def.Fields {
		r.fields[f.Name] = i
		r.limits[i] = expr.ScaleOnly(f.Scale)
	}
	r.written = make([]bool, len(def.Fields))
	r.transitions = make([]transitionRules, len(def.Transitions))
	next := sync.OnceValue(r.graph)
	scales := map[string]int{}
	for i := range def.Fields {
		if def.Fields[i].Type == expr.Decimal {
			scales[def.Fields[i].Name] = def.Fields[i].Scale
		}
	}
	for i := range def.Transitions {
		r.compile(i, next, scales)
	}
	return r, r.verifyWithFSM()
}

func (r *Rules) compile(i int, next func() [][]int, scales map[string]int) {
	def := &r.def.Transitions[i]
	n := len(r.def.States)
	t := &r.transitions[i]
	*t = transitionRules{def: def, sources: make([]bool, n), targets: make([]bool, n), args: map[string]int{}}
	r.byTransit[def.Name] = i
	t.byState = len(def.Args) == 0 && !def.Rejectable(scales)
	for j, a := range def.Args {
		t.args[a.Name] = j
	}
	for j := range def.Moves {
		mv := &def.Moves[j]
		m := moveRules{def: mv, sources: make([]bool, n)}
		for _, s := range mv.From {
			m.sources[r.byName[s]] = true
			t.sources[r.byName[s]] = true
		}
		for _, target := range mv.Targets {
			m.targets = append(m.targets, r.byName[target.State])
		}
		for _, set := range [][]definitions.Assignment{def.Set, mv.Set} {
			for _, a := range set {
				m.set = append(m.set, assignment{r.fields[a.Field], a.Value})
				r.written[r.fields[a.Field]] = true
			}
		}
		t.moves = append(t.moves, m)
	}
	for e := range def.Edges() {
		t.targets[r.byName[e.Target.State]] = true
	}
	for s, can := range t.sources {
		if can {
			r.allowed[s] = append(r.allowed[s], def.Name)
		}
	}
	for _, name := range def.Identity {
		t.identity = append(t.identity, identityPart{arg: t.args[name], field: t.fieldOf(name)})
	}
	t.passed = sync.OnceValue(func() []bool {
		passed := make([]bool, n)
		for s := range r.def.PassedBy(def) {
			passed[r.byName[s]] = true
		}
		return passed
	})
	t.rerunnable = sync.OnceValue(func() bool { return !t.returns(next()) })
}

// fieldOf finds the field that stores an identity argument, or -1.
func (t *transitionRules) fieldOf(arg string) int {
	for _, m := range t.moves {
		for _, a := range m.set {
			if a.value.Root.Op == expr.OpArg && a.value.Root.Name == arg {
				return a.field
			}
		}
	}
	return -1
}

// graph lists, per state, the states one transition away.
func (r *Rules) graph() [][]int {
	next := make([][]int, len(r.def.States))
	for i := range r.def.Transitions {
		for src, targets := range r.def.Transitions[i].Targets() {
			for _, dst := range targets {
				next[r.byName[src]] = append(next[r.byName[src]], r.byName[dst])
			}
		}
	}
	return next
}

// returns reports whether some source of t can be reached from one of its targets.
func (t *transitionRules) returns(next [][]int) bool {
	seen := make([]bool, len(next))
	var stack []int
	for s, is := range t.targets {
		if is {
			stack, seen[s] = append(stack, s), true
		}
	}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if t.sources[s] {
			return true
		}
		for _, d := range next[s] {
			if !seen[d] {
				stack, seen[d] = append(stack, d), true
			}
		}
	}
	return false
}

// Narrow tells what the column of a field takes of its type. Stores call it while
// they bind a table, before the rules are used.
func (r *Rules) Narrow(field int, l expr.Limits) { r.limits[field] = l }

// NarrowVersion tells the greatest version that the version column holds. Stores call it
// as they call Narrow.
func (r *Rules) NarrowVersion(greatest int64) { r.lastVersion = greatest }

// Definition returns what the rules were compiled from.
func (r *Rules) Definition() *definitions.Machine { return r.def }

// idIsInt reports whether ids are integers.
func (r *Rules) idIsInt() bool { return r.def.Table.ID.Type == expr.Int }

// StateOf gives the index of the state whose value or alias raw is; raw is a
// string, []byte or int64 as a driver reads it.
func (r *Rules) StateOf(raw any) (int, bool) {
	var i int
	var ok bool
	switch v := raw.(type) {
	case string:
		i, ok = r.byText[v]
	case []byte:
		i, ok = r.byText[string(v)]
	case int64:
		i, ok = r.byNumber[v]
	}
	return i, ok
}

// StateIndex gives the index of the state called name.
func (r *Rules) StateIndex(name string) (int, bool) {
	i, ok := r.byName[name]
	return i, ok
}

// stateName gives the name for an index, "" for -1.
func (r *Rules) stateName(i int) string {
	if i < 0 {
		return ""
	}
	return r.def.States[i].Name
}

// Target decides, without I/O, which move and target a row in state with these
// values takes. It is what the CAS decides in SQL, said in Go: the memory store
// runs on it, and a rejected call is explained by it. move is -1 where the state
// is no source; the error is an explanation where a condition or an operation
// rejected the call.
func (r *Rules) Target(transition, state int, in expr.Input) (move, target int, err error) {
	t := &r.transitions[transition]
	if !t.sources[state] {
		return -1, -1, nil
	}
	if t.def.When != nil {
		if err := holds(t.def.When, in); err != nil {
			return -1, -1, err
		}
	}
	var why error
	for i := range t.moves {
		m := &t.moves[i]
		if !m.sources[state] {
			continue
		}
		if m.def.When != nil {
			err := holds(m.def.When, in)
			var no *conditionFalse
			if errors.As(err, &no) {
				why = errors.Join(why, err)
				continue
			}
			if err != nil {
				return -1, -1, err
			}
		}
		target, err := m.branch(in)
		return i, target, err
	}
	return -1, -1, why
}

// branch picks the first target whose condition holds.
func (m *moveRules) branch(in expr.Input) (int, error) {
	var why []string
	for j, target := range m.def.Targets {
		if target.When == nil {
			return m.targets[j], nil
		}
		ok, err := target.When.Holds(in)
		if err != nil {
			return -1, fmt.Errorf("%s: %w", target.When.Source, err)
		}
		if ok {
			return m.targets[j], nil
		}
		why = append(why, target.State+" if "+target.When.Explain(in))
	}
	return -1, &conditionFalse{"no branch holds: " + strings.Join(why, "; ")}
}

// Assign evaluates the assignments of a move; fields that it does not write keep
// their value. The error is the rejection of an operation.
func (r *Rules) Assign(transition, move int, in expr.Input, values []any) ([]any, error) {
	out := append([]any(nil), values...)
	for _, a := range r.transitions[transition].moves[move].set {
		v, err := a.value.Assign(in, r.limits[a.field])
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", r.def.Fields[a.field].Name, err)
		}
		out[a.field] = v
	}
	return out, nil
}

// conditionFalse says which condition was not true, with its values.
type conditionFalse struct{ text string }

func (c *conditionFalse) Error() string { return c.text }

func holds(e *expr.Expr, in expr.Input) error {
	ok, err := e.Holds(in)
	if err != nil {
		return fmt.Errorf("%s: %w", e.Source, err)
	}
	if !ok {
		return &conditionFalse{e.Explain(in)}
	}
	return nil
}

// Input gives expressions access to a row's values and a call's arguments, both
// in model order.
func (r *Rules) Input(transition int, fields, args []any, now time.Time) expr.Input {
	t := &r.transitions[transition]
	return expr.Input{
		Field: func(name string) any { return fields[r.fields[name]] },
		Arg:   func(name string) any { return args[t.args[name]] },
		Now:   now,
		Secret: func(name string) bool {
			i, ok := t.args[name]
			return ok && t.def.Args[i].Secret
		},
	}
}
