package expr

// The rule ids of the findings about expressions.
const (
	RuleSyntax        = "expression-syntax"      // not an expression
	RuleSize          = "expression-size"        // over a limit of length, nodes or nesting
	RuleUnsupported   = "expression-unsupported" // the parser knows it, the language does not
	RuleUnknownName   = "unknown-name"           // neither field nor arg
	RuleUnknownFunc   = "unknown-function"       //
	RuleNotReadable   = "not-readable"           // id, status and version
	RuleType          = "type-mismatch"          //
	RuleLiteral       = "literal-range"          // a literal its type cannot hold exactly
	RuleNil           = "nil-misuse"             // nil where it can have no effect, or only a useless one
	RuleNotNullable   = "not-nullable"           // nil could reach a column that takes none
	RuleDivisor       = "nested-division"        // a divisor that divides
	RuleFactors       = "too-many-factors"       // float arithmetic that could leave its range
	RuleNilComparison = "nil-comparison"         // warning: not true for nil, which may surprise
)

// Limits of one expression. Within them every database still runs every shape.
const (
	maxSource = 2048 // bytes; checked before the parser, whose recursion has no bound
	maxNodes  = 200
	maxDepth  = 40
)

// Reserved reports whether the language gives name a meaning of its own, so that a
// field or arg of that name could not be read.
func Reserved(name string) bool {
	switch name {
	case "args", "true", "false", "nil", "null", "now", "duration",
		"and", "or", "not", "in", "if", "else", "let",
		"contains", "matches", "startsWith", "endsWith":
		return true
	}
	return false
}
