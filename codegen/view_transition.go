package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

type transitionView struct {
	Const    string
	ConstDoc string
	Quoted   string
	Method   string
	Doc      string
	Sources  memberView

	Args      []argView
	ArgsType  string
	ArgValues string // elements of the slice that hands the args to the engine

	Hooked bool // a transition with Go code

	hasOptional bool

	Can         string // name of the pure check
	CanDoc      string
	Conditional bool // anything but the state decides, and the args where they are legal
	ByState     bool // nothing but the state decides

	// Copies of what the file knows, and expressions of the calls.
	Row, IDType, CallID, RowID, RowValues, CallArgs string
}

type argView struct {
	Name      string
	Doc       string
	GoType    string
	FromValue string // reads the arg from the engine's values
}

func newTransitionView(v *fileView, m *definitions.Machine, x *index, t *definitions.Transition) transitionView {
	suffix := definitions.GoSuffix(t.Name)
	tv := transitionView{
		Const: "Transition" + suffix, Quoted: quote(t.Name), Method: definitions.GoName(t.Name), Can: "Can" + suffix,
		Sources: newMemberView(x.sources(t)), Conditional: t.Rejectable(x.scales),
		Row: v.Type, IDType: v.IDType, CallID: v.CallID, RowID: "o.ID", CallArgs: "nil", RowValues: "nil",
	}
	if v.IntID {
		tv.RowID = "strconv.FormatInt(o.ID, 10)"
	}
	tv.ByState = !tv.Conditional && len(t.Args) == 0
	tv.Hooked = t.HasCode()
	tv.addArgs(t)
	if len(m.Fields) > 0 {
		tv.RowValues = "o.values()"
	}
	tv.addDocs(t)
	return tv
}

func (tv *transitionView) addArgs(t *definitions.Transition) {
	if len(t.Args) == 0 {
		return
	}
	tv.ArgsType, tv.CallArgs = tv.Method+"Args", "args.values()"
	var values []string
	for i, a := range t.Args {
		av := argView{Name: definitions.GoName(a.Name), GoType: goTypes[a.Type]}
		av.FromValue = fmt.Sprintf("fsmValue[%s](e.Args[%d])", av.GoType, i)
		var notes []string
		if a.Optional {
			av.FromValue = fmt.Sprintf("fsmPointer[%s](e.Args[%d])", av.GoType, i)
			av.GoType = "*" + av.GoType
			notes = append(notes, "Optional.")
		}
		if a.Secret {
			notes = append(notes, "Kept out of the journal.")
		}
		doc := docLines(a.Doc)
		if len(notes) > 0 {
			doc = append(doc, strings.Join(notes, " "))
		}
		av.Doc = optionalComment(doc)
		values = append(values, value("a."+av.Name, a.Optional))
		tv.hasOptional = tv.hasOptional || a.Optional
		tv.Args = append(tv.Args, av)
	}
	tv.ArgValues = elements(values)
}

// index finds what a transition names, so that what concerns a few of many need not ask
// them all.
type index struct {
	states map[string]int
	scales map[string]int // of decimal fields
}

func newIndex(m *definitions.Machine) *index {
	x := &index{make(map[string]int, len(m.States)), map[string]int{}}
	for i := range m.States {
		x.states[m.States[i].Name] = i
	}
	for i := range m.Fields {
		if f := &m.Fields[i]; f.Type == expr.Decimal {
			x.scales[f.Name] = f.Scale
		}
	}
	return x
}

// sources lists the states a transition leaves, in state order.
func (x *index) sources(t *definitions.Transition) []string {
	if len(t.Moves) == 1 {
		return t.Moves[0].From // it has this order
	}
	seen := map[string]bool{}
	var names []string
	for _, move := range t.Moves {
		for _, s := range move.From {
			if !seen[s] {
				seen[s] = true
				names = append(names, s)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return x.states[a] - x.states[b] })
	return names
}

func (tv *transitionView) addDocs(t *definitions.Transition) {
	edges := edgeTexts(t)
	var first []string
	if len(edges) == 1 {
		tv.ConstDoc = comment(fmt.Sprintf("%s is %q: %s.", tv.Const, t.Name, edges[0]))
		first = []string{fmt.Sprintf("%s fires %q: %s.", tv.Method, t.Name, edges[0])}
	} else {
		tv.ConstDoc = comment(edgeList(fmt.Sprintf("%s is %q:", tv.Const, t.Name), edges)...)
		first = edgeList(fmt.Sprintf("%s fires %q, the first of these that fits:", tv.Method, t.Name), edges)
	}
	tv.Doc = comment(paragraphs(first, docLines(t.Doc), wrap(errorsText(t, tv.Conditional), docWidth))...)
	can := tv.Can + " returns nil, or the error that firing " + t.Name + " would give if the row were o."
	reads := "It reads nothing but its arguments."
	if t.Guard != "" {
		reads = "It reads nothing but its arguments, and does not ask the guard " + t.Guard + "."
	}
	tv.CanDoc = comment(can, reads)
}

func edgeList(head string, edges []string) []string {
	lines := []string{head}
	for _, e := range edges {
		lines = append(lines, "\t"+e)
	}
	return lines
}

// Where a transition has many ways, a comment lists the first, and of a long condition the
// beginning: that of the transition stands with each.
const (
	manyEdges     = 150
	longCondition = 200 // characters
)

// edgeTexts says for each move and branch what leads where, under which condition.
func edgeTexts(t *definitions.Transition) []string {
	n := 0
	for i := range t.Moves {
		n += len(t.Moves[i].Targets)
	}
	var texts []string
	for _, move := range t.Moves {
		from := list(move.From, "or")
		if len(move.From) > manyNames {
			from = few(move.From)
		}
		if move.Any {
			from = "any state that is neither final nor a target"
		}
		for _, target := range move.Targets {
			if len(texts) == manyEdges {
				return append(texts, fmt.Sprintf("and %d more", n-manyEdges))
			}
			text := from + " → " + target.State
			if c := conditionText(t.When, move.When, target.When); c != "" {
				if runes := []rune(c); n > manyNames && len(runes) > longCondition {
					c = string(runes[:longCondition]) + "…"
				}
				text += ", if " + c
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// conditionText joins the conditions that are there.
func conditionText(conditions ...*expr.Expr) string {
	var parts []string
	for _, c := range conditions {
		if c != nil {
			parts = append(parts, oneLineExpr(c.Source))
		}
	}
	if len(parts) > 1 {
		return "(" + strings.Join(parts, ") and (") + ")"
	}
	return strings.Join(parts, "")
}

// errorsText names the errors of a call that depend on the transition, with their
// reason; those of every call are listed with the machine.
func errorsText(t *definitions.Transition, conditional bool) string {
	errors := []string{"[engine.ErrNotAllowed] from any other state, unless it is a repeat"}
	if why := rejections(t, conditional); why != "" {
		errors = append(errors, "[engine.ErrRejected] where "+why)
	}
	switch {
	case len(t.Identity) > 0:
		errors = append(errors, "[engine.ErrMismatch] where it was done with another "+list(t.Identity, "or"))
	case t.Key.Derived():
		errors = append(errors, "[engine.ErrMismatch] where the same "+list(t.Key.Args, "and")+" came with other args")
	}
	if t.Key.Required {
		errors = append(errors, "[engine.ErrInvalidArgs] without [engine.WithKey]")
	}
	return "Errors: " + strings.Join(errors, "; ") + "; and those of every call, see [Machine]."
}

func rejections(t *definitions.Transition, conditional bool) string {
	var why []string
	if conditional {
		why = append(why, "the condition does not hold or an operation overflows")
	}
	if t.Guard != "" {
		why = append(why, "the guard "+t.Guard+" says no")
	}
	return strings.Join(why, ", or ")
}
