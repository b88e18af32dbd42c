package definitions

import (
	"cmp"
	"slices"
	"strings"
)

// checkTransitions looks at each transition by itself.
func (l *loader) checkTransitions(root *object) {
	if l.m.Create.Emit != "" && !l.m.Journal.Enabled {
		l.needsJournal(root.at("create"), "create.emit")
	}
	for _, d := range l.drafts {
		if d.Emit != "" && !l.m.Journal.Enabled {
			l.needsJournal(d.object.at("emit"), "emit")
		}
		if known(d.When) == never {
			l.report(d.object.get("when").at, finding{rule: ruleUnreachableBranch, name: d.Name}, "%q is never taken: its condition is never true", d.Name)
		}
		l.checkSetTwice(d)
		l.checkBranches(d)
		l.checkAmbiguous(d)
		if !d.Key.Declared() && d.object != nil && !d.object.has("key") {
			l.checkSelfMoves(d)
			l.checkChain(d)
		}
	}
}

// checkSetTwice holds that a column is set at one level: which of two values
// would win is nobody's to guess.
func (l *loader) checkSetTwice(d *draft) {
	for _, m := range d.moves {
		for field, at := range m.set {
			if first, twice := d.set[field]; twice {
				l.report(at, finding{rule: ruleColumnSetTwice, name: field}, "%s is set by the transition (line %d) and by its move (line %d)", field, first.line, at.line)
			}
		}
	}
}

// checkBranches holds that every branch can be taken.
func (l *loader) checkBranches(d *draft) {
	for _, m := range d.moves {
		seen := map[string]int{}
		for i, t := range m.Targets {
			at := m.targetAt[i]
			switch known(t.When) {
			case always:
				if i < len(m.Targets)-1 {
					l.report(at, finding{rule: ruleUnconditionalBranch, name: t.State}, "the branch to %q has no condition and others after it, which are never taken; put it last", t.State)
				}
				continue
			case never:
				l.report(at, finding{rule: ruleUnreachableBranch, name: t.State}, "the branch to %q is never taken: its condition is never true", t.State)
				continue
			case open:
			}
			if unreadable(t.When) {
				continue
			}
			text := meaning(t.When)
			if first, again := seen[text]; again {
				l.report(at, finding{rule: ruleUnreachableBranch, name: t.State}, "the branch to %q is never taken: that to %q has the same condition", t.State, m.Targets[first].State)
				continue
			}
			seen[text] = i
		}
	}
}

// checkAmbiguous holds that of the moves out of one state each can be taken. A
// move from "*" behind a specific one is no fault: it is what is left.
func (l *loader) checkAmbiguous(d *draft) {
	type exit struct {
		state string
		when  int
		any   bool
	}
	taken := map[exit]int{}             // the first move of each
	conditions := map[string]int{"": 0} // numbers, which are cheaper to compare than texts
	for i, m := range d.moves {
		if unreadable(m.When) {
			continue
		}
		text := ""
		if known(m.When) != always {
			text = meaning(m.When)
		}
		when, seen := conditions[text]
		if !seen {
			when = len(conditions)
			conditions[text] = when
		}
		if known(m.When) == never {
			l.report(m.at, finding{rule: ruleUnreachableBranch, name: d.Name}, "this move of %q is never taken: its condition is never true", d.Name)
		}
		var ambiguous, unreachable []string
		var first *moveDraft
		for _, s := range m.From {
			same, isSame := taken[exit{s, when, m.Any}]
			all, isAll := taken[exit{s, 0, m.Any}]
			switch {
			case isAll && (!isSame || all < same):
				first, unreachable = d.moves[all], append(unreachable, s)
			case isSame:
				first, ambiguous = d.moves[same], append(ambiguous, s)
			default:
				taken[exit{s, when, m.Any}] = i
			}
		}
		l.reportShadowed(d, m, first, ambiguous, unreachable)
	}
}

func (l *loader) reportShadowed(d *draft, m, first *moveDraft, ambiguous, unreachable []string) {
	if len(ambiguous) > 0 {
		l.report(m.at, finding{rule: ruleAmbiguousMoves, name: d.Name}, "two moves of %q leave %s under the same condition (lines %d and %d)",
			d.Name, strings.Join(ambiguous, ", "), first.at.line, m.at.line)
	}
	if len(unreachable) > 0 {
		l.report(m.at, finding{rule: ruleUnreachableBranch, name: d.Name}, "this move of %q is never taken from %s: the one in line %d has no condition",
			d.Name, strings.Join(unreachable, ", "), first.at.line)
	}
}

// checkSelfMoves looks at moves that leave a row where it is: only a key tells a
// repeat from a second request.
func (l *loader) checkSelfMoves(d *draft) {
	all := readField(d.Set)
	for _, m := range d.moves {
		field := cmp.Or(all, readField(m.Move.Set))
		for i, t := range m.Targets {
			if !slices.Contains(m.From, t.State) {
				continue
			}
			if field != "" {
				l.report(m.targetAt[i], finding{rule: ruleSelfMoveReads, name: d.Name},
					"%q moves %q onto itself and computes %s from the row: a repeated call would count twice; give it a key", d.Name, t.State, field)
				continue
			}
			l.report(m.targetAt[i], finding{rule: ruleSelfMove, name: d.Name},
				"%q moves %q onto itself: a repeated call is applied again; give it a key if that matters", d.Name, t.State)
		}
	}
}

// readField returns a field whose new value depends on the row.
func readField(set []Assignment) string {
	for _, a := range set {
		if a.Value.Root != nil && reads(a.Value.Root) {
			return a.Field
		}
	}
	return ""
}

// checkChain warns of moves that follow each other: a repeat would take the next.
func (l *loader) checkChain(d *draft) {
	sources := map[string]*moveDraft{}
	for _, m := range d.moves {
		for _, s := range m.From {
			if _, taken := sources[s]; !taken {
				sources[s] = m
			}
		}
	}
	for _, m := range d.moves {
		for i, t := range m.Targets {
			if next, ok := sources[t.State]; ok && !slices.Contains(m.From, t.State) {
				l.report(m.targetAt[i], finding{rule: ruleChain, name: d.Name},
					"%q leads to %q and leaves it again (line %d): a repeated call moves on; give it a key if that matters", d.Name, t.State, next.at.line)
			}
		}
	}
}
