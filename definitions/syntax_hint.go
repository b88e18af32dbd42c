package definitions

import (
	"regexp"
	"strconv"
	"strings"
)

// syntaxHint guesses what a syntax error in this line comes from. An empty string
// means that the parser's own words must do.
func syntaxHint(src *source, line int, e *syntaxError) string {
	text := src.lines[line-1]
	if m := lostAnchor.FindStringSubmatch(e.message); m != nil {
		return "no &" + m[1] + " stands before it"
	}
	if inFlow := strings.Contains(e.message, "',' or"); inFlow {
		text = "{" + text // an entry may begin the line
	}
	for _, find := range []func(string) (key, value string, found bool){unquotedFlow, quotedStart, indicatorStart} {
		if key, value, found := find(text); found {
			return quoteHint(key, value)
		}
	}
	if what := oddIndent(text); what != "" {
		return "the line begins with " + what + "; use spaces"
	}
	return messageHint(e)
}

// messageHint explains the parser's words where the line itself tells nothing.
func messageHint(e *syntaxError) string {
	switch {
	case e.unclosed:
		return "the bracket that opens in this line is never closed"
	case strings.HasPrefix(e.message, "mapping values are not allowed"):
		return "a text that holds `: ` is put in quotes, and the keys of one mapping have one indentation"
	case strings.HasPrefix(e.message, "could not find expected ':'"):
		return "this line is neither `key: value` nor part of a text; a space follows the colon"
	case strings.HasPrefix(e.message, "found incompatible YAML document"):
		return "leave the %YAML line out"
	case e.message == "found unexpected end of stream":
		return "the quote that opens in this line is never closed"
	}
	return ""
}

func quoteHint(key, value string) string {
	quoted := strconv.Quote(value)
	if strings.Contains(value, `"`) || strings.Contains(value, `\`) {
		quoted = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	if key == "" {
		return "inside { } and [ ] this text needs quotes: " + quoted
	}
	return "this value needs quotes: " + key + ": " + quoted
}

// tabIndent returns the line near the fault whose indentation holds a tab, or 0.
// The parser may name the line before or after it.
func tabIndent(src *source, line int) int {
	for _, n := range []int{line, line + 1, line - 1} {
		if n < 1 || n > len(src.lines) {
			continue
		}
		text := src.lines[n-1]
		indent := text[:len(text)-len(strings.TrimLeft(text, " \t"))]
		if strings.Contains(indent, "\t") {
			return n
		}
	}
	return 0
}

func oddIndent(text string) string {
	if trimmed := strings.TrimLeft(text, " "); trimmed != "" {
		return oddCharacter(string([]rune(trimmed)[:1]))
	}
	return ""
}

// flowEntry ends where the value begins: it is looked for behind every entry of a line.
var flowEntry = regexp.MustCompile(`(?:[{,]\s*)([\pL\pN_][\pL\pN_.-]*):\s+([^\s"'{\[&*!|>,}\]])`)

// longestHint is more than anybody would put in quotes, in bytes.
const longestHint = 2048

// unquotedFlow finds the entry of a flow mapping whose value holds a sign of
// YAML's own, and returns it. Without a mapping a bare `string?` in a list is
// what remains.
func unquotedFlow(text string) (key, value string, found bool) {
	if !strings.ContainsAny(text, "{[") {
		return "", "", false
	}
	for begin := 0; begin < len(text); {
		m := flowEntry.FindStringSubmatchIndex(text[begin:])
		if m == nil {
			break
		}
		key, rest := text[begin+m[2]:begin+m[3]], text[begin+m[4]:]
		value := flowValue(rest[:min(len(rest), longestHint)])
		if len(value) == longestHint { // it may go on to the end of the line, as may that of every entry
			begin += m[4]
			continue
		}
		value = strings.TrimSpace(value)
		if strings.ContainsAny(value, "?[]{}#") || strings.Contains(value, ": ") || strings.Contains(value, ", ") {
			return key, value, true
		}
		begin += m[4]
	}
	value = optionalItem.FindString(text)
	return "", value, value != ""
}

var optionalItem = regexp.MustCompile(`\b(string|int|float|bool|time|bytes|json|decimal)\?`)

// flowValue cuts an unquoted value out of a flow mapping: to the comma or bracket
// that ends it, brackets and quotes inside it skipped.
func flowValue(text string) string {
	depth, quote := 0, byte(0)
	for i := range len(text) {
		c := text[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '[' || c == '(' || c == '{':
			depth++
		case depth == 0 && (c == ',' || c == '}' || c == ']'):
			return text[:i]
		case c == ']' || c == ')' || c == '}':
			depth--
		}
	}
	return text
}

var (
	quotedEntry = regexp.MustCompile(`(?:^\s*(?:- )?|[{,]\s*)([\pL\pN_][\pL\pN_.-]*):\s+((?:"[^"]*"|'[^']*')\s*[^\s#,}\]].*)$`)
	indicator   = regexp.MustCompile("(?:([\\pL\\pN_][\\pL\\pN_.-]*):\\s+|[\\[,]\\s*|- )([@`%*][^\\s,}\\]]*)")
)

// quotedStart finds a value that begins with a quoted part and goes on after it:
// YAML takes the quotes for its own.
func quotedStart(text string) (key, value string, found bool) {
	m := quotedEntry.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	value = m[2]
	if strings.ContainsAny(text[:strings.Index(text, value)], "{[") {
		value = flowValue(value)
	}
	return m[1], strings.TrimSpace(value), true
}

// indicatorStart finds a value that begins with a sign YAML keeps for itself, as
// "@group" and "*" do.
func indicatorStart(text string) (key, value string, found bool) {
	m := indicator.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}
