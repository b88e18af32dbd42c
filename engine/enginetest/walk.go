package enginetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/looplab/fsm"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// walker walks one machine on one store.
type walker struct {
	c      Config
	def    *definitions.Machine
	graph  *graph
	search *search
	store  engine.Store
	eng    *engine.Engine
	m      *engine.Machine
	ids    ids
	shared int // edges that are not walked since a unique key allows no second row
}

func newWalker(store engine.Store, c Config) (*walker, error) {
	if c.Definition == nil {
		return nil, errors.New("enginetest: the Config has no Definition")
	}
	w := &walker{c: c, def: c.Definition, graph: newGraph(c.Definition), store: store}
	if w.c.Code == nil {
		w.c.Code = agreeable(w.def)
	}
	rules, err := engine.NewRules(w.def)
	if err != nil {
		return nil, err
	}
	if w.search, err = newSearch(w.c, rules, w.graph); err != nil {
		return nil, err
	}
	w.ids.begin(w.def.Table.ID.Type)
	w.leaveShared()
	w.eng, w.m, err = w.machine(store)
	return w, err
}

// machine gives the machine on a store, with a clock that stands still.
func (w *walker) machine(store engine.Store) (*engine.Engine, *engine.Machine, error) {
	eng, err := engine.New(store, engine.WithClock(func() time.Time { return instant }))
	if err != nil {
		return nil, nil, err
	}
	m, err := eng.Machine(context.Background(), w.def, w.c.Code)
	return eng, m, err
}

// agreeable is Go code that lets everything pass.
func agreeable(def *definitions.Machine) engine.Code {
	code := engine.Code{}
	for i := range def.Transitions {
		t := &def.Transitions[i]
		if t.Guard != "" {
			code[t.Guard] = engine.Hook{Guard: func(context.Context, engine.Event) error { return nil }}
		}
		if t.Effect != "" {
			code[t.Effect] = engine.Hook{Effect: func(context.Context, engine.Tx, engine.Event) error { return nil }}
		}
		if t.After != "" {
			code[t.After] = engine.Hook{After: func(context.Context, engine.Event) error { return nil }}
		}
	}
	return code
}

// ids are those of a run: none of them was used before.
type ids struct {
	text string
	base int64
	n    atomic.Int64
}

func (i *ids) begin(t expr.Type) {
	if t != expr.Int {
		i.text = "walk-" + rand.Text()[:12] + "-"
	}
	n, err := rand.Int(rand.Reader, big.NewInt(1<<30))
	if err != nil {
		panic(err) // crypto/rand gives none
	}
	i.base = n.Int64() << 20
}

func (i *ids) next() (id string, n int64) {
	n = i.n.Add(1)
	if i.text != "" {
		return i.text + strconv.FormatInt(n, 10), i.base + n
	}
	return strconv.FormatInt(i.base+n, 10), i.base + n
}

// visit is a row on its walk.
type visit struct {
	*walker
	plan    plan // with what only this row may have
	id      string
	number  int64
	state   string
	version int64
	values  []any
	oracle  *fsm.FSM
	taken   []edge
}

// visit is a row with a plan, not yet there.
func (w *walker) visit(p plan) *visit {
	v := &visit{walker: w, state: p.initial, version: 1, oracle: w.graph.at(p.initial)}
	v.id, v.number = w.ids.next()
	v.plan, _ = v.own(p)
	v.values = v.plan.row
	return v
}

// leaveShared drops the plans that only one row could follow, since each is followed by
// many: they are told like those for which no row was found.
func (w *walker) leaveShared() {
	before := len(w.search.found)
	maps.DeleteFunc(w.search.found, func(_ edge, p plan) bool { return !w.canRepeat(p) })
	maps.DeleteFunc(w.search.reached, func(_ string, p plan) bool { return !w.canRepeat(p) })
	w.shared = before - len(w.search.found)
}

// canRepeat reports whether any number of rows can follow a plan.
func (w *walker) canRepeat(p plan) bool {
	_, ok := w.visit(p).own(p)
	return ok
}

// start creates the row of a plan and takes its steps.
func (w *walker) start(ctx context.Context, p plan) (*visit, error) {
	v := w.visit(p)
	return v, v.walk(ctx, len(p.steps))
}

// before brings a row to where the last step of a plan begins.
func (w *walker) before(ctx context.Context, p plan) (*visit, step, error) {
	v, last := w.visit(p), len(p.steps)-1
	return v, v.plan.steps[last], v.walk(ctx, last)
}

// walk creates the row and takes the first steps.
func (v *visit) walk(ctx context.Context, steps int) error {
	row := engine.Row{"id": v.id, "status": v.plan.initial}
	for i, value := range v.plan.row {
		if value != nil {
			row[v.def.Fields[i].Name] = value
		}
	}
	res, err := v.m.Create(ctx, row)
	if err != nil {
		return fmt.Errorf("create %v: %w", row, err)
	}
	if res.Outcome != engine.Applied || res.State != v.state || res.Version != 1 {
		return fmt.Errorf("create %v: %s", row, answer(res, nil))
	}
	if err := v.check(ctx); err != nil {
		return err
	}
	for _, s := range v.plan.steps[:steps] {
		if err := v.take(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// fire makes the call of a step.
func (v *visit) fire(ctx context.Context, m *engine.Machine, s step, opts ...engine.CallOption) (engine.Result, error) {
	return m.Fire(ctx, s.transition, v.id, argsOf(v.def, s), opts...)
}

// argsOf names the arguments of a step.
func argsOf(def *definitions.Machine, s step) engine.Args {
	t, _ := def.Transition(s.transition)
	args := engine.Args{}
	for i, value := range s.args {
		if value != nil {
			args[t.Args[i].Name] = value
		}
	}
	return args
}

// keyed reports whether the caller may bring a key.
func (w *walker) keyed(transition string) bool {
	t, _ := w.def.Transition(transition)
	return w.def.Journal.Enabled && !t.Key.Derived()
}

// key is a key for the next step of a row, where one may be given.
func (v *visit) key(transition string) []engine.CallOption {
	if !v.keyed(transition) {
		return nil
	}
	return []engine.CallOption{engine.WithKey(fmt.Sprintf("walk-%d", v.version))}
}

// take makes the call of a step and holds everything it says against the plan.
func (v *visit) take(ctx context.Context, s step) error {
	res, err := v.fire(ctx, v.m, s, v.key(s.transition)...)
	if err != nil {
		return fmt.Errorf("%s, on a row in %s at version %d: %w", s, v.state, v.version, err)
	}
	return v.took(ctx, s, res)
}

// took holds the result of a call that applied against the plan, looplab and the row.
func (v *visit) took(ctx context.Context, s step, res engine.Result) error {
	if res.ID != v.id || res.Outcome != engine.Applied || res.From != s.from || res.To != s.to || res.State != s.to || res.Version != v.version+1 {
		return fmt.Errorf("%s, on a row in %s at version %d: %s", s, v.state, v.version, answer(res, nil))
	}
	if err := v.graph.follow(ctx, v.oracle, s.edge); err != nil {
		return err
	}
	v.state, v.version, v.values, v.taken = s.to, v.version+1, s.after, append(v.taken, s.edge)
	return v.check(ctx)
}

// check holds the row and its journal against the walk so far.
func (v *visit) check(ctx context.Context) error {
	got, err := v.m.Get(ctx, v.id)
	if err != nil {
		return fmt.Errorf("get %s: %w", v.id, err)
	}
	if got.State != v.state || got.Version != v.version || got.State != v.oracle.Current() {
		return fmt.Errorf("row %s is in %s at version %d, want %s at version %d, as looplab/fsm has it", v.id, got.State, got.Version, v.oracle.Current(), v.version)
	}
	for i, value := range got.Values {
		if f := &v.def.Fields[i]; !v.defaulted(i) && !expr.Equal(f.Type, value, v.values[i]) {
			return fmt.Errorf("row %s in %s at version %d has %s %s, want %s", v.id, v.state, v.version, f.Name, expr.FormatValue(f.Type, value), expr.FormatValue(f.Type, v.values[i]))
		}
	}
	return v.checkJournal(ctx)
}

// defaulted reports whether a field was left to its default, which the plan does not know.
func (v *visit) defaulted(i int) bool { return v.values[i] == nil && v.def.Fields[i].Default != nil }

func (v *visit) checkJournal(ctx context.Context) error {
	if !v.def.Journal.Enabled {
		return nil
	}
	entries, err := v.m.Journal(ctx, v.id)
	if err != nil {
		return fmt.Errorf("the journal of %s: %w", v.id, err)
	}
	if int64(len(entries)) != v.version {
		return fmt.Errorf("row %s at version %d has %d journal entries", v.id, v.version, len(entries))
	}
	for i, e := range v.taken {
		if x := entries[i+1]; x.Transition != e.transition || x.From != e.from || x.To != e.to || x.Version != int64(i)+2 {
			return fmt.Errorf("the journal of %s has %s: %s → %s at version %d, the walk took %s", v.id, x.Transition, x.From, x.To, x.Version, e)
		}
	}
	return nil
}
