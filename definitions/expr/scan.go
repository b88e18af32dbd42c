package expr

import "unicode/utf8"

// scan looks at the text before the parser does. It bounds the size, since the
// parser's recursion cannot be stopped once begun, and finds what the parser would
// swallow or put into words of its own: comments, a single `=`, pipes and blocks.
func scan(src string, report func(Problem)) {
	switch {
	case len(src) > maxSource:
		report(Problem{Rule: RuleSize, Message: "longer than 2048 bytes"})
		return
	case !utf8.ValidString(src):
		report(Problem{Rule: RuleSyntax, Message: "not valid UTF-8"})
		return
	}
	s := scanner{src: []rune(src), report: report}
	for s.pos < len(s.src) {
		s.step()
	}
}

type scanner struct {
	src    []rune
	pos    int
	report func(Problem)
	blocks bool // braces were told: they come in pairs, and mean one thing
}

// at returns the rune i places ahead, 0 past the end.
func (s *scanner) at(i int) rune {
	if s.pos+i >= len(s.src) {
		return 0
	}
	return s.src[s.pos+i]
}

// signs are operators of the parser that the language leaves out, the longest first,
// beside the ones they could be confused with (no message).
var signs = []struct{ text, rule, message string }{
	{"==", "", ""},
	{"!=", "", ""},
	{"<=", "", ""},
	{">=", "", ""},
	{"<>", RuleSyntax, `"<>" is not an operator; did you mean "!="?`},
	{"=", RuleSyntax, `"=" is not an operator; did you mean "=="?`},
	{"||", "", ""},
	{"|", RuleUnsupported, "there are no pipes"},
	{"//", RuleUnsupported, `there are no comments; "/" between integers already drops the fraction`},
	{"/*", RuleUnsupported, "there are no comments"},
	{";", RuleUnsupported, "one expression only, without a semicolon"},
	{"#", RuleUnsupported, `"#" has no meaning here`},
	{"{", RuleUnsupported, "there are no maps and no blocks"},
	{"}", RuleUnsupported, "there are no maps and no blocks"},
	{"::", RuleUnsupported, `"::" has no meaning here`},
	{"?.", RuleUnsupported, `there is no "?."; nil passes through every operator anyway`},
}

func (s *scanner) step() {
	switch r := s.at(0); r {
	case '\'', '"':
		s.skipString(r, '\\')
		return
	case '`':
		s.skipString(r, 0)
		return
	}
	for _, sign := range signs {
		if !s.has(sign.text) {
			continue
		}
		if brace := sign.text == "{" || sign.text == "}"; sign.message != "" && !(brace && s.blocks) {
			s.blocks = s.blocks || brace
			s.report(Problem{Rule: sign.rule, Offset: s.pos, Message: sign.message})
		}
		if sign.text == "//" || sign.text == "/*" {
			s.pos = len(s.src) // what follows is no expression
			return
		}
		s.pos += len(sign.text)
		return
	}
	s.pos++
}

func (s *scanner) has(text string) bool {
	for i, r := range text {
		if s.at(i) != r {
			return false
		}
	}
	return true
}

// skipString moves behind a string literal. One that does not end is the parser's to
// report.
func (s *scanner) skipString(quote, escape rune) {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case quote:
			s.pos++
			return
		case escape:
			if escape != 0 {
				s.pos++
			}
		}
	}
}
