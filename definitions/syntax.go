package definitions

import (
	"regexp"
	"strconv"
	"strings"
)

// syntaxError is what the YAML parser says, with its line set right.
type syntaxError struct {
	message string
	line    int // 0: not told
	// fromParser: a rule of the grammar, whose line is that of the collection
	// around the fault; otherwise a token that could not be read.
	fromParser bool
	unclosed   bool // with all brackets closed it would be YAML
}

var (
	yamlLine     = regexp.MustCompile(`^line (\d+): `)
	parserErrors = regexp.MustCompile(`^did not find expected (<|node content|'-' indicator|key$|',' or)|^found (undefined tag handle|duplicate %|incompatible YAML)`)
	lostAnchor   = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)
)

// newSyntaxError reads yaml.v3's text: it counts the lines of parser errors from
// 0 and those of scanner errors from 1. The leading line is already off here.
func newSyntaxError(err error) *syntaxError {
	e := &syntaxError{message: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(e.message); m != nil {
		e.message = e.message[len(m[0]):]
		e.line, _ = strconv.Atoi(m[1])
		e.fromParser = parserErrors.MatchString(e.message)
		if !e.fromParser {
			e.line--
		}
	}
	return e
}

// reportSyntax says where the text stops being YAML, and what is likely meant.
func reportSyntax(src *source, e *syntaxError, f *findings) {
	if strings.HasPrefix(e.message, "exceeded max depth") {
		f.report(pos{max(e.line, 1), 1}, finding{rule: ruleTooDeep}, "more than %d levels of nesting", maxNesting)
		return
	}
	line := faultLine(src, e)
	what := finding{rule: ruleSyntax}
	message := e.message
	if at := tabIndent(src, line); at != 0 {
		f.report(pos{at, 1}, what, "not valid YAML: line %d is indented with a tab; use spaces", at)
		return
	}
	if hint := syntaxHint(src, line, e); hint != "" {
		message += "; " + hint
	}
	f.report(pos{line, 1}, what, "not valid YAML: %s", message)
}

// faultLine finds the line of the fault. For an error of the grammar the parser
// names only the beginning of the collection around it; the fault itself is in
// the first line with which the text before it stops being YAML.
func faultLine(src *source, e *syntaxError) int {
	if m := lostAnchor.FindStringSubmatch(e.message); m != nil {
		return lineHolding(src, "*"+m[1])
	}
	begin := min(max(e.line, 1), len(src.lines))
	if !e.fromParser || len(src.text) > maxSearch {
		return begin
	}
	low, high := begin, len(src.lines)
	for low < high {
		middle := (low + high) / 2
		if readable(strings.Join(src.lines[:middle], "\n")) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == len(src.lines) && readable(src.text) {
		e.unclosed = true // the opening line is the one to look at
		return begin
	}
	return low
}

// maxSearch bounds the files in which the line of a fault is searched: each step
// parses half of the text.
const maxSearch = 64 << 10

func lineHolding(src *source, text string) int {
	for i, line := range src.lines {
		if strings.Contains(line, text) {
			return i + 1
		}
	}
	return 1
}

// readable reports whether text, with the brackets closed that it leaves open, is
// YAML so far.
func readable(text string) bool {
	closers, inQuote := openBrackets(text)
	if inQuote {
		return true
	}
	var ignored findings
	_, problem := decode(text+"\n"+closers, &ignored)
	return problem == nil || lostAnchor.MatchString(problem.message)
}

// openBrackets returns the brackets that would close the flow collections text
// leaves open, and whether it ends inside a quoted scalar.
func openBrackets(text string) (closers string, inQuote bool) {
	s := flowScanner{text: text}
	s.run()
	open := []byte(nil)
	for i := len(s.open) - 1; i >= 0; i-- {
		open = append(open, s.open[i])
	}
	return string(open), s.quote != 0
}

// flowScanner follows brackets, quotes and comments through YAML text, closely
// enough to guess what was meant.
type flowScanner struct {
	text  string
	open  []byte // closing brackets due, innermost last
	quote byte
}

func (s *flowScanner) run() {
	for i := 0; i < len(s.text); i++ {
		c := s.text[i]
		switch {
		case s.quote == '"' && c == '\\':
			i++
		case s.quote != 0:
			if c == s.quote {
				s.quote = 0
			}
		case c == '#' && (i == 0 || isBlank(s.text[i-1])):
			i += max(strings.IndexByte(s.text[i:], '\n'), 0)
			if s.text[i] == '#' {
				return // the last line
			}
		case (c == '"' || c == '\'') && s.startsScalar(i):
			s.quote = c
		case c == '[' || c == '{':
			if len(s.open) > 0 || s.startsScalar(i) {
				s.open = append(s.open, c+2) // ']' and '}' follow by two in ASCII
			}
		case (c == ']' || c == '}') && len(s.open) > 0:
			s.open = s.open[:len(s.open)-1]
		}
	}
}

// startsScalar reports whether a value may begin at i: a quote or bracket in the
// middle of a plain text is part of it.
func (s *flowScanner) startsScalar(i int) bool {
	before := strings.TrimRight(s.text[:i], " \t")
	if before == "" {
		return true
	}
	switch before[len(before)-1] {
	case '\n', '[', '{', ',':
		return true
	case ':', '-', '?':
		return len(before) < i || len(s.open) > 0
	}
	return false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }
