package definitions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Longest names and texts, in bytes.
const (
	maxNameBytes   = 64
	maxColumnBytes = 63  // of PostgreSQL, which cuts off the rest; the others take more
	maxTextBytes   = 255 // values and topics: the width of their columns
)

// systemColumns are in every table of PostgreSQL, written in just this way.
var systemColumns = []string{"cmax", "cmin", "ctid", "tableoid", "xmax", "xmin"}

var machineName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

// languageWords cannot be names of fields or args: the expression language takes
// them for its own.
var languageWords = []string{
	"and", "args", "contains", "duration", "else", "endsWith", "false", "if", "in", "let", "matches",
	"nil", "not", "now", "null", "or", "startsWith", "true",
}

// machineName checks the name of the machine itself.
func (l *loader) checkMachineName(n *node) {
	switch name := n.value; {
	case !machineName.MatchString(name):
		l.badName(n, "a machine", "small letters, digits and _, beginning with a letter")
	case len(name) > maxNameBytes:
		l.tooLong(n, "a machine")
	}
}

// checkStateName checks the name of a state, transition or group.
func (l *loader) checkStateName(n *node, what string) bool {
	return l.checkName(n, what, "letters, digits, _ and -, beginning with a letter or digit",
		func(r rune) bool { return isLetter(r) || isDigit(r) },
		func(r rune) bool { return isLetter(r) || isDigit(r) || r == '_' || r == '-' })
}

// checkIdentifier checks the name of a field, an arg or a hook.
func (l *loader) checkIdentifier(n *node, what string) bool {
	return l.checkName(n, what, "letters, digits and _, beginning with a letter or _",
		func(r rune) bool { return isLetter(r) || r == '_' },
		func(r rune) bool { return isLetter(r) || isDigit(r) || r == '_' })
}

// checkFieldName checks the name of a field or an arg.
func (l *loader) checkFieldName(n *node, what string) bool {
	if slices.Contains(languageWords, n.value) {
		l.report(n.at, finding{rule: ruleReservedName, name: n.value}, "%s cannot be called %q: it is a word of the expression language", what, n.value)
		return false
	}
	return l.checkIdentifier(n, what)
}

func (l *loader) checkName(n *node, what, rule string, first, rest func(rune) bool) bool {
	name := n.value
	begin, size := utf8.DecodeRuneInString(name)
	switch {
	case !norm.NFC.IsNormalString(name):
		l.report(n.at, finding{rule: ruleNotNFC, name: name}, "%+q is not in Unicode normal form C; type its letters in their composed form", name)
	case size == 0 || !first(begin) || strings.ContainsFunc(name, func(r rune) bool { return !rest(r) }):
		l.badName(n, what, rule)
	case len(name) > maxNameBytes:
		l.tooLong(n, what)
	case strings.Trim(name, "_-") == "":
		l.report(n.at, finding{rule: ruleBadName, name: name}, "%q has no letter or digit, which a Go name needs", name)
	default:
		return true
	}
	return false
}

// isLetter admits the letters Go admits, less those that have no shape of their
// own.
func isLetter(r rune) bool { return unicode.IsLetter(r) && !isInvisible(r) }

func isDigit(r rune) bool { return unicode.IsDigit(r) }

func (l *loader) badName(n *node, what, rule string) {
	if odd := oddCharacter(n.value); odd != "" {
		l.report(n.at, finding{rule: ruleBadName, name: n.value}, "%q holds %s; the name of %s is %s", n.value, odd, what, rule)
		return
	}
	l.report(n.at, finding{rule: ruleBadName, name: n.value}, "%q cannot be the name of %s: it is %s", n.value, what, rule)
}

func (l *loader) tooLong(n *node, what string) {
	l.report(n.at, finding{rule: ruleBadName, name: n.value}, "the name of %s has %d bytes; %d are allowed", what, len(n.value), maxNameBytes)
}

// checkColumn checks a name that the database must take, in quotes.
func (l *loader) checkColumn(n *node, name, what string) bool {
	fault := ""
	switch {
	case name == "":
		fault = "is empty"
	case strings.ContainsAny(name, "\"'`"):
		fault = "holds a quote"
	case oddCharacter(name) != "":
		fault = "holds " + oddCharacter(name)
	case strings.TrimSpace(name) != name:
		fault = "begins or ends with a space"
	case strings.ContainsFunc(name, func(r rune) bool { return r > 0xffff }):
		fault = "holds a character beyond U+FFFF, which MySQL does not allow"
	case len(name) > maxColumnBytes:
		fault = fmt.Sprintf("has %d bytes; PostgreSQL takes %d, and cuts off the rest", len(name), maxColumnBytes)
	case what == "column" && slices.Contains(systemColumns, name):
		fault = "is a system column of PostgreSQL"
	default:
		return true
	}
	l.report(n.at, finding{rule: ruleBadName, name: name}, "%s %q %s", what, name, fault)
	return false
}

// checkTable checks the name of a table, with or without its schema.
func (l *loader) checkTable(n *node, what string) {
	parts := strings.Split(n.value, ".")
	if len(parts) > 2 {
		l.report(n.at, finding{rule: ruleBadName, name: n.value}, "%s %q has more than a schema and a name", what, n.value)
		return
	}
	for _, part := range parts {
		if !l.checkColumn(n, part, what) {
			return
		}
	}
	if name := parts[len(parts)-1]; strings.HasPrefix(strings.ToLower(name), "sqlite_") {
		l.report(n.at, finding{rule: ruleBadName, name: n.value}, "%s %q begins with sqlite_, which SQLite keeps for its own tables", what, n.value)
	}
}

// checkStored checks a text that is kept in a column of ours or the user's.
func (l *loader) checkStored(n *node, text, what string) bool {
	switch {
	case text == "":
		l.report(n.at, finding{rule: ruleEmptyText}, "%s is empty", what)
	case len(text) > maxTextBytes:
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "%s has %d bytes; %d are allowed", what, len(text), maxTextBytes)
	case oddCharacter(text) != "":
		l.report(n.at, finding{rule: ruleBadValue, name: text}, "%s %q holds %s", what, text, oddCharacter(text))
	default:
		return true
	}
	return false
}

// folded is the form in which names are compared that must also differ where a
// database or file system takes case lightly: every letter is the first of those
// that differ from it in case only.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		first := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			first = min(first, other)
		}
		return first
	}, strings.TrimSpace(name))
}
