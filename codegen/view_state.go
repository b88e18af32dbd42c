package codegen

import (
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
)

type stateView struct {
	Const      string
	Handle     string
	Doc        string
	Quoted     string // the name
	ParseCases string // the name and the aliases that are text
	Value      string // what rows hold, as a literal
	RowCases   string // the value and the aliases
}

type groupView struct {
	Const  string
	Doc    string
	Quoted string
	States memberView
}

// memberView tests whether s is one of some states.
type memberView struct {
	Short string // a comparison, where there are few
	Long  string // a list of cases otherwise
}

// fewStates is how many comparisons read better than a switch.
const fewStates = 3

func newMemberView(states []string) memberView {
	constants := make([]string, len(states))
	for i, s := range states {
		constants[i] = stateConst(s)
	}
	switch {
	case len(constants) == 0:
		return memberView{Short: "false"}
	case len(constants) <= fewStates:
		return memberView{Short: "s == " + strings.Join(constants, " || s == ")}
	}
	return memberView{Long: strings.Join(constants, ",\n")}
}

func stateConst(name string) string { return "State" + definitions.GoSuffix(name) }

func (v *fileView) addStates(m *definitions.Machine) {
	for i := range m.States {
		s := &m.States[i]
		sv := newStateView(s)
		sv.Handle = v.handle(s.Name)
		v.States = append(v.States, sv)
		if s.Final {
			v.Finals = append(v.Finals, sv.Const)
		}
		v.TextAliases = v.TextAliases || sv.ParseCases != sv.Quoted
		v.TextValues = v.TextValues || sv.Value != sv.Quoted
	}
	for _, g := range m.Groups {
		c := "Group" + definitions.GoSuffix(g.Name)
		v.Groups = append(v.Groups, groupView{
			Const: c, Quoted: quote(g.Name), States: newMemberView(g.States),
			Doc: comment(wrap(fmt.Sprintf("%s is %q: %s.", c, g.Name, few(g.States)), docWidth)...),
		})
	}
	v.SeveralInitial = len(m.Initial) > 1
	constants := make([]string, len(m.Initial))
	for i, s := range m.Initial {
		constants[i] = stateConst(s)
	}
	v.InitialList, v.InitialDefault = list(constants, "and"), constants[0]
}

func newStateView(s *definitions.State) stateView {
	v := stateView{Const: stateConst(s.Name), Quoted: quote(s.Name), Value: literal(s.Value)}
	parse, row := []string{v.Quoted}, []string{v.Value}
	for _, alias := range s.Aliases {
		row = append(row, literal(alias))
		if text, ok := alias.(string); ok && text != s.Name { // what rows once held may be the name
			parse = append(parse, quote(text))
		}
	}
	v.ParseCases, v.RowCases = strings.Join(parse, ", "), strings.Join(row, ", ")
	first := fmt.Sprintf("%s is %q", v.Const, s.Name)
	if s.Final {
		first += ", a final state"
	}
	if v.Value != v.Quoted {
		first += ", in rows " + v.Value
	}
	if len(row) > 1 {
		first += ", once " + strings.Join(row[1:], ", ")
	}
	v.Doc = comment(paragraphs([]string{first + "."}, docLines(s.Doc))...)
	return v
}

// literal renders a value of the status column.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return quote(text)
	}
	return fmt.Sprint(value)
}

// manyNames is where few stops listing.
const manyNames = 8

// few lists names, or the first of them where there are many.
func few(names []string) string {
	if len(names) <= manyNames {
		return list(names, "and")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:manyNames], ", "), len(names)-manyNames)
}
