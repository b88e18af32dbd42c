package definitions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Problem is one finding about a definition.
//
// Line and Column count from 1, columns in characters. Rule is one of [Rules].
type Problem struct {
	File    string
	Line    int
	Column  int
	Rule    string
	Name    string // the offending name, if there is one
	Message string
	Nearest string // the nearest legal name, if there is one
	Warning bool   // a warning is printed and does not prevent loading
}

// String returns the finding as one line: place, rule, message, and the nearest
// legal name where there is one. What would break or hide the line is written as in a
// Go string: names come from the definition, and files from anywhere.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Warning {
		b.WriteString("warning: ")
	}
	fmt.Fprintf(&b, "%s: %s", p.Rule, p.Message)
	if p.Nearest != "" {
		fmt.Fprintf(&b, " (did you mean %q?)", p.Nearest)
	}
	return visible(b.String())
}

func visible(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool {
	return r == utf8.RuneError || r == '\n' || r == '\t' || isControl(r) || isInvisible(r)
}

// Problems are the findings about one definition, by line and column. As an error
// it holds at least one finding that is not a warning.
type Problems []Problem

// Error returns all findings, one a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Failed reports whether a finding other than a warning is among them.
func (ps Problems) Failed() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning })
}

func compareProblems(a, b Problem) int {
	return cmp.Or(
		cmp.Compare(a.Line, b.Line),
		cmp.Compare(a.Column, b.Column),
		strings.Compare(a.Rule, b.Rule),
		strings.Compare(a.Name, b.Name),
		strings.Compare(a.Message, b.Message),
	)
}

// pos is a place in the source, counted from 1.
type pos struct{ line, col int }

func (p pos) before(q pos) bool {
	return p.line < q.line || p.line == q.line && p.col < q.col
}

// findings collects what is wrong with one file.
type findings struct {
	file  string
	found Problems
	// effort bounds what is spent on nearest names, so that a file of nothing but
	// mistakes is answered as quickly as any other.
	effort int
	// seen keeps findings apart where aliases lead to the same fault several times.
	seen map[Problem]bool
}

// repeats says that places may be read several times.
func (f *findings) repeats() {
	if f.seen == nil {
		f.seen = map[Problem]bool{}
	}
}

func (f *findings) add(p Problem) {
	if f.seen != nil {
		if f.seen[p] {
			return
		}
		f.seen[p] = true
	}
	f.found = append(f.found, p)
}

// finding is what a place in the loader has to say; its rule decides whether it
// is a warning.
type finding struct {
	rule    string
	name    string
	nearest string
}

func (f *findings) report(at pos, what finding, format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = shortened(text)
		}
	}
	f.add(Problem{
		File: f.file, Line: at.line, Column: at.col,
		Rule: what.rule, Name: what.name, Nearest: what.nearest,
		Message: fmt.Sprintf(format, args...),
		Warning: isWarning(what.rule),
	})
}

// maxEcho is how much of a text a message repeats, in characters.
const maxEcho = 200

func shortened(text string) string {
	if utf8.RuneCountInString(text) <= maxEcho {
		return text
	}
	return string([]rune(text)[:maxEcho]) + "…"
}

// sorted returns the findings by place, each once.
func (f *findings) sorted() Problems {
	slices.SortStableFunc(f.found, compareProblems)
	return slices.Compact(f.found)
}
