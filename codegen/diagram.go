package codegen

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/fsmgen/fsmgen/definitions"
)

// Formats lists the formats [Diagram] knows.
func Formats() []string { return []string{"mermaid", "dot"} }

// Diagram draws a machine as text of the given format. Names and conditions are
// hostile text to a diagram language, so identifiers are made here (s0, s1, … in
// state order) and everything else stands in escaped labels.
//
// A machine with more than 50,000 edges is not drawn; the error is a
// [definitions.Problems].
func Diagram(m *definitions.Machine, format string) ([]byte, error) {
	p := newPicture(m, maxMoves)
	if len(p.edges) > maxMoves {
		return nil, definitions.Problems{problem(m, "too-many-edges", "", fmt.Sprintf(
			"the machine has more than %d edges, groups and \"*\" expanded, which nobody could draw or read", maxMoves))}
	}
	switch format {
	case "mermaid":
		return []byte(p.mermaid()), nil
	case "dot":
		return []byte(p.dot()), nil
	}
	return nil, fmt.Errorf("unknown diagram format %q: want %s", format, list(Formats(), "or"))
}

// picture is a machine as a graph, in the order it is drawn.
type picture struct {
	name    string
	states  []node
	initial []int
	edges   []edge
}

type node struct {
	label string
	final bool
}

type edge struct {
	from, to int
	label    string
}

// newPicture draws edges until there are more than most.
func newPicture(m *definitions.Machine, most int) *picture {
	p := &picture{name: oneLine(m.Name)}
	index := make(map[string]int, len(m.States))
	for i, s := range m.States {
		index[s.Name] = i
		p.states = append(p.states, node{oneLine(s.Name), s.Final})
	}
	for _, s := range m.Initial {
		p.initial = append(p.initial, index[s])
	}
	seen := map[edge]bool{}
	for i := range m.Transitions {
		t := &m.Transitions[i]
		labels := map[*definitions.Target]string{} // each stands at many edges
		for way := range t.Edges() {
			label, made := labels[way.Target]
			if !made {
				label = oneLine(t.Name)
				if c := conditionText(t.When, way.Move.When, way.Target.When); c != "" {
					label += " [" + c + "]"
				}
				labels[way.Target] = label
			}
			e := edge{index[way.From], index[way.Target.State], label}
			if seen[e] {
				continue
			}
			seen[e] = true
			if p.edges = append(p.edges, e); len(p.edges) > most {
				return p
			}
		}
	}
	return p
}

// mermaid draws the picture as a state diagram of Mermaid.
func (p *picture) mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for i, s := range p.states {
		fmt.Fprintf(&b, "    state \"%s\" as s%d\n", mermaidText(s.label), i)
	}
	for _, i := range p.initial {
		fmt.Fprintf(&b, "    [*] --> s%d\n", i)
	}
	for _, e := range p.edges {
		fmt.Fprintf(&b, "    s%d --> s%d: %s\n", e.from, e.to, mermaidText(e.label))
	}
	for i, s := range p.states {
		if s.final {
			fmt.Fprintf(&b, "    s%d --> [*]\n", i)
		}
	}
	return b.String()
}

// mermaidText writes as an entity what has a meaning to Mermaid, to the Markdown it
// takes labels for, or to the HTML it makes of them. An underscore between letters means
// nothing, and most names have one. HTML shows spaces in a row as one, unless they are
// of the kind that does not break.
func mermaidText(label string) string {
	var b strings.Builder
	runes := []rune(label)
	at := func(i int) rune {
		if i < 0 || i >= len(runes) {
			return 0
		}
		return runes[i]
	}
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for i, r := range runes {
		switch {
		case r == ' ' && at(i-1) == ' ':
			b.WriteString("#160;")
		case r == '_' && inWord(at(i-1)) && inWord(at(i+1)):
			b.WriteRune(r)
		case strings.ContainsRune("\"#;:%{}<>`\\$&*_~", r), r == '[' && at(i+1) == '[', r == '(' && at(i-1) == ']', i == 0 && strings.ContainsRune("-+=[", r):
			fmt.Fprintf(&b, "#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return mermaidKeyword.ReplaceAllString(b.String(), "$1#32;")
}

// mermaidKeyword is what Mermaid looks for everywhere in a line, and takes the whole
// line for; without the space it is a word like any other.
var mermaidKeyword = regexp.MustCompile(`(?i)(direction) `)

// dot draws the picture in the language of Graphviz.
func (p *picture) dot() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n", dotText(p.name))
	b.WriteString("    rankdir=LR;\n    node [shape=box, style=rounded];\n")
	for i := range p.initial {
		fmt.Fprintf(&b, "    start%d [shape=point, label=\"\"];\n", i)
	}
	for i, s := range p.states {
		extra := ""
		if s.final {
			extra = ", peripheries=2"
		}
		fmt.Fprintf(&b, "    s%d [label=%s%s];\n", i, dotText(s.label), extra)
	}
	for i, s := range p.initial {
		fmt.Fprintf(&b, "    start%d -> s%d;\n", i, s)
	}
	for _, e := range p.edges {
		fmt.Fprintf(&b, "    s%d -> s%d [label=%s];\n", e.from, e.to, dotText(e.label))
	}
	b.WriteString("}\n")
	return b.String()
}

// dotText renders a quoted string of DOT, in which the quote and the backslash have a
// meaning, and in a label the entities of HTML.
func dotText(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "&", "&amp;").Replace(s) + `"`
}
