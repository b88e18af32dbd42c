package persistence

import (
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence/sqlexpr"
)

// several writes moves of which the first that fits is taken. asked: the text compares
// the status per move, else every move leaves every source.
func (c *casText) several(moves []*definitions.Move, asked bool) (set, where string) {
	var status strings.Builder
	var arms, skipped []string
	enters := make([]string, len(moves))
	for i, mv := range moves {
		from := ""
		if asked {
			from = c.t.anyOf(c.t.statesOf(mv.From), c.param)
		}
		value, choice := c.sb.Branches(c.branches(mv), c.t.def.Table.Status.Type)
		enters[i] = always(and(from, c.holds(mv)))
		status.WriteString(" WHEN " + enters[i] + " THEN " + value)
		taken := and(append(skipped[:len(skipped):len(skipped)], from, c.condition(mv), choice, c.checks(mv))...)
		arms = append(arms, "("+always(taken)+")")
		skipped = append(skipped, c.skip(mv, from))
	}
	set = c.t.d.Quote(c.t.def.Table.Status.Name) + " = CASE" + status.String() + " END" + c.fieldCases(moves, enters)
	return set, "(" + strings.Join(arms, " OR ") + ")"
}

// always is a condition that may be none.
func always(condition string) string {
	if condition == "" {
		return "1 = 1"
	}
	return condition
}

// skip is true where a move is not taken and nothing in it was rejected.
func (c *casText) skip(mv *definitions.Move, from string) string {
	if mv.When == nil {
		if from == "" {
			return "1 = 0"
		}
		return "NOT (" + from + ")"
	}
	not := "(" + and(c.sb.Check(mv.When), "("+c.sb.Value(mv.When)+") IS NOT TRUE") + ")"
	if from == "" {
		return not
	}
	return "(NOT (" + from + ") OR " + not + ")"
}

// fieldCases assigns every field that some move writes.
func (c *casText) fieldCases(moves []*definitions.Move, enters []string) string {
	var text strings.Builder
	for i := range c.t.def.Fields {
		if cases := c.fieldCase(c.t.def.Fields[i].Name, moves, enters); cases != "" {
			column := c.sb.Target(c.t.def.Fields[i].Name)
			text.WriteString(", " + column + " = CASE" + cases + " ELSE " + column + " END")
		}
	}
	return text.String()
}

// fieldCase gives the arms for one field, up to the last move that writes it. A move
// that does not write it has an arm as well: the conditions of later ones may hold too.
func (c *casText) fieldCase(name string, moves []*definitions.Move, enters []string) string {
	cases, skipped := "", ""
	for j, mv := range moves {
		set := assignments(c.def, mv)
		at := slices.IndexFunc(set, func(a sqlexpr.Assignment) bool { return a.Field == name })
		if at < 0 {
			skipped += " WHEN " + enters[j] + " THEN " + c.sb.Target(name)
			continue
		}
		value, _ := c.sb.Assign(set[at])
		cases += skipped + " WHEN " + enters[j] + " THEN " + value
		skipped = ""
	}
	return cases
}

// checks are true where no right-hand side of a move is rejected.
func (c *casText) checks(mv *definitions.Move) string {
	var out []string
	for _, a := range assignments(c.def, mv) {
		_, check := c.sb.Assign(a)
		out = append(out, check)
	}
	return and(out...)
}

// condition is the move's own, with its check.
func (c *casText) condition(mv *definitions.Move) string {
	if mv.When == nil {
		return ""
	}
	return c.sb.Condition(mv.When)
}

// holds is true where the move's own condition is.
func (c *casText) holds(mv *definitions.Move) string {
	if mv.When == nil {
		return ""
	}
	return "(" + c.sb.Value(mv.When) + ") IS TRUE"
}
