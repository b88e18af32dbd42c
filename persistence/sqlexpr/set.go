package sqlexpr

import (
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// An Assignment writes a field.
type Assignment struct {
	Field string
	Value *expr.Expr
}

// A Set is the part of SET that writes fields.
type Set struct {
	// Text is "a = …, b = …"; empty without assignments.
	Text string
	// Check is true where no right-hand side is rejected and every value fits its column;
	// empty if that is always so.
	Check string
	// Cyclic says that no order of the assignments lets each right-hand side read the old
	// row where SET runs from left to right: see [Order].
	Cyclic bool
}

// Set compiles the assignments of one statement. On MySQL they are ordered so that each
// reads old values; the status, which no right-hand side can read, must stand before
// them.
func (b *Builder) Set(assignments []Assignment) Set {
	var s Set
	if b.dialect == MySQL {
		assignments, s.Cyclic = Order(assignments, func(field string) bool { return b.columns[field].Bound })
	}
	var sets, checks []string
	for _, a := range assignments {
		value, check := b.Assign(a)
		sets = append(sets, b.Target(a.Field)+" = "+value)
		checks = append(checks, check)
	}
	s.Text, s.Check = strings.Join(sets, ", "), all(checks...)
	return s
}

// Assign compiles one assignment by itself: the right-hand side, as the column takes
// it, and the check that it is not rejected and fits, empty if it never is.
func (b *Builder) Assign(a Assignment) (value, check string) {
	t := b.forms.assign(a.Value.Root, b.column(a.Field))
	return t.value, all(b.check(a.Value.Root), t.check)
}

// Target is the name of a field's column on the left of SET.
func (b *Builder) Target(field string) string { return b.column(field).target() }

// Order sorts assignments for a database that runs SET from left to right and reads
// what it has just written: each field is written after all right-hand sides that read
// it. Where two read each other no order will do; cyclic is then true, and the
// assignments come back as they were. MariaDB runs such a statement right under
// sql_mode SIMULTANEOUS_ASSIGNMENT; elsewhere the row is read first and its values are
// bound. bound reports which fields are; nil: none.
func Order(assignments []Assignment, bound func(field string) bool) (ordered []Assignment, cyclic bool) {
	left := slices.Clone(assignments)
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(a Assignment) bool { return !readByOthers(a.Field, left, bound) })
		if i < 0 {
			return assignments, true
		}
		ordered = append(ordered, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return ordered, false
}

// readByOthers reports whether the right-hand side of another field reads field.
func readByOthers(field string, assignments []Assignment, bound func(string) bool) bool {
	if bound != nil && bound(field) {
		return false
	}
	return slices.ContainsFunc(assignments, func(a Assignment) bool {
		return a.Field != field && a.Value.ReadsField(field)
	})
}

// A Branch is one target of a move.
type Branch struct {
	When  *expr.Expr // nil: always
	State any        // what the status column holds: a string or an int64
}

// Branches compiles a choice of target: the status to write, and the condition under
// which one of the branches is taken, empty if one always is. Conditions are tried in
// order, and one that comes after the first that holds is not evaluated.
func (b *Builder) Branches(branches []Branch, status expr.Type) (value, condition string) {
	if len(branches) == 1 && branches[0].When == nil {
		return b.state(branches[0], status), ""
	}
	var text strings.Builder
	var holds []string
	open := true
	text.WriteString("CASE")
	for _, br := range branches {
		if br.When == nil {
			text.WriteString(" ELSE " + b.state(br, status))
			open = false
			break
		}
		v := b.value(br.When.Root)
		text.WriteString(" WHEN " + v + " THEN " + b.state(br, status))
		holds = append(holds, v+" IS TRUE")
	}
	text.WriteString(" END")
	condition = b.branchChecks(branches)
	if open {
		condition = all(condition, "("+strings.Join(holds, " OR ")+")")
	}
	return text.String(), condition
}

// branchChecks is the check of the nested choice.
func (b *Builder) branchChecks(branches []Branch) string {
	if len(branches) == 0 || branches[0].When == nil {
		return ""
	}
	first := b.both(branches[0].When.Root)
	return all(first.check, choose(first.value, "", b.branchChecks(branches[1:])))
}

func (b *Builder) state(br Branch, status expr.Type) string {
	return b.forms.state(b.typedMark(Slot{Literal: br.State}, status), status)
}
