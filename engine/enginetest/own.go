package enginetest

import (
	"fmt"
	"slices"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// own gives a plan what only this row may have: values of declared unique keys, in the
// row and in the arguments that are written there. A value that a condition reads stays.
func (v *visit) own(p plan) plan {
	p.row, p.steps = slices.Clone(p.row), slices.Clone(p.steps)
	for _, i := range v.uniqueFields() {
		f := &v.def.Fields[i]
		p.row[i] = v.only(f.Type, 0, p.row[i])
		v.free[i] = true
		for n := range p.steps {
			v.ownArgs(&p.steps[n], n+1, f.Name)
		}
	}
	return p
}

// uniqueFields are the fields of declared unique keys that no condition reads.
func (v *visit) uniqueFields() []int {
	var out []int
	for i := range v.def.Fields {
		name := v.def.Fields[i].Name
		if !v.search.read[name] && slices.ContainsFunc(v.def.Unique, func(key []string) bool { return slices.Contains(key, name) }) {
			out = append(out, i)
		}
	}
	return out
}

// ownArgs changes the arguments of a step that are written to a field.
func (v *visit) ownArgs(s *step, n int, field string) {
	t, _ := v.def.Transition(s.transition)
	args := slices.Clone(s.args)
	sets := [][]definitions.Assignment{t.Set}
	for _, m := range t.Moves {
		sets = append(sets, m.Set)
	}
	for _, set := range sets {
		for _, a := range set {
			if a.Field != field || a.Value.Root.Op != expr.OpArg {
				continue
			}
			i := slices.IndexFunc(t.Args, func(x definitions.Arg) bool { return x.Name == a.Value.Root.Name })
			args[i] = v.only(t.Args[i].Type, n, args[i])
		}
	}
	s.args = args
}

// only is a value that no other row of this run has, or was where the type has none.
func (v *visit) only(t expr.Type, n int, was any) any {
	switch {
	case was == nil:
		return nil
	case t == expr.String:
		return fmt.Sprintf("%s.%d", v.id, n)
	case t == expr.Int:
		return v.number<<8 + int64(n)
	}
	return was
}
