package definitions

import (
	"strings"
	"unicode"
)

// locate returns the place of the offset-th character of a scalar's text, counted
// after the space around it is trimmed. Where quoting or folding cannot be
// followed it is the scalar's own place.
func (s *source) locate(n *node, offset int) pos {
	text := []rune(strings.TrimLeftFunc(n.value, unicode.IsSpace))
	at, raw, ok := s.content(n)
	if !ok || offset > len(text) {
		return n.at
	}
	r := rawText{text: raw, at: at, style: n.style}
	r.skipSpace()
	for _, want := range text[:offset] {
		if !r.match(want) {
			return n.at
		}
	}
	if offset < len(text) && !unicode.IsSpace(text[offset]) {
		r.skipSpace()
	}
	return r.at
}

// content returns the source from the first character of a scalar's text on.
func (s *source) content(n *node) (pos, []rune, bool) {
	if n.at.line > len(s.lines) {
		return n.at, nil, false
	}
	line := []rune(s.lines[n.at.line-1])
	col := n.at.col - 1
	for col < len(line) && (line[col] == '!' || line[col] == '&') { // a tag or an anchor stands before the text
		for col < len(line) && line[col] != ' ' {
			col++
		}
		for col < len(line) && line[col] == ' ' {
			col++
		}
	}
	if col >= len(line) {
		return n.at, nil, false
	}
	switch n.style {
	case singleQuoted, doubleQuoted:
		col++
	case block:
		return s.following(n.at.line, nil)
	case plain:
	}
	return s.following(n.at.line-1, line[col:], col)
}

// followed is how many lines of a scalar are looked at.
const followed = 200

// following joins what is left of a line with the lines after it.
func (s *source) following(index int, rest []rune, col ...int) (pos, []rune, bool) {
	at := pos{index + 1, 1}
	if len(col) > 0 {
		at.col = col[0] + 1
	} else {
		if index >= len(s.lines) {
			return at, nil, false
		}
		rest = []rune(s.lines[index])
	}
	end := min(index+1+followed, len(s.lines))
	rest = append(rest, '\n')
	return at, append(rest, []rune(strings.Join(s.lines[index+1:end], "\n"))...), true
}

// rawText walks through source text beside the value it stands for.
type rawText struct {
	text  []rune
	at    pos
	style style
}

func (r *rawText) next() rune {
	c := r.text[0]
	r.text = r.text[1:]
	r.at = r.at.after(c)
	return c
}

func (r *rawText) skipSpace() {
	for len(r.text) > 0 && unicode.IsSpace(r.text[0]) {
		r.next()
	}
}

// match steps over one character of the value. White space may have been folded.
func (r *rawText) match(want rune) bool {
	if len(r.text) == 0 {
		return false
	}
	if unicode.IsSpace(want) {
		switch {
		case unicode.IsSpace(r.text[0]):
			r.next()
		case r.style == doubleQuoted && r.text[0] == '\\':
			return r.escape()
		}
		return true // stepped over with the space before
	}
	r.skipSpace()
	switch {
	case len(r.text) == 0:
		return false
	case r.style == singleQuoted && want == '\'':
		return r.next() == '\'' && len(r.text) > 0 && r.next() == '\''
	case r.style == doubleQuoted && r.text[0] == '\\':
		return r.escape()
	}
	return r.next() == want
}

// escape steps over one escape of a double-quoted text.
func (r *rawText) escape() bool {
	if len(r.text) < 2 || r.text[0] != '\\' {
		return false
	}
	r.next()
	digits := map[rune]int{'x': 2, 'u': 4, 'U': 8}[r.next()]
	for ; digits > 0 && len(r.text) > 0; digits-- {
		r.next()
	}
	return true
}
