package workflowtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// view is what an expression sees.
type view struct {
	row, args map[string]any // nil: NULL
	now       time.Time
}

func (v view) int(name string) int64 { return v.row[name].(int64) }
func (v view) arg(name string) int64 { return v.args[name].(int64) }

// meaning is what an expression of a definition is to give, written in Go by hand. nil
// is NULL; the error is a rejection.
type meaning func(v view) (any, error)

// means is a meaning that cannot be rejected.
func means[T any](f func(v view) T) meaning { return func(v view) (any, error) { return f(v), nil } }

var errReject = errors.New("rejected")

// meanings has the meaning of every expression, by its text. Fields, args and now()
// need none.
type meanings map[string]meaning

// oracle says what each call is to answer. It keeps rows and journal of its own.
type oracle struct {
	def     *definitions.Machine
	meaning meanings
	rows    map[string]*row
	journal map[string][]entry
}

type row struct {
	state   string
	version int64
	values  map[string]any
}

type entry struct {
	version              int64
	transition, from, to string
	key                  string // "" where the engine made it
	request              string // transition and arguments
	args                 map[string]any
}

// call is one call to be made.
type call struct {
	transition string
	args       map[string]any
	key        string
	version    int64
}

func (c call) String() string {
	return fmt.Sprintf("%s%s key=%q version=%d", c.transition, shown(c.args), c.key, c.version)
}

// answer is what a call is to give; of an error what the caller can rely on.
type answer struct {
	Kind            string // the error's, "" for none
	Outcome         string
	From, To, State string
	Version         int64
	First           string // the entry that Result.First shows: version and transition
	Allowed         string
}

func newOracle(def *definitions.Machine, m meanings) *oracle {
	return &oracle{def: def, meaning: m, rows: map[string]*row{}, journal: map[string][]entry{}}
}

// clone lets a walk be tried without walking it.
func (o *oracle) clone() *oracle {
	c := newOracle(o.def, o.meaning)
	for id, r := range o.rows {
		own := *r
		own.values = maps.Clone(r.values)
		c.rows[id] = &own
	}
	for id, entries := range o.journal {
		c.journal[id] = slices.Clone(entries)
	}
	return c
}

// create puts a new row; values are complete.
func (o *oracle) create(id, state string, values map[string]any) {
	o.rows[id] = &row{state: state, version: 1, values: values}
	o.journal[id] = []entry{{version: 1, to: state}}
}

// adopt puts a row that was made elsewhere.
func (o *oracle) adopt(id, state string, version int64, values map[string]any) {
	o.rows[id] = &row{state: state, version: version, values: values}
}

// fire answers a call and does what it is to do.
func (o *oracle) fire(id string, c call, now time.Time) answer {
	t, _ := o.def.Transition(c.transition)
	key, bad := keyOf(t, c)
	if bad || (c.key != "" && !o.def.Journal.Enabled) {
		return answer{Kind: engine.ErrInvalidArgs.Error()}
	}
	r := o.rows[id]
	if e := o.byKey(id, key); e != nil {
		return o.replay(t, r, e, c)
	}
	switch {
	case r == nil:
		return answer{Kind: engine.ErrNotFound.Error()}
	case t.Leaves(r.state) && c.version != 0 && c.version != r.version:
		return o.refuse(engine.ErrConflict, r)
	case t.Leaves(r.state):
		return o.take(id, t, r, c, key, now)
	}
	return o.late(id, t, r, c)
}

// keyOf is the key that the call brings, "" for none.
func keyOf(t *definitions.Transition, c call) (key string, bad bool) {
	if !t.Key.Derived() {
		return c.key, t.Key.Required && c.key == ""
	}
	parts := []string{t.Name}
	for _, name := range t.Key.Args {
		parts = append(parts, fmt.Sprintf("%q", show(c.args[name])))
	}
	return "=" + strings.Join(parts, ","), c.key != ""
}

func (o *oracle) byKey(id, key string) *entry {
	i := slices.IndexFunc(o.journal[id], func(e entry) bool { return key != "" && e.key == key })
	if i < 0 {
		return nil
	}
	return &o.journal[id][i]
}

func request(c call) string { return c.transition + shown(c.args) }

func (o *oracle) replay(t *definitions.Transition, r *row, e *entry, c call) answer {
	switch {
	case e.request == request(c):
		return answer{Outcome: engine.Replayed.String(), From: e.from, To: e.to, State: r.state, Version: e.version, First: e.String()}
	case t.Key.Derived():
		return o.refuse(engine.ErrMismatch, r)
	}
	return o.refuse(engine.ErrKeyReused, r)
}

func (e *entry) String() string { return fmt.Sprint(e.version, e.transition) }

func (o *oracle) refuse(kind error, r *row) answer {
	var allowed []string
	for i := range o.def.Transitions {
		if o.def.Transitions[i].Leaves(r.state) {
			allowed = append(allowed, o.def.Transitions[i].Name)
		}
	}
	return answer{Kind: kind.Error(), State: r.state, Version: r.version, Allowed: strings.Join(allowed, ",")}
}

// take runs a transition on a row in one of its sources.
func (o *oracle) take(id string, t *definitions.Transition, r *row, c call, key string, now time.Time) answer {
	to, values, err := o.step(t, r, c, now)
	if err != nil {
		return o.refuse(engine.ErrRejected, r)
	}
	e := entry{r.version + 1, t.Name, r.state, to, key, request(c), c.args}
	if o.def.Journal.Enabled {
		o.journal[id] = append(o.journal[id], e)
	}
	r.state, r.version, r.values = to, e.version, values
	return answer{Outcome: engine.Applied.String(), From: e.from, To: to, State: to, Version: e.version}
}

// step decides target and values; every right-hand side sees the row as it was.
func (o *oracle) step(t *definitions.Transition, r *row, c call, now time.Time) (string, map[string]any, error) {
	v := view{r.values, c.args, now}
	if t.When != nil {
		if yes, err := o.holds(t.When.Source, v); err != nil || !yes {
			return "", nil, errReject
		}
	}
	for _, mv := range t.Moves {
		if !slices.Contains(mv.From, r.state) {
			continue
		}
		if mv.When != nil {
			yes, err := o.holds(mv.When.Source, v)
			if err != nil {
				return "", nil, err
			}
			if !yes {
				continue
			}
		}
		to, err := o.branch(mv, v)
		if err != nil {
			return "", nil, err
		}
		values, err := o.assign(append(slices.Clone(t.Set), mv.Set...), v)
		return to, values, err
	}
	return "", nil, errReject
}

func (o *oracle) branch(mv definitions.Move, v view) (string, error) {
	for _, target := range mv.Targets {
		if target.When == nil {
			return target.State, nil
		}
		yes, err := o.holds(target.When.Source, v)
		if err != nil {
			return "", err
		}
		if yes {
			return target.State, nil
		}
	}
	return "", errReject
}

func (o *oracle) assign(set []definitions.Assignment, v view) (map[string]any, error) {
	out := maps.Clone(v.row)
	for _, a := range set {
		value, err := o.eval(a.Value.Source, v)
		if err != nil {
			return nil, err
		}
		out[a.Field] = value
	}
	return out, nil
}

func (o *oracle) holds(source string, v view) (bool, error) {
	value, err := o.eval(source, v)
	yes, _ := value.(bool)
	return yes, err
}

func (o *oracle) eval(source string, v view) (any, error) {
	if f, ok := o.meaning[source]; ok {
		return f(v)
	}
	if name, ok := strings.CutPrefix(source, "args."); ok {
		return v.args[name], nil
	}
	if _, ok := o.def.Field(source); ok {
		return v.row[source], nil
	}
	switch source {
	case "now()":
		return v.now, nil
	case "nil":
		return nil, nil
	}
	panic("the test gives no meaning for " + source)
}
