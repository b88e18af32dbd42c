// Package expr is the expression language of definitions: `when`, `set` and
// branch conditions.
//
// An expression is parsed, reduced to a small tree of [Node], typed, and from
// then on only evaluated: in Go by [Expr.Eval], and as SQL by the dialects.
// Both must give the same value or the same rejection for every row; what cannot
// be said alike everywhere is not in the language.
package expr

import (
	"slices"
	"strconv"
)

// Type is the type of a field, an argument or an expression.
type Type uint8

// The types of the definition format, and two that only expressions have.
const (
	Invalid  Type = iota
	String        // valid UTF-8 without NUL
	Int           // int64
	Float         // finite float64
	Bool          //
	Time          // UTC, whole microseconds
	Bytes         // []byte
	JSON          // json.RawMessage
	Decimal       // decimal.Decimal: |v| < 10^12, at most 6 digits after the point
	Duration      // literals and differences of times; not storable
	Nil           // the literal nil alone
)

var typeNames = [...]string{"invalid", "string", "int", "float", "bool", "time", "bytes", "json", "decimal", "duration", "nil"}

// String returns the type's name in the definition format.
func (t Type) String() string { return typeNames[t] }

// Types lists the type names of the definition format.
func Types() []string {
	return []string{"string", "int", "float", "bool", "time", "bytes", "json", "decimal"}
}

// ParseType returns the type called name in the definition format.
func ParseType(name string) (Type, bool) {
	for _, n := range Types() {
		if n == name {
			for i, t := range typeNames {
				if t == n {
					return Type(i), true
				}
			}
		}
	}
	return Invalid, false
}

// Var declares a name an expression may read or be assigned to.
type Var struct {
	Name     string
	Type     Type
	Nullable bool
	Scale    int // decimals: digits after the point, -1 where not named
}

// quoted returns the name as messages show it.
func (v Var) quoted() string { return strconv.Quote(v.Name) }

// Env is what an expression may read: the row's fields, and the call's arguments
// as args.NAME.
//
// Where many expressions read the same names, [NewEnv] and [Env.WithArgs] make one that
// finds a name at once, however many there are.
type Env struct {
	Fields []Var
	Args   []Var

	fields, args map[string]int // by name; nil: the lists are searched
	effort       *int           // what all who share it have spent on nearest names
}

// NewEnv returns an environment of fields that many expressions read.
func NewEnv(fields []Var) Env {
	return Env{Fields: fields, fields: byName(fields), effort: new(int)}
}

// WithArgs returns the environment with args in place of its own.
func (e Env) WithArgs(args []Var) Env {
	e.Args, e.args = args, byName(args)
	return e
}

func byName(vars []Var) map[string]int {
	index := make(map[string]int, len(vars))
	for i := len(vars) - 1; i >= 0; i-- { // of two the first, as where lists are searched
		index[vars[i].Name] = i
	}
	return index
}

func (e *Env) field(name string) (Var, bool) { return find(name, e.Fields, e.fields) }

func (e *Env) arg(name string) (Var, bool) { return find(name, e.Args, e.args) }

func find(name string, vars []Var, index map[string]int) (Var, bool) {
	i, ok := index[name]
	if index == nil {
		i = slices.IndexFunc(vars, func(v Var) bool { return v.Name == name })
		ok = i >= 0
	}
	if !ok {
		return Var{}, false
	}
	return vars[i], true
}

// Op is the operation of a [Node].
type Op uint8

// The operations. Operands of Node.Args are in the order written.
const (
	OpLit   Op = iota // Node.Value; nil for the literal nil
	OpField           // Node.Name
	OpArg             // Node.Name
	OpNow             // the time of the call
	OpNeg
	OpNot
	OpAdd
	OpSub
	OpMul
	OpDiv
	OpMod
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpAnd
	OpOr
	OpIn       // Args[0] in Args[1:]
	OpNotIn    //
	OpCoalesce // a ?? b
	OpCond     // Args[0] ? Args[1] : Args[2]
	OpIsNil    // a == nil
	OpNotNil   // a != nil
)

// Node is one typed operation of a checked expression.
type Node struct {
	Op       Op
	Type     Type
	Nullable bool
	Args     []*Node
	Name     string // OpField, OpArg
	Value    any    // OpLit: int64, float64, string, bool, decimal.Decimal, time.Duration or nil
	Pos      int    // offset in the source, in runes
	// Bounded marks a float field or arg that is an operand of float arithmetic, which
	// rejects it outside [FloatBound].
	Bounded bool

	lit value // OpLit: Value as the evaluator holds it
}

// Expr is a checked expression. It is immutable and safe for concurrent use.
type Expr struct {
	Source string // as written
	Root   *Node
}

// Problem is one finding about an expression's source. Message is a whole sentence
// but for Nearest, which it does not repeat.
type Problem struct {
	Rule    string // e.g. unknown-name, type-mismatch, expression-syntax
	Offset  int    // in runes, from the start of the source
	Name    string // the offending name, if any
	Nearest string // the nearest legal name, if any
	Message string
	Warning bool // legal, but probably not what was meant
	// Unfinished: the source ends within a literal or before an operand.
	Unfinished bool
}
