package codegen

import (
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// fileView is what the templates see of a machine. Everything in a view is ready
// to be written: identifiers are legal, literals are quoted, comments are safe.
type fileView struct {
	Package    string
	Source     string // path of the definition, for the header
	SourceName string // its base name, as a literal
	Doc        string
	Imports    [][]string
	Hash       string // literal
	Canonical  string // literal

	Name       string // the machine's name
	Type       string // Order
	New        string // NewOrder
	IDType     string
	IntID      bool
	IntStatus  bool
	RowDoc     string
	NewDoc     string
	MachineDoc string
	CreateDoc  string
	HasAfter   bool

	States         []stateView
	Finals         []string // constants
	TextAliases    bool     // a state has an alias that is text
	TextValues     bool     // rows hold other text than the names
	Groups         []groupView
	SeveralInitial bool
	InitialList    string
	InitialDefault string

	Fields []fieldView
	// Elements of the slices that hand a row to the engine.
	NewValues, RowValues string
	HasPointer           bool // the engine's nil becomes a pointer
	HasOptional          bool // a field or an arg may be nil

	Handles      []handleView
	FirstHandle  string // the type of the first, as an example
	HasTyped     bool   // a transition leads from a state to one other
	HasBranching bool   // a transition leads from a state to several

	Hooks       []hookView
	HookArgs    string // the types of their args
	HasHookArgs bool

	Transitions []transitionView

	// Expressions of the calls into the engine.
	CallID, NewID, NewState, NewFields string
}

type fieldView struct {
	Index     int
	Name      string
	Doc       string
	NewDoc    string
	Type      string
	RowType   string
	NewType   string
	Nullable  bool
	FromValue string // reads a nullable field of the engine's row
}

func newFileView(m *definitions.Machine, opts Options) (*fileView, error) {
	if err := Check(m); err != nil {
		return nil, err
	}
	v := &fileView{
		Package: opts.Package, Source: oneLine(opts.Source), SourceName: quote(m.Source),
		Imports: imports(m), Hash: quote(m.Hash()), Canonical: rawLiteral(string(m.Canonical())),
		Name: m.Name, Type: definitions.GoName(m.Name), IDType: goTypes[m.Table.ID.Type],
		IntID: m.Table.ID.Type == expr.Int, IntStatus: m.Table.Status.Type == expr.Int,
	}
	if v.Package == "" {
		v.Package = m.Package()
	}
	if v.Source == "" {
		v.Source = oneLine(m.Source)
	}
	v.New = "New" + v.Type
	v.addStates(m)
	v.addFields(m)
	v.addCalls(m)
	x := newIndex(m)
	for i := range m.Transitions {
		t := newTransitionView(v, m, x, &m.Transitions[i])
		v.Transitions = append(v.Transitions, t)
		v.HasAfter = v.HasAfter || m.Transitions[i].After != ""
		v.HasOptional = v.HasOptional || t.hasOptional
	}
	v.addHandles(m, x)
	v.addHooks(m)
	v.addDocs(m)
	return v, nil
}

func (v *fileView) addFields(m *definitions.Machine) {
	var row, given []string
	for i, f := range m.Fields {
		fv := fieldView{Index: i, Name: definitions.GoName(f.Name), Type: goTypes[f.Type], Nullable: f.Nullable}
		fv.RowType, fv.NewType = fv.Type, fv.Type
		if f.Nullable {
			fv.RowType, fv.FromValue = "*"+fv.Type, fmt.Sprintf("fsmPointer[%s](e.Values[%d])", fv.Type, i)
		}
		optional := f.Nullable || f.Default != nil
		if optional {
			fv.NewType = "*" + fv.Type
		}
		doc := docLines(f.Doc)
		fv.Doc = optionalComment(doc)
		fv.NewDoc = optionalComment(paragraphs(doc, unsetMeans(f)))
		row = append(row, value("o."+fv.Name, f.Nullable))
		given = append(given, value("n."+fv.Name, optional))
		v.HasPointer, v.HasOptional = v.HasPointer || f.Nullable, v.HasOptional || optional
		v.Fields = append(v.Fields, fv)
	}
	v.RowValues, v.NewValues = elements(row), elements(given)
}

// unsetMeans documents a field that a creation may leave nil.
func unsetMeans(f definitions.Field) []string {
	switch {
	case f.Default != nil && f.Default.Now:
		return []string{"nil means the default, the time of the call."}
	case f.Default != nil && f.Type == expr.String:
		return []string{"nil means the default, " + quote(f.Default.Text) + "."}
	case f.Default != nil:
		return []string{"nil means the default, " + sentence(oneLine(f.Default.Text))}
	case f.Nullable:
		return []string{"nil means NULL."}
	}
	return nil
}

func (v *fileView) addCalls(m *definitions.Machine) {
	v.CallID, v.NewID = "id", "n.ID"
	if v.IntID {
		v.CallID, v.NewID = "strconv.FormatInt(id, 10)", "strconv.FormatInt(n.ID, 10)"
	}
	v.NewState, v.NewFields = `""`, "nil"
	if v.SeveralInitial {
		v.NewState = "string(n.Status)"
	}
	if len(m.Fields) > 0 {
		v.NewFields = "n.values()"
	}
}

// value is the expression that hands a field of a generated struct to the engine.
func value(expression string, pointer bool) string {
	if pointer {
		return "fsmOrNil(" + expression + ")"
	}
	return expression
}

// fewElements is how many elements of a slice stand on one line.
const fewElements = 4

// elements writes the elements of a slice literal.
func elements(list []string) string {
	if len(list) <= fewElements {
		return strings.Join(list, ", ")
	}
	return "\n" + strings.Join(list, ",\n") + ",\n"
}

// optionalComment is comment, or nothing where there are no lines.
func optionalComment(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return comment(lines...)
}

// rawLiteral renders the canonical form as a raw string literal. It is JSON, so a
// backquote can only stand inside a string, where it may be written as an escape;
// nothing else in it needs one.
func rawLiteral(canonical string) string {
	return "`" + strings.ReplaceAll(canonical, "`", `\u0060`) + "`"
}

func (v *fileView) addDocs(m *definitions.Machine) {
	table := quote(m.Table.Name)
	v.Doc = packageDoc(v, m)
	v.RowDoc = comment(paragraphs([]string{fmt.Sprintf("%s is a row of the table %s as the engine reads it.", v.Type, table)}, docLines(m.Doc))...)
	initial := "in state " + m.Initial[0]
	if v.SeveralInitial {
		initial = "in state " + list(m.Initial, "or")
	}
	v.NewDoc = comment(fmt.Sprintf("%s is a row to create %s.", v.New, initial))
	v.MachineDoc = machineDoc(m)
	v.CreateDoc = comment(append([]string{"Create inserts a row " + initial + ", at version 1.", ""},
		wrap("A row that is already there with the same values is AlreadyReached. Errors: [engine.ErrMismatch] where it has others; "+
			"and those of every call, see [Machine].", docWidth)...)...)
}
