package definitions

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// maxEffort bounds the comparisons spent on nearest names for one file.
const maxEffort = 200_000

// nearest returns the candidate most like name, or the empty string if none is
// like it. Of equals the first wins.
func (f *findings) nearest(name string, candidates iter.Seq[string]) string {
	best, limit := "", distanceLimit(name)
	if limit == 0 {
		return ""
	}
	folded := strings.ToLower(name)
	for c := range candidates {
		if f.effort++; f.effort > maxEffort {
			return best
		}
		if len(c) > utf8.UTFMax*mostLetters { // it may be as long as the file
			continue
		}
		if d := distance(folded, strings.ToLower(c), limit); d < limit {
			best, limit = c, d
		}
		if limit == 0 {
			break
		}
	}
	return best
}

// mostLetters is more than a name has: what is longer is like none.
const mostLetters = 128

// distanceLimit is the first distance that is too far: a third of the name, so
// that short names do not match just anything.
func distanceLimit(name string) int {
	n := utf8.RuneCountInString(name)
	if n > mostLetters {
		return 0
	}
	return min(n/3, 3) + 2 - boolInt(n <= 2)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// distance counts the letters to change, insert, drop or swap with their
// neighbour; anything from limit on is returned as limit.
func distance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) >= limit || len(y)-len(x) >= limit {
		return limit
	}
	rows := [3][]int{make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		before, last, row := rows[(i+1)%3], rows[(i+2)%3], rows[i%3]
		row[0] = i
		for j := 1; j <= len(y); j++ {
			same := 1 - boolInt(x[i-1] == y[j-1])
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+same)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return min(rows[len(x)%3][len(y)], limit)
}
