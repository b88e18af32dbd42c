package definitions

import (
	"slices"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Machine is one validated definition: a named state machine over one table.
//
// A Machine comes from [Load] or [Parse] only, and is immutable afterwards; it is
// safe for concurrent use. States keep the order of the file. Everything else has
// an order of its own that does not depend on the order of keys in the file:
// fields, args and groups are sorted by name, transitions run along the life
// cycle (first source in state order, then first target, then name).
type Machine struct {
	// Name is the machine's name: [a-z][a-z0-9_]*.
	Name string
	Doc  string
	// Source is the base name of the file the definition was read from.
	Source  string
	Table   Table
	Fields  []Field
	Initial []string // state names; the first is the default of Create
	Create  Create
	States  []State
	Groups  []Group
	// Transitions in life-cycle order.
	Transitions []Transition
	// Unique lists the business unique keys, each a list of field names.
	Unique  [][]string
	Journal Journal
	// Warnings are the findings that did not prevent loading.
	Warnings Problems
}

// Table names the user's table and its three columns the engine owns.
type Table struct {
	// Name may be qualified by a schema ("sales.orders").
	Name    string
	ID      Column
	Status  Column
	Version string // column name; the column is an integer
}

// Column is an id or status column: [expr.String] or [expr.Int].
type Column struct {
	Name string
	Type expr.Type
}

// Field is a business column that transitions read or write.
type Field struct {
	Name     string
	Column   string // Name unless the definition says otherwise
	Doc      string
	Type     expr.Type
	Scale    int // decimals: digits after the point, 0 to 6; -1 where not named
	Nullable bool
	Default  *Default
}

// Default is what Create writes where the caller gives no value.
type Default struct {
	Text string // as written
	Now  bool   // now(): the time of the call
	// Value is Text read as the field's type; nil for now().
	Value any
}

// Create holds what creation itself emits.
type Create struct {
	Emit string // topic of the journal row, or empty
}

// State is one value of the status column.
type State struct {
	Name  string
	Doc   string
	Final bool
	// Value is what rows hold: a string, or an int64 where the status column is int.
	Value any
	// Aliases are older values that count as this state; of Value's type.
	Aliases []any
	Timeout *Timeout
}

// Timeout says which transition is due when a row has stayed in a state.
type Timeout struct {
	After time.Duration
	Fire  string
}

// Group is a named set of states, in state order.
type Group struct {
	Name   string
	States []string
}

// Journal says where, and whether, applied transitions are recorded.
type Journal struct {
	Enabled bool
	Table   string // "fsm_journal", in the business table's schema, unless the definition names its own
}

// Duplicates says what a repeated call means in a state the row has already reached.
type Duplicates string

// The values of `duplicates:`.
const (
	DuplicatesAccept Duplicates = "accept" // a reached target is success, whoever reached it
	DuplicatesOwn    Duplicates = "own"    // success only if this transition reached it
	DuplicatesRefuse Duplicates = "refuse" // only a seen key is a duplicate
)

// Key says where the idempotency key of a call comes from.
type Key struct {
	Required bool     // the caller must bring one
	Args     []string // names of the args it is derived from, in the order written
}

// Derived reports whether the key is built from arguments.
func (k Key) Derived() bool { return len(k.Args) > 0 }

// Declared reports whether the transition says `key:` at all.
func (k Key) Declared() bool { return k.Required || k.Derived() }

// Transition is a named operation: one or more moves.
type Transition struct {
	Name string
	Doc  string
	Args []Arg
	// When and Set apply to every move, before the move's own.
	When       *expr.Expr
	Set        []Assignment
	Moves      []Move // specific ones in the order written, those from "*" last
	Emit       string
	Duplicates Duplicates // never empty: accept where not said
	// DuplicatesSaid tells whether the definition said `duplicates:` itself.
	DuplicatesSaid bool
	Key            Key
	Identity       []string // arg names
	Guard          string
	Effect         string
	After          string
}

// Arg is one argument of a transition.
type Arg struct {
	Name     string
	Doc      string
	Type     expr.Type
	Scale    int // as in Field
	Optional bool
	Secret   bool // kept out of the journal
}

// Assignment writes one field.
type Assignment struct {
	Field string
	Value *expr.Expr
}

// Move is one edge group: sources, condition, column updates, targets.
type Move struct {
	From    []string // expanded state names, in state order
	Any     bool     // written as "*"
	When    *expr.Expr
	Set     []Assignment
	Targets []Target // one without condition, or branches in order
}

// Target is one branch of a move.
type Target struct {
	State string
	When  *expr.Expr // nil: unconditional
}

// State returns the state called name.
func (m *Machine) State(name string) (*State, bool) {
	i := slices.IndexFunc(m.States, func(s State) bool { return s.Name == name })
	if i < 0 {
		return nil, false
	}
	return &m.States[i], true
}

// Field returns the field called name.
func (m *Machine) Field(name string) (*Field, bool) {
	i := slices.IndexFunc(m.Fields, func(f Field) bool { return f.Name == name })
	if i < 0 {
		return nil, false
	}
	return &m.Fields[i], true
}

// Transition returns the transition called name.
func (m *Machine) Transition(name string) (*Transition, bool) {
	i := slices.IndexFunc(m.Transitions, func(t Transition) bool { return t.Name == name })
	if i < 0 {
		return nil, false
	}
	return &m.Transitions[i], true
}

// Arg returns the argument called name.
func (t *Transition) Arg(name string) (*Arg, bool) {
	i := slices.IndexFunc(t.Args, func(a Arg) bool { return a.Name == name })
	if i < 0 {
		return nil, false
	}
	return &t.Args[i], true
}

// HasCode reports whether the transition names Go code.
func (t *Transition) HasCode() bool { return t.Guard != "" || t.Effect != "" || t.After != "" }
