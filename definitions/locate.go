package definitions

import (
	"slices"
	"strings"
	"unicode"
)

// locate returns the place of the offset-th character of a scalar's text, counted
// after the space around it is trimmed. Where quoting or folding cannot be
// followed it is the scalar's own place.
func (s *source) locate(n *node, offset int) pos {
	text := strings.TrimLeftFunc(n.value, unicode.IsSpace)
	r, ok := s.content(n)
	if !ok {
		return n.at
	}
	for _, want := range n.value[:len(n.value)-len(text)] {
		r.match(want)
	}
	r.skipSpace()
	for _, want := range text {
		if offset == 0 {
			if !unicode.IsSpace(want) {
				r.skipSpace()
			}
			return r.at()
		}
		if !r.match(want) {
			return n.at
		}
		offset--
	}
	if offset > 0 {
		return n.at
	}
	return r.at()
}

// content returns the source from the first character of a scalar's text on.
func (s *source) content(n *node) (*rawText, bool) {
	if n.at.line > len(s.lines) {
		return nil, false
	}
	r := &rawText{src: s, line: n.at.line - 1, col: n.at.col - 1, style: n.style}
	r.last = min(r.line+followed, len(s.lines)-1)
	r.text = s.runes(r.line)
	r.col = min(r.col, len(r.text))
	r.skipProperties()
	switch n.style {
	case singleQuoted, doubleQuoted:
		r.next()
	case block:
		r.line, r.col = r.line+1, 0
		if r.line > r.last {
			return nil, false
		}
		r.text = s.runes(r.line)
	case plain:
	}
	return r, r.peek() != 0
}

// skipProperties steps over a tag or an anchor that stands before the text, and the
// comments behind it.
func (r *rawText) skipProperties() {
	for behind := false; ; behind = true {
		switch c := r.peek(); {
		case c == '!', c == '&':
			for c != 0 && !unicode.IsSpace(c) {
				r.next()
				c = r.peek()
			}
		case behind && c == '#':
			r.col = len(r.text)
		default:
			return
		}
		r.skipSpace()
	}
}

// runes returns a line as characters. Many places may be looked for in one line.
func (s *source) runes(line int) []rune {
	if s.decoded == nil {
		s.decoded = make([][]rune, len(s.lines))
	}
	if s.decoded[line] == nil {
		s.decoded[line] = []rune(s.lines[line])
	}
	return s.decoded[line]
}

// followed is how many lines of a scalar are looked at.
const followed = 200

// rawText walks through source text beside the value it stands for.
type rawText struct {
	src       *source
	line, col int // from 0
	last      int // the last line that is looked at
	text      []rune
	style     style
}

func (r *rawText) at() pos { return pos{r.line + 1, r.col + 1} }

// peek returns the next character, 0 behind the last.
func (r *rawText) peek() rune {
	switch {
	case r.col < len(r.text):
		return r.text[r.col]
	case r.line < r.last:
		return '\n'
	}
	return 0
}

func (r *rawText) next() rune {
	c := r.peek()
	switch {
	case r.col < len(r.text):
		r.col++
	case c == '\n':
		r.line, r.col = r.line+1, 0
		r.text = r.src.runes(r.line)
	}
	return c
}

func (r *rawText) skipSpace() {
	for unicode.IsSpace(r.peek()) {
		r.next()
	}
}

// match steps over one character of the value. White space may have been folded.
func (r *rawText) match(want rune) bool {
	r.skipContinued()
	if r.peek() == 0 {
		return false
	}
	if unicode.IsSpace(want) {
		switch {
		case unicode.IsSpace(r.peek()):
			r.next()
		case r.style == doubleQuoted && r.peek() == '\\':
			return r.escape()
		}
		return true // stepped over with the space before
	}
	r.skipSpace()
	switch c := r.next(); {
	case c == 0:
		return false
	case r.style == singleQuoted && want == '\'':
		return c == '\'' && r.next() == '\''
	case r.style == doubleQuoted && c == '\\':
		return r.escaped()
	default:
		return c == want
	}
}

// skipContinued steps over the end of a line that a backslash joins with the next.
func (r *rawText) skipContinued() {
	for r.style == doubleQuoted && r.peek() == '\\' && r.col == len(r.text)-1 {
		r.next()
		r.skipSpace()
	}
}

// escape steps over one escape of a double-quoted text.
func (r *rawText) escape() bool { return r.next() == '\\' && r.escaped() }

// escaped is escape behind the backslash.
func (r *rawText) escaped() bool {
	c := r.next()
	for digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[c]; digits > 0; digits-- {
		r.next()
	}
	return c != 0
}

// commented returns a plain text together with what YAML takes for a comment behind it,
// or nothing where there is none.
func (s *source) commented(n *node) string {
	r, ok := s.content(n)
	if !ok || n.style != plain {
		return ""
	}
	value, line := []rune(n.value), r.text[r.col:]
	if len(line) < len(value) || !slices.Equal(line[:len(value)], value) {
		return ""
	}
	rest := line[len(value):]
	i := slices.IndexFunc(rest, func(c rune) bool { return c != ' ' && c != '\t' })
	if i < 0 || rest[i] != '#' {
		return ""
	}
	return n.value + strings.TrimRight(string(rest), " \t")
}
