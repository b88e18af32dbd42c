package codegen

import (
	"strconv"
	"strings"
	"unicode"
)

// oneLine makes text fit for one line of a comment or a label: every run of white
// space, control and invisible characters, and of bytes that are no text, becomes
// one space.
func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, " "), unsafeRune), " ")
}

// oneLineExpr is oneLine for an expression: what stands in a string literal keeps its
// spaces, since it is compared with them.
func oneLineExpr(source string) string {
	var b strings.Builder
	quote, escaped, gap := rune(0), false, false
	for _, r := range strings.ToValidUTF8(source, " ") {
		if quote == 0 && unsafeRune(r) {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte(' ')
		}
		gap = false
		if unsafeRune(r) {
			r = ' '
		}
		b.WriteRune(r)
		switch {
		case quote == 0 && strings.ContainsRune("'\"`", r):
			quote = r
		case r == quote && !escaped:
			quote = 0
		}
		escaped = r == '\\' && quote != 0 && quote != '`' && !escaped
	}
	return b.String()
}

// unsafeRune reports whether r may end a line, hide or reorder text, or is no
// legal character of a Go file.
func unsafeRune(r rune) bool {
	return unicode.IsSpace(r) || !unicode.IsGraphic(r)
}

// docLines splits the doc text of a definition into comment lines, without blank
// lines at either end and with single ones between paragraphs.
func docLines(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(lineEnds.Replace(text), "\n") {
		line = oneLine(line)
		if line == "" && (len(lines) == 0 || lines[len(lines)-1] == "") {
			continue
		}
		lines = append(lines, escapeDirective(line))
	}
	if n := len(lines); n > 0 && lines[n-1] == "" {
		lines = lines[:n-1]
	}
	return lines
}

// lineEnds maps everything that a reader or a tool may take for the end of a line.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")

// escapeDirective keeps a line from being read as a build constraint of the old
// form, the one directive that is recognised after "// ". All others begin right
// behind the slashes, where comment always puts a space.
func escapeDirective(line string) string {
	if strings.HasPrefix(line, "+build") {
		return `\` + line
	}
	return line
}

// comment renders lines as a line comment. A line that begins with a tab stays
// preformatted.
func comment(lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("//")
		if line != "" && line[0] != '\t' {
			b.WriteByte(' ')
		}
		b.WriteString(line)
	}
	return b.String()
}

// paragraphs joins groups of lines, leaving out the empty ones, with a blank line
// between each two.
func paragraphs(groups ...[]string) []string {
	var out []string
	for _, g := range groups {
		if len(g) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, "")
		}
		out = append(out, g...)
	}
	return out
}

// sentence ends text with a full stop unless it ends with punctuation of its own.
func sentence(text string) string {
	if text == "" || strings.ContainsRune(".!?:;", rune(text[len(text)-1])) {
		return text
	}
	return text + "."
}

// list writes names as "a", "a and b", "a, b and c".
func list(names []string, conjunction string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + conjunction + " " + names[last]
}

// wrap breaks text into lines of at most width bytes where it has spaces.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, escapeDirective(line)), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, escapeDirective(line))
	}
	return lines
}

// quote renders a Go string literal.
func quote(s string) string { return strconv.Quote(s) }
