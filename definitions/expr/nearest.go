package expr

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// nearestField returns the legal name that an unknown bare name most likely stands
// for: an arg of exactly that name, a close field, a close arg.
func (e *Env) nearestField(name string) string {
	if _, ok := e.arg(name); ok {
		return "args." + name
	}
	if near := e.nearest(name, names(e.Fields, "true", "false", "nil")); near != "" {
		return near
	}
	if strings.EqualFold(name, "null") || strings.EqualFold(name, "none") {
		return "nil"
	}
	if near := e.nearest(name, names(e.Args)); near != "" {
		return "args." + near
	}
	return ""
}

// nearestArg is nearestField for args.NAME.
func (e *Env) nearestArg(name string) string {
	if near := e.nearest(name, names(e.Args)); near != "" {
		return "args." + near
	}
	if _, ok := e.field(name); ok {
		return name
	}
	return ""
}

// names returns the names of vars, and others behind them.
func names(vars []Var, others ...string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range vars {
			if !yield(vars[i].Name) {
				return
			}
		}
		for _, name := range others {
			if !yield(name) {
				return
			}
		}
	}
}

// maxEffort bounds the comparisons that those who share an environment spend on nearest
// names, so that nothing but mistakes is answered as quickly as anything else.
const maxEffort = 200_000

// nearest returns the candidate with the fewest changed letters, the first of equals,
// or "" if more than a third would have to change. A name of one letter is like no other.
func (e *Env) nearest(name string, candidates iter.Seq[string]) string {
	letters := utf8.RuneCountInString(name)
	if letters > maxLetters {
		return ""
	}
	best, least := "", max(min(letters, 2), letters/3+1)
	folded := strings.ToLower(name)
	for c := range candidates {
		if e.effort != nil {
			if *e.effort++; *e.effort > maxEffort {
				return best
			}
		}
		if len(c) > utf8.UTFMax*maxLetters { // it may be as long as the file
			continue
		}
		n := utf8.RuneCountInString(c)
		if letters-n >= least || n-letters >= least {
			continue
		}
		if d := distance(folded, strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// maxLetters is a few more than a name may have: what is longer is like none.
const maxLetters = 72

// distance counts the letters inserted, dropped, replaced or swapped with their
// neighbour between a and b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, last, row := rows[(i+1)%3], rows[(i+2)%3], rows[i%3]
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return rows[len(x)%3][len(y)]
}
