package definitions

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a definition file. They are far above any machine a person would
// write, and low enough that a hostile file is refused at once.
const (
	maxFileSize   = 1 << 20   // bytes
	maxNesting    = 100       // levels of mappings and sequences
	maxAliasNodes = 10_000    // nodes added by expanding aliases
	maxAliasText  = 1 << 20   // bytes of text in them
	maxParts      = 150_000   // lines and list entries: one in seven bytes of the largest file
	maxEdges      = 1_000_000 // sources of all moves, groups and "*" expanded
)

// source is the text of a definition, with line breaks made uniform.
type source struct {
	text    string
	lines   []string
	decoded [][]rune // of lines, where a place was looked for
}

const byteOrderMark = "\xef\xbb\xbf"

// newSource checks what can be said about a file before it is read as YAML. It
// returns nil if going on makes no sense.
func newSource(data []byte, f *findings) *source {
	if len(data) > maxFileSize {
		f.report(pos{1, 1}, finding{rule: ruleTooLarge}, "the file is larger than 1 MiB; a definition describes one machine")
		return nil
	}
	if isUTF16(data) {
		f.report(pos{1, 1}, finding{rule: ruleNotUTF8}, "the file is UTF-16; save it as UTF-8")
		return nil
	}
	text := uniformBreaks(string(bytes.TrimPrefix(data, []byte(byteOrderMark))))
	if !utf8.ValidString(text) {
		at := firstInvalid(text)
		f.report(at, finding{rule: ruleNotUTF8}, "the file is not valid UTF-8 here; save it as UTF-8")
		return nil
	}
	if parts([]byte(text)) > maxParts {
		f.report(pos{1, 1}, finding{rule: ruleTooLarge}, "the file has more than %d lines and list entries", maxParts)
		return nil
	}
	if !checkCharacters(text, f) {
		return nil
	}
	return &source{text: text, lines: strings.Split(text, "\n")}
}

// parts counts lines and list entries.
func parts(text []byte) int { return bytes.Count(text, []byte(",")) + bytes.Count(text, []byte("\n")) }

// isUTF16 recognises UTF-16 by its byte order mark, or by the NUL that every
// ASCII character brings.
func isUTF16(data []byte) bool {
	if bytes.HasPrefix(data, []byte{0xfe, 0xff}) || bytes.HasPrefix(data, []byte{0xff, 0xfe}) {
		return true
	}
	return len(data) >= 4 && len(data)%2 == 0 && (data[0] == 0) != (data[1] == 0) && (data[2] == 0) != (data[3] == 0)
}

func uniformBreaks(text string) string {
	if !strings.Contains(text, "\r") {
		return text
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

func firstInvalid(text string) pos {
	at := pos{1, 1}
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			break
		}
		at = at.after(r)
		text = text[size:]
	}
	return at
}

func (p pos) after(r rune) pos {
	if r == '\n' {
		return pos{p.line + 1, 1}
	}
	return pos{p.line, p.col + 1}
}

// checkCharacters reports characters that make a file look other than it is. It
// returns false if YAML could not read the text at all.
func checkCharacters(text string, f *findings) bool {
	readable := true
	at := pos{1, 1}
	for _, r := range text {
		switch {
		case isControl(r):
			f.report(at, finding{rule: ruleControl, name: codePoint(r)}, "control character %s; remove it", codePoint(r))
			readable = false
		case isInvisible(r):
			f.report(at, finding{rule: ruleInvisible, name: codePoint(r)}, "invisible character %s; remove it", codePoint(r))
		}
		at = at.after(r)
	}
	return readable
}

// isControl reports what YAML does not allow in a file. The line breaks beyond
// ASCII belong here too: editors and YAML would count lines differently.
func isControl(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u2028', '\u2029', '\ufffe', '\uffff':
		return true
	}
	return unicode.IsControl(r)
}

// isInvisible reports characters that have no width of their own or turn the
// direction of the text: nothing in a definition needs them.
func isInvisible(r rune) bool {
	if r < 0x80 || isJoiner(r) {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// isJoiner reports invisible characters that prose needs (Persian, Indic scripts,
// emoji): legal in doc texts and comments, nowhere else.
func isJoiner(r rune) bool {
	return r == '\u200c' || r == '\u200d' || r == '\ufe0e' || r == '\ufe0f'
}

// isOddSpace reports spaces that look like the usual one.
func isOddSpace(r rune) bool {
	return r != ' ' && unicode.Is(unicode.Zs, r)
}

func codePoint(r rune) string { return fmt.Sprintf("U+%04X", r) }

// oddCharacter describes the first character of s that is not visible for what it
// is, or returns the empty string.
func oddCharacter(s string) string {
	for _, r := range s {
		switch {
		case r == '\t':
			return "a tab"
		case r == '\n':
			return "a line break"
		case isOddSpace(r):
			return "the space " + codePoint(r)
		case isControl(r):
			return "the control character " + codePoint(r)
		case isInvisible(r), isJoiner(r):
			return "the invisible character " + codePoint(r)
		}
	}
	return ""
}
