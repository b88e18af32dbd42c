package codegen

import (
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
)

// Above these the package comment has no picture: nobody could read it.
const (
	pictureStates = 60
	pictureEdges  = 150
)

// packageDoc is the comment of the package: what it is, the transition table, and
// the picture.
func packageDoc(v *fileView, m *definitions.Machine) string {
	groups := [][]string{
		{fmt.Sprintf("Package %s is the state machine %s over the table %s.", v.Package, m.Name, quote(m.Table.Name))},
		docLines(m.Doc),
		{"Create puts a row into " + list(m.Initial, "or") + ". The transitions:"},
		transitionTable(m),
	}
	if p := newPicture(m, pictureEdges); len(p.states) <= pictureStates && len(p.edges) <= pictureEdges {
		groups = append(groups, []string{"As a Mermaid picture:"}, preformatted(p.mermaid()))
	}
	return comment(paragraphs(groups...)...)
}

func transitionTable(m *definitions.Machine) []string {
	var lines []string
	for i := range m.Transitions {
		t := &m.Transitions[i]
		for _, e := range edgeTexts(t) {
			lines = append(lines, "\t"+t.Name+": "+e)
		}
	}
	if len(lines) == 0 {
		return []string{"\tnone"}
	}
	return lines
}

func preformatted(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		lines = append(lines, "\t"+line)
	}
	return lines
}

// docWidth is where running text of comments is broken.
const docWidth = 90

// commonErrors are those that every call can return.
var commonErrors = [...][2]string{
	{"ErrNotFound", "no row has the id"},
	{"ErrConflict", "the version given with [engine.WithVersion] is not the row's"},
	{"ErrKeyReused", "the key given with [engine.WithKey] was used for another request"},
	{"ErrUnknownState", "the row holds a status that is none of the states"},
	{"ErrInvalidArgs", "the call does not fit the definition; nothing was sent"},
	{"ErrBusy", "nothing was applied, repeat the call"},
	{"ErrUnknownOutcome", "the connection broke or the deadline passed; repeat with the key in the error"},
}

func machineDoc(m *definitions.Machine) string {
	lines := []string{
		fmt.Sprintf("Machine runs the transitions of %s. It is safe for concurrent use.", m.Name),
		"",
		"Every call can return these errors, matched with [errors.Is], as an [engine.Error]:",
	}
	for _, e := range commonErrors {
		if e[0] != "ErrKeyReused" || m.Journal.Enabled {
			lines = append(lines, fmt.Sprintf("  - [engine.%s]: %s", e[0], e[1]))
		}
	}
	return comment(lines...)
}
