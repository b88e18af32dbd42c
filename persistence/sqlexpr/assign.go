package sqlexpr

// Assign compiles one assignment by itself: the right-hand side, as the column takes
// it, and the check that it is not rejected and fits, empty if it never is.
func (b *Builder) Assign(a Assignment) (value, check string) {
	t := b.forms.assign(a.Value.Root, b.column(a.Field))
	return t.value, all(b.check(a.Value.Root), t.check)
}

// Target is the name of a field's column on the left of SET.
func (b *Builder) Target(field string) string { return b.column(field).target() }

// Of returns what the driver takes for canonical value v of the slot's source; a
// literal is its own value.
func (s *Slot) Of(v any) any {
	if s.Source == FromLiteral {
		return s.Literal
	}
	return s.form.of(v)
}
