package expr

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
)

// ParseCondition reads the condition of a move or a branch: an expression of type
// bool. The problems are findings, or warnings beside a usable expression.
func ParseCondition(src string, env Env) (*Expr, []Problem) {
	return parse(src, env, func(c *checker, root *Node) { c.condition(root) })
}

// ParseAssignment reads the right-hand side of a `set` for target: an expression of
// the target's type, and nil only if the target takes it.
func ParseAssignment(src string, env Env, target Var) (*Expr, []Problem) {
	return parse(src, env, func(c *checker, root *Node) { c.assignment(root, target) })
}

// parse reads src and types it with check.
func parse(src string, env Env, check func(*checker, *Node)) (*Expr, []Problem) {
	var problems problemList
	if scan(src, problems.add); len(problems) > 0 {
		return nil, problems.sorted()
	}
	tree, err := parser.Parse(src)
	if err != nil {
		problems.add(syntaxProblem(src, err))
		return nil, problems
	}
	r := reducer{src: []rune(src), env: env, problems: &problems}
	root := r.reduce(tree.Node, 1)
	if len(problems) > 0 || root == nil {
		return nil, problems.sorted()
	}
	c := newChecker(&problems)
	check(c, root)
	if problems.fatal() || root.Type == Invalid {
		return nil, problems.sorted()
	}
	return &Expr{Source: src, Root: root}, problems.sorted()
}

// problemList collects problems; the same one is listed once.
type problemList []Problem

func (l *problemList) add(p Problem) {
	if !slices.Contains(*l, p) {
		*l = append(*l, p)
	}
}

func (l problemList) fatal() bool {
	return slices.ContainsFunc(l, func(p Problem) bool { return !p.Warning })
}

func (l problemList) sorted() []Problem {
	slices.SortStableFunc(l, func(a, b Problem) int { return a.Offset - b.Offset })
	return l
}

// Forms of the parser's messages.
var (
	tokenName = regexp.MustCompile(`\b(?:Identifier|Number|String|Bytes|Operator|Bracket)\((.*)\)`)
	badNumber = regexp.MustCompile(`^invalid (integer|hex|binary|octal|float) literal`)
)

// syntaxProblem puts the parser's first error into our words.
func syntaxProblem(src string, err error) Problem {
	p := Problem{Rule: RuleSyntax, Message: err.Error()}
	var at *file.Error
	if errors.As(err, &at) {
		p.Offset, p.Message = at.From, at.Message
	}
	switch {
	case strings.TrimSpace(src) == "":
		p.Offset, p.Message = 0, "the expression is empty"
	case badNumber.MatchString(p.Message):
		return numberProblem([]rune(src), p)
	case p.Message == "unexpected token EOF":
		p.Offset, p.Message, p.Unfinished = len([]rune(strings.TrimRight(src, " \t\r\n"))), "the expression ends too early", true
	case p.Message == "literal not terminated":
		p.Unfinished = true
	case loudOperator.MatchString(withoutStrings(src)):
		at := loudOperator.FindStringIndex(withoutStrings(src))
		p.Name = src[at[0]:at[1]]
		p.Offset, p.Nearest = utf8.RuneCountInString(src[:at[0]]), strings.ToLower(p.Name)
		p.Message = strconv.Quote(p.Name) + " is not an operator"
	case strings.Contains(p.Message, "coalesce expressions"):
		p.Message = "?? needs parentheses beside another operator: (a ?? b) + 1"
	default:
		p.Message = tokenName.ReplaceAllString(p.Message, "$1")
	}
	p.Offset = min(p.Offset, len([]rune(src)))
	return p
}

// loudOperator matches an operator that is a word, with capitals.
var loudOperator = regexp.MustCompile(`\b(A[Nn][Dd]|aN[Dd]|anD|O[Rr]|oR|N[Oo][Tt]|nO[Tt]|noT|I[Nn]|iN)\b`)

var stringLiteral = regexp.MustCompile("'(?:\\\\.|[^'\\\\])*'|\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`")

// withoutStrings blanks the string literals of src, byte for byte.
func withoutStrings(src string) string {
	return stringLiteral.ReplaceAllStringFunc(src, func(s string) string { return strings.Repeat(" ", len(s)) })
}

// numberProblem names the literal, which the parser's error does not: that points to
// the token behind it, or at the last rune if there is none.
func numberProblem(src []rune, p Problem) Problem {
	end := min(p.Offset, len(src))
	if end == len(src)-1 && isNumeral(src[end]) {
		end++
	}
	for end > 0 && !isNumeral(src[end-1]) {
		end--
	}
	start := end
	for start > 0 && isNumeral(src[start-1]) {
		start--
	}
	text := string(src[start:end])
	p.Rule, p.Offset, p.Name, p.Message = RuleLiteral, start, text, text+" is not a number that an int or a float can hold"
	return p
}

func isNumeral(r rune) bool {
	return r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// String returns the operation as it is written.
func (op Op) String() string {
	if int(op) < len(opNames) {
		return opNames[op]
	}
	return "op " + strconv.Itoa(int(op))
}

var opNames = [...]string{
	OpLit: "literal", OpField: "field", OpArg: "arg", OpNow: "now()", OpNeg: "-", OpNot: "not",
	OpAdd: "+", OpSub: "-", OpMul: "*", OpDiv: "/", OpMod: "%",
	OpEq: "==", OpNe: "!=", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">=",
	OpAnd: "and", OpOr: "or", OpIn: "in", OpNotIn: "not in", OpCoalesce: "??", OpCond: "?:",
	OpIsNil: "== nil", OpNotNil: "!= nil",
}
