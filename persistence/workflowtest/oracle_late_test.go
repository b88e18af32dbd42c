package workflowtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// late answers a call whose transition does not leave the row's state: reached, passed,
// or neither.
func (o *oracle) late(id string, t *definitions.Transition, r *row, c call) answer {
	stale := c.version != 0 && c.version != r.version
	switch {
	case t.Key.Declared() && stale:
		return o.refuse(engine.ErrConflict, r)
	case t.Key.Declared():
		return o.refuse(engine.ErrNotAllowed, r)
	case stale && !o.wrote(id, t, r, c.version+1):
		return o.refuse(engine.ErrConflict, r)
	}
	own := o.own(id, t)
	reached := t.Enters(r.state)
	passed := own != nil
	switch t.Duplicates {
	case definitions.DuplicatesRefuse:
		return o.refuse(engine.ErrNotAllowed, r)
	case definitions.DuplicatesOwn:
		reached = reached && o.enteredBy(id, t)
	default:
		passed = passed || !reached && o.needs(t, r.state)
	}
	switch {
	case !reached && !passed:
		return o.refuse(engine.ErrNotAllowed, r)
	case o.otherIdentity(t, r, own, c):
		return o.refuse(engine.ErrMismatch, r)
	}
	a := answer{Outcome: engine.AlreadyPassed.String(), To: r.state, State: r.state, Version: r.version}
	if reached {
		a.Outcome = engine.AlreadyReached.String()
	}
	if e := o.entered(id); e != nil {
		a.From, a.First = e.from, e.String()
	}
	return a
}

// wrote reports whether version is this transition's work.
func (o *oracle) wrote(id string, t *definitions.Transition, r *row, version int64) bool {
	if !o.def.Journal.Enabled {
		return r.version == version && t.Enters(r.state)
	}
	return slices.ContainsFunc(o.journal[id], func(e entry) bool { return e.version == version && e.transition == t.Name })
}

// own is the transition's last entry, unless a later one led back to where it starts.
func (o *oracle) own(id string, t *definitions.Transition) *entry {
	for i := len(o.journal[id]) - 1; i >= 0; i-- {
		e := &o.journal[id][i]
		if e.transition == t.Name {
			return e
		}
		if t.Leaves(e.to) {
			return nil
		}
	}
	return nil
}

// entered is the entry that brought the row where it is, from another state.
func (o *oracle) entered(id string) *entry {
	for i := len(o.journal[id]) - 1; i >= 0; i-- {
		if e := &o.journal[id][i]; e.from != e.to {
			return e
		}
	}
	return nil
}

// enteredBy reports whether the last entry that entered the state, or stayed in it by
// this transition, is this transition's.
func (o *oracle) enteredBy(id string, t *definitions.Transition) bool {
	for i := len(o.journal[id]) - 1; i >= 0; i-- {
		if e := &o.journal[id][i]; e.from != e.to || e.transition == t.Name {
			return e.transition == t.Name
		}
	}
	return false
}

// needs reports whether no row gets into the state without the transition, beginning
// in an initial state or in one of its sources.
func (o *oracle) needs(t *definitions.Transition, state string) bool {
	at := map[string]bool{}
	for _, s := range o.def.Initial {
		at[s] = true
	}
	for _, s := range o.def.States {
		at[s.Name] = at[s.Name] || t.Leaves(s.Name)
	}
	for range o.def.States { // once per state is enough for any way
		for i := range o.def.Transitions {
			if other := &o.def.Transitions[i]; other.Name != t.Name {
				spread(other, at)
			}
		}
	}
	return !at[state]
}

func spread(t *definitions.Transition, at map[string]bool) {
	for _, mv := range t.Moves {
		if slices.ContainsFunc(mv.From, func(s string) bool { return at[s] }) {
			for _, target := range mv.Targets {
				at[target.State] = true
			}
		}
	}
}

// otherIdentity compares the call with the request that was applied, or with the row.
func (o *oracle) otherIdentity(t *definitions.Transition, r *row, own *entry, c call) bool {
	for _, name := range t.Identity {
		was := r.values[writtenFrom(t, name)]
		if own != nil {
			was = own.args[name]
		}
		if show(was) != show(c.args[name]) {
			return true
		}
	}
	return false
}

func writtenFrom(t *definitions.Transition, arg string) string {
	sets := slices.Clone(t.Set)
	for _, mv := range t.Moves {
		sets = append(sets, mv.Set...)
	}
	for _, a := range sets {
		if a.Value.Source == "args."+arg {
			return a.Field
		}
	}
	return ""
}

// show prints a value so that equal ones are printed alike, whatever store gave them.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case decimal.Decimal:
		return v.String()
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case json.RawMessage:
		var tree any
		if err := json.Unmarshal(v, &tree); err != nil {
			return string(v)
		}
		text, err := json.Marshal(tree) // sorts
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	return fmt.Sprintf("%#v", v)
}

// shown prints named values in order; absent and nil are the same.
func shown(values map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if values[name] != nil {
			out = append(out, name+"="+show(values[name]))
		}
	}
	return "(" + strings.Join(out, " ") + ")"
}
