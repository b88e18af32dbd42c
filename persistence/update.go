package persistence

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// An update is the CAS for some of a transition's sources: those that have the same
// moves.
type update struct {
	states []bool
	moves  []*definitions.Move
	// target is the only state it can lead to, or -1 where the row decides.
	target int
	// any leaves the version open, named compares it.
	any, named statement
	// readsRow: the row's values are bound, so it has to be read and locked before.
	readsRow bool
}

// casText collects the CAS of one update.
type casText struct {
	t     *table
	def   *definitions.Transition
	sb    *sqlexpr.Builder
	own   []bind
	bound bool
}

func (t *table) newUpdate(def *definitions.Transition, states []bool, moves []*definitions.Move) *update {
	u := &update{states: states, moves: moves, target: t.onlyTarget(moves)}
	u.readsRow = t.f.SetInOrder && (len(moves) > 1 || t.cyclic(def, moves[0]))
	u.any = t.casStatement(def, u, false)
	u.named = t.casStatement(def, u, true)
	return u
}

// cyclic reports whether no order of the assignments lets each read the old row.
func (t *table) cyclic(def *definitions.Transition, mv *definitions.Move) bool {
	_, cyclic := sqlexpr.Order(assignments(def, mv), nil)
	return cyclic
}

func (t *table) onlyTarget(moves []*definitions.Move) int {
	target := -1
	for _, mv := range moves {
		for _, branch := range mv.Targets {
			s, _ := t.rules.StateIndex(branch.State)
			if target >= 0 && target != s {
				return -1
			}
			target = s
		}
	}
	return target
}

// casStatement writes the CAS: every condition stands on the updated row itself.
func (t *table) casStatement(def *definitions.Transition, u *update, named bool) statement {
	c := &casText{t: t, def: def, bound: u.readsRow}
	c.sb = sqlexpr.New(t.d.Expressions(), c.columns())
	var set, where string
	if len(u.moves) == 1 {
		set, where = c.one(u.moves[0])
	} else {
		set, where = c.several(u.moves, t.differ(u))
	}
	version := t.d.Quote(t.def.Table.Version)
	next := version + " + 1"
	if t.f.VersionByInsertID {
		next = "CAST(LAST_INSERT_ID(" + next + ") AS SIGNED)" // the function itself is unsigned
	}
	last := " < " + strconv.FormatInt(t.maxVersion, 10)
	conditions := []string{c.idEqual(), t.anyOf(u.states, c.param)}
	if t.f.ReadFirst { // SQLite would go on with a float; the others refuse it
		conditions = append(conditions, version+last)
	}
	if named {
		conditions = append(conditions, version+" = "+c.param(func(v *values) any { return v.edge.version - 1 }))
	}
	if t.f.VersionByInsertID { // NULL would be written as NULL, and the greatest is an error
		conditions = append(conditions, version+last)
	}
	if def.When != nil {
		conditions = append(conditions, c.sb.Condition(def.When))
	}
	text := "UPDATE " + QuoteTable(t.d, t.def.Table.Name) + " SET " + version + " = " + next + ", " + set +
		" WHERE " + and(append(conditions, where)...)
	st, err := c.sb.Build(text)
	if err != nil { // the loader has checked every name
		panic(fmt.Sprintf("persistence: transition %s: %v", def.Name, err))
	}
	return statement{text: st.Text, binds: c.binds(st.Slots)}
}

// differ reports whether the update's states have different moves among them, so that
// the text has to ask for the state.
func (t *table) differ(u *update) bool {
	for _, mv := range u.moves {
		for i, in := range u.states {
			if in && !slices.Contains(mv.From, t.def.States[i].Name) {
				return true
			}
		}
	}
	return false
}

// one writes a single move. The status stands before what right-hand sides could read:
// its condition sees the old row where SET runs from left to right.
func (c *casText) one(mv *definitions.Move) (set, where string) {
	status, choice := c.sb.Branches(c.branches(mv), c.t.def.Table.Status.Type)
	set = c.t.d.Quote(c.t.def.Table.Status.Name) + " = " + status
	fields := c.sb.Set(assignments(c.def, mv))
	if fields.Text != "" {
		set += ", " + fields.Text
	}
	return set, and(c.condition(mv), choice, fields.Check)
}

func (c *casText) branches(mv *definitions.Move) []sqlexpr.Branch {
	out := make([]sqlexpr.Branch, len(mv.Targets))
	for i, target := range mv.Targets {
		s, _ := c.t.def.State(target.State)
		out[i] = sqlexpr.Branch{When: target.When, State: s.Value}
	}
	return out
}

// assignments are the transition's and the move's own.
func assignments(def *definitions.Transition, mv *definitions.Move) []sqlexpr.Assignment {
	out := make([]sqlexpr.Assignment, 0, len(def.Set)+len(mv.Set))
	for _, set := range [][]definitions.Assignment{def.Set, mv.Set} {
		for _, a := range set {
			out = append(out, sqlexpr.Assignment{Field: a.Field, Value: a.Value})
		}
	}
	return out
}

// columns says where the fields stand.
func (c *casText) columns() map[string]sqlexpr.Column {
	out := make(map[string]sqlexpr.Column, len(c.t.def.Fields))
	for i := range c.t.def.Fields {
		f := &c.t.def.Fields[i]
		col := c.t.fields[i]
		col.Bound = c.bound
		out[f.Name] = col
	}
	return out
}

// param returns a parameter of ours.
func (c *casText) param(f bind) string {
	c.own = append(c.own, f)
	return c.sb.Own(len(c.own) - 1)
}

func (c *casText) idEqual() string {
	p := c.param(func(v *values) any { return v.id })
	id := c.t.d.Quote(c.t.def.Table.ID.Name)
	if c.t.def.Table.ID.Type == expr.String {
		return c.t.d.TextEqual(id, p)
	}
	return id + " = " + p
}

// binds gives each slot of a built statement its value of a call.
func (c *casText) binds(slots []sqlexpr.Slot) []bind {
	out := make([]bind, len(slots))
	for i := range slots {
		slot := slots[i]
		switch slot.Source {
		case sqlexpr.FromOwn:
			out[i] = c.own[slot.Index]
		case sqlexpr.FromArg:
			at := c.argIndex(slot.Name)
			out[i] = func(v *values) any { return slot.Of(v.call.Args[at]) }
		case sqlexpr.FromField:
			at := c.fieldIndex(slot.Name)
			out[i] = func(v *values) any { return slot.Of(v.row[at]) }
		case sqlexpr.FromNow:
			out[i] = func(v *values) any { return slot.Of(v.call.Now) }
		default:
			out[i] = constant(slot.Literal)
		}
	}
	return out
}

func (c *casText) argIndex(name string) int {
	for i := range c.def.Args {
		if c.def.Args[i].Name == name {
			return i
		}
	}
	return -1
}

func (c *casText) fieldIndex(name string) int {
	for i := range c.t.def.Fields {
		if c.t.def.Fields[i].Name == name {
			return i
		}
	}
	return -1
}

// anyOf compares the status with every value that the states may have.
func (t *table) anyOf(states []bool, param func(bind) string) string {
	column := t.d.Quote(t.def.Table.Status.Name)
	var out []string
	for i, in := range states {
		if !in {
			continue
		}
		for _, raw := range append([]any{t.def.States[i].Value}, t.def.States[i].Aliases...) {
			if p := param(constant(raw)); t.def.Table.Status.Type == expr.String {
				out = append(out, t.d.TextEqual(column, p))
			} else {
				out = append(out, column+" = "+p)
			}
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return "(" + strings.Join(out, " OR ") + ")"
}

func (t *table) statesOf(names []string) []bool {
	out := make([]bool, len(t.def.States))
	for _, name := range names {
		if i, ok := t.rules.StateIndex(name); ok {
			out[i] = true
		}
	}
	return out
}

// and joins conditions that are not empty.
func and(conditions ...string) string {
	var kept []string
	for _, c := range conditions {
		if c != "" {
			kept = append(kept, c)
		}
	}
	return strings.Join(kept, " AND ")
}

// fieldColumns says where the fields stand, and gives the rules the widths of their
// columns, so that Go rejects what the database would not take.
func (t *table) fieldColumns(columns []Column) []sqlexpr.Column {
	out := make([]sqlexpr.Column, len(columns))
	for i, c := range columns {
		f := &t.def.Fields[i]
		limits := c.limits(f.Type).Narrower(expr.ScaleOnly(f.Scale))
		t.rules.Narrow(i, limits)
		out[i] = sqlexpr.Column{Name: t.d.Quote(f.Column), Type: f.Type, Limits: limits, SQLType: c.Type}
	}
	return out
}

// limits are what a column takes of a type.
func (c Column) limits(typ expr.Type) expr.Limits {
	switch {
	case typ == expr.Int && c.Precision > 0 && c.Precision < 64:
		return expr.Limits{Min: -1 << (c.Precision - 1), Max: 1<<(c.Precision-1) - 1}
	case typ == expr.String:
		return expr.Limits{Length: c.Length}
	case typ == expr.Decimal:
		return expr.Limits{Precision: c.Precision, Scale: c.Scale}
	}
	return expr.Limits{}
}
