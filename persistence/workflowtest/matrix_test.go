package workflowtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// flow is a definition with what it takes to try everything about it.
type flow struct {
	def     *definitions.Machine
	meaning meanings
	// rows are the fields of rows to begin with, all of them.
	rows []map[string]any
	// calls are what to try in every state. Transitions without arguments need none.
	calls []call
}

// every is calls completed: each transition is called, with a key where it wants one.
func (f *flow) every() []call {
	calls := slices.Clone(f.calls)
	for i := range f.def.Transitions {
		t := &f.def.Transitions[i]
		if !slices.ContainsFunc(calls, func(c call) bool { return c.transition == t.Name }) {
			calls = append(calls, call{transition: t.Name})
		}
	}
	for i := range calls {
		if t, ok := f.def.Transition(calls[i].transition); !ok {
			panic("no transition " + calls[i].transition)
		} else if t.Key.Required {
			calls[i].key = fmt.Sprint("call-", i)
		}
	}
	return calls
}

// walk is how a row gets somewhere.
type walk struct {
	state string
	row   map[string]any
	steps []call
}

func (w walk) String() string { return fmt.Sprint(w.state, shown(w.row), w.steps) }

// walks finds ways to every state: one for each way to stand there that could make a
// difference to what a call means.
func (f *flow) walks(most int) []walk {
	var out []walk
	seen := map[string]bool{}
	calls := f.every()
	for _, row := range f.rows {
		for _, state := range f.def.Initial {
			out = append(out, walk{state: state, row: row})
		}
	}
	for i := 0; i < len(out) && len(out) < most; i++ {
		at := newOracle(f.def, f.meaning)
		f.follow(at, out[i])
		for _, c := range calls {
			if c.key != "" {
				c.key = fmt.Sprint("step-", len(out[i].steps))
			}
			try := at.clone()
			if a := try.fire("w", c, start); a.Outcome != engine.Applied.String() {
				continue
			}
			if key := try.standing("w"); !seen[key] {
				seen[key] = true
				steps := append(slices.Clone(out[i].steps), c)
				out = append(out, walk{out[i].state, out[i].row, steps})
			}
		}
	}
	return out
}

func (f *flow) follow(o *oracle, w walk) {
	o.create("w", w.state, w.row)
	for _, c := range w.steps {
		o.fire("w", c, start)
	}
}

// standing is what of a row's history matters: where it is, who brought it there, and
// which transitions have been run and not undone.
func (o *oracle) standing(id string) string {
	parts := []string{o.rows[id].state}
	if e := o.entered(id); e != nil {
		parts = append(parts, e.transition)
	}
	for i := range o.def.Transitions {
		if t := &o.def.Transitions[i]; o.own(id, t) != nil {
			parts = append(parts, t.Name)
		}
	}
	return strings.Join(parts, " ")
}

// runMatrix tries every call on a row in every state, put there from outside and
// walked there, and holds each answer and the row against the oracle.
func runMatrix(s *site, f *flow) {
	s.t.Helper()
	most := 12
	if *long {
		most = 200
	}
	r := &runner{t: s.t, s: s, f: f, m: s.machines[f.def.Name], tasks: make(chan func())}
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			for task := range r.tasks {
				task()
			}
		})
	}
	r.seeded()
	r.walked(f.walks(most))
	close(r.tasks)
	group.Wait()
	s.t.Logf("%d cells", r.ids.Load())
}

// runner runs the cells of a matrix side by side: each has a row of its own.
type runner struct {
	t     *testing.T
	s     *site
	f     *flow
	m     *engine.Machine
	ids   atomic.Int64
	tasks chan func()
}

// seeded: rows that somebody else made, in every state, under every value that the
// column may hold for it.
func (r *runner) seeded() {
	for _, state := range r.f.def.States {
		for _, raw := range append([]any{state.Value}, state.Aliases...) {
			for i, values := range r.f.rows {
				for _, c := range r.f.every() {
					versions := []int64{0}
					if i == 0 {
						versions = []int64{0, 6, 7} // of which 7 is the row's
					}
					for _, version := range versions {
						named := c
						named.version = version
						r.tasks <- func() { r.seed(state.Name, raw, values, named) }
					}
				}
			}
		}
	}
}

func (r *runner) seed(state string, raw any, values map[string]any, c call) {
	id := r.id()
	full := engine.Row{"id": idValue(r.f.def, id), "status": raw, "version": int64(7)}
	maps.Copy(full, values)
	if err := r.s.Insert(context.Background(), r.f.def, full); err != nil {
		r.t.Errorf("seed %v: %v", full, err)
		return
	}
	o := newOracle(r.f.def, r.f.meaning)
	o.adopt(id, state, 7, values)
	r.try(o, id, fmt.Sprintf("%s (as %v)%s", state, raw, shown(values)), c)
}

// idValue is an id as its column holds it.
func idValue(def *definitions.Machine, id string) any {
	if def.Table.ID.Type != expr.Int {
		return id
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

func (r *runner) id() string {
	n := r.ids.Add(1)
	if r.f.def.Table.ID.Type == expr.Int {
		return fmt.Sprint(n)
	}
	return fmt.Sprint("row-", n)
}

func (r *runner) walked(walks []walk) {
	for _, w := range walks {
		for _, c := range r.f.every() {
			r.tasks <- func() { r.walk(w, c) }
		}
	}
}

func (r *runner) walk(w walk, c call) {
	id := r.id()
	full := engine.Row{"id": id, "status": w.state}
	maps.Copy(full, w.row)
	if res, err := r.m.Create(context.Background(), full); err != nil || res.Outcome != engine.Applied {
		r.t.Errorf("create %v: %v, %v", full, res, err)
		return
	}
	o := newOracle(r.f.def, r.f.meaning)
	o.create(id, w.state, w.row)
	for _, step := range w.steps {
		r.fire(o, id, w.String(), step)
	}
	r.try(o, id, w.String(), c)
}

// try makes a call, repeats it, and then makes another one under its key.
func (r *runner) try(o *oracle, id, where string, c call) {
	r.fire(o, id, where, c)
	r.fire(o, id, where+", again", c)
	if c.key != "" {
		calls := r.f.every()
		i := slices.IndexFunc(calls, func(x call) bool { return x.key == c.key })
		other := calls[(i+1)%len(calls)]
		if t, _ := r.f.def.Transition(other.transition); !t.Key.Derived() {
			other.key = c.key
			r.fire(o, id, where+", then under its key", other)
		}
	}
	r.stands(o, id, where+" "+c.String())
}

// fire makes a call and holds its answer against the oracle's.
func (r *runner) fire(o *oracle, id, where string, c call) {
	want := o.fire(id, c, r.s.now())
	if got := fire(r.m, id, c); got != want {
		r.t.Errorf("%s: %v on %s\n got %+v\nwant %+v", id, c, where, got, want)
	}
}

// stands holds row and journal against the oracle's.
func (r *runner) stands(o *oracle, id, where string) {
	if diff := differs(r.m, o, id); diff != "" {
		r.t.Errorf("%s, %s: %s", id, where, diff)
	}
}

// differs says what of a row and its journal is not as the oracle has it.
func differs(m *engine.Machine, o *oracle, id string) string {
	got, err := m.Get(context.Background(), id)
	if err != nil {
		return err.Error()
	}
	want := o.rows[id]
	if got.State != want.state || got.Version != want.version || shown(got.Row()) != shown(want.values) {
		return fmt.Sprintf("the row is %s, version %d, %s; want %s, version %d, %s",
			got.State, got.Version, shown(got.Row()), want.state, want.version, shown(want.values))
	}
	entries, err := m.Journal(context.Background(), id)
	if err != nil {
		return err.Error()
	}
	same := slices.EqualFunc(entries, o.journal[id], func(a engine.Entry, b entry) bool {
		return a.Version == b.version && a.Transition == b.transition && a.From == b.from && a.To == b.to
	})
	if !same {
		return fmt.Sprintf("the journal is %+v; want %+v", entries, o.journal[id])
	}
	return ""
}

// fire makes a call.
func fire(m *engine.Machine, id string, c call) answer {
	var opts []engine.CallOption
	if c.key != "" {
		opts = append(opts, engine.WithKey(c.key))
	}
	if c.version != 0 {
		opts = append(opts, engine.WithVersion(c.version))
	}
	return answerOf(m.Fire(context.Background(), c.transition, id, maps.Clone(c.args), opts...))
}

// answerOf is what of an answer the caller can rely on.
func answerOf(res engine.Result, err error) answer {
	if err == nil {
		a := answer{Outcome: res.Outcome.String(), From: res.From, To: res.To, State: res.State, Version: res.Version}
		if res.First != nil {
			a.First = fmt.Sprint(res.First.Version, res.First.Transition)
		}
		return a
	}
	var detail *engine.Error
	if !errors.As(err, &detail) {
		return answer{Kind: "unexpected: " + err.Error()}
	}
	a := answer{Kind: "unexpected: " + err.Error(), State: detail.State, Version: detail.Version, Allowed: strings.Join(detail.Allowed, ",")}
	for _, kind := range answers() {
		if errors.Is(err, kind) {
			a.Kind = kind.Error()
		}
	}
	return a
}

// answers are the errors after which a transaction stays usable.
func answers() []error {
	return []error{
		engine.ErrNotFound, engine.ErrNotAllowed, engine.ErrConflict, engine.ErrRejected, engine.ErrMismatch,
		engine.ErrKeyReused, engine.ErrUnknownState, engine.ErrInvalidArgs,
	}
}
