package enginetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// own gives a plan what only this row may have: values of declared unique keys, in the
// row and in the arguments that are written there. ok is false where there is no such
// plan: a condition wants one value, or the type has too few.
func (v *visit) own(p plan) (own plan, ok bool) {
	fields := v.uniqueFields()
	if len(fields) == 0 {
		return p, true
	}
	own = plan{initial: p.initial, row: slices.Clone(p.row)}
	for _, i := range fields {
		own.row[i] = v.only(v.def.Fields[i].Type, v.def.Fields[i].Scale, 0, p.row[i])
	}
	if !v.apart(p.row, own.row) {
		return p, false
	}
	for n, s := range p.steps {
		if s, ok = v.ownStep(own, s, n+1, fields); !ok || !v.apart(p.steps[n].after, s.after) {
			return p, false
		}
		own = own.then(s)
	}
	return own, true
}

// uniqueFields are the fields of declared unique keys.
func (w *walker) uniqueFields() []int {
	var out []int
	for i := range w.def.Fields {
		name := w.def.Fields[i].Name
		if slices.ContainsFunc(w.def.Unique, func(key []string) bool { return slices.Contains(key, name) }) {
			out = append(out, i)
		}
	}
	return out
}

// apart reports whether no other row has the unique keys of this one: of each a part is
// NULL, or is not what the plan has for every row.
func (w *walker) apart(every, own []any) bool {
	return !slices.ContainsFunc(w.def.Unique, func(key []string) bool {
		return !slices.ContainsFunc(key, func(name string) bool {
			i := slices.IndexFunc(w.def.Fields, func(f definitions.Field) bool { return f.Name == name })
			return own[i] == nil || !expr.Equal(w.def.Fields[i].Type, every[i], own[i])
		})
	})
}

// ownStep takes the edge of a step with arguments of the row's own, or with what the row
// holds, where a condition asks for that.
func (v *visit) ownStep(p plan, s step, n int, fields []int) (step, bool) {
	all := append([][]any{s.args}, v.search.arguments(p, s.edge)...)
	for _, own := range []bool{true, false} {
		for _, args := range all {
			if own {
				args = slices.Clone(args)
				for _, i := range fields {
					v.ownArgs(s.transition, args, n, &v.def.Fields[i])
				}
			}
			if taken, ok := v.search.taken(p, s.edge, args); ok && (own || v.apart(s.after, taken.after)) {
				return taken, true
			}
		}
	}
	return step{}, false
}

// ownArgs changes the arguments that a transition writes to a field.
func (v *visit) ownArgs(transition string, args []any, n int, f *definitions.Field) {
	t, _ := v.def.Transition(transition)
	sets := [][]definitions.Assignment{t.Set}
	for _, m := range t.Moves {
		sets = append(sets, m.Set)
	}
	for _, set := range sets {
		for _, a := range set {
			if a.Field != f.Name || a.Value.Root.Op != expr.OpArg {
				continue
			}
			i := slices.IndexFunc(t.Args, func(x definitions.Arg) bool { return x.Name == a.Value.Root.Name })
			scale := t.Args[i].Scale
			if scale < 0 || f.Scale >= 0 && f.Scale < scale {
				scale = f.Scale
			}
			args[i] = v.only(t.Args[i].Type, scale, n, args[i])
		}
	}
}

// only is a value that no other row of this run has, or was where the type has none.
func (v *visit) only(t expr.Type, scale, n int, was any) any {
	own := v.number<<8 + int64(n)
	switch {
	case was == nil:
		return nil
	case t == expr.String:
		return fmt.Sprintf("%s.%d", v.id, n)
	case t == expr.Int:
		return own
	case t == expr.Float:
		return float64(own % (1 << 52))
	case t == expr.Decimal && scale < 0:
		return decimal.New(own, -6)
	case t == expr.Decimal:
		return decimal.New(own%decimal.New(1, 12+int32(scale)).IntPart(), -int32(scale)) //nolint:gosec // at most 6
	case t == expr.Time:
		return time.UnixMicro(instant.UnixMicro() + own%(1<<57)).UTC() // before the year 6600
	}
	return was
}
