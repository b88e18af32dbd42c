package definitions

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// syntaxHint guesses what a syntax error in this line comes from. An empty string
// means that the parser's own words must do.
func syntaxHint(src *source, line int, e *syntaxError) string {
	if at := tabIndent(src, line); at != 0 {
		return fmt.Sprintf("line %d is indented with a tab; use spaces", at)
	}
	text := src.lines[line-1]
	if key, value := unquotedFlow(text); key != "" || value != "" {
		return quoteHint(key, value)
	}
	if key, value := quotedStart(text); key != "" {
		return quoteHint(key, value)
	}
	if what := oddIndent(text); what != "" {
		return "the line begins with " + what + "; use spaces"
	}
	if strings.HasPrefix(e.message, "mapping values are not allowed") {
		return "a text that holds `: ` is put in quotes, and the keys of one mapping have one indentation"
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

var flowEntry = regexp.MustCompile(`(?:[{,]\s*)([\pL\pN_][\pL\pN_.-]*):\s+([^\s"'{\[&*!|>,}\]][^\n]*)`)

// unquotedFlow finds the entry of a flow mapping whose value holds a sign of
// YAML's own, and returns it. Without a mapping a bare `string?` in a list is
// what remains.
func unquotedFlow(text string) (key, value string) {
	if !strings.ContainsAny(text, "{[") {
		return "", ""
	}
	for begin := 0; begin < len(text); {
		m := flowEntry.FindStringSubmatchIndex(text[begin:])
		if m == nil {
			break
		}
		key, rest := text[begin+m[2]:begin+m[3]], text[begin+m[4]:]
		value := strings.TrimSpace(flowValue(rest))
		if strings.ContainsAny(value, "?[]{}#") || strings.Contains(value, ": ") || strings.Contains(value, ", ") {
			return key, value
		}
		begin += m[4]
	}
	if m := optionalItem.FindString(text); m != "" {
		return "", m
	}
	return "", ""
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

var quotedEntry = regexp.MustCompile(`^\s*(?:- )?([\pL\pN_][\pL\pN_.-]*):\s+((?:"[^"]*"|'[^']*')\s*[^\s#,}\]].*)$`)

// quotedStart finds a value that begins with a quoted part and goes on after it:
// YAML takes the quotes for its own.
func quotedStart(text string) (key, value string) {
	m := quotedEntry.FindStringSubmatch(text)
	if m == nil {
		return "", ""
	}
	return m[1], strings.TrimSpace(m[2])
}
