package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// A reducer turns the parser's tree into ours. It admits nodes by name; whatever it
// does not know is a finding, so a new release of the parser cannot widen the
// language.
type reducer struct {
	src      []rune
	env      Env
	problems *problemList
	nodes    int
}

// number is a numeric literal that has no type yet.
type number struct {
	text string // decimal, with a sign
	frac bool   // written with a point or an exponent
}

func (r *reducer) fail(pos int, rule, format string, args ...any) *Node {
	r.problems.add(Problem{Rule: rule, Offset: pos, Message: fmt.Sprintf(format, args...)})
	return nil
}

// reduce returns nil after a finding. The parser shares nodes between the parts of
// a chain such as 1 < x < 3, so the count of nodes also bounds the walk.
func (r *reducer) reduce(n ast.Node, depth int) *Node {
	if r.nodes++; r.nodes > maxNodes {
		return r.fail(0, RuleSize, "more than %d operands and operators", maxNodes)
	}
	if depth > maxDepth {
		return r.fail(0, RuleSize, "nested deeper than %d levels, of which each operator of a chain is one; parentheses make two chains of one, and a list stands behind in", maxDepth)
	}
	switch n := n.(type) {
	case *ast.NilNode:
		return &Node{Op: OpLit, Type: Nil, Nullable: true, Pos: n.Location().From}
	case *ast.BoolNode:
		return literal(n, Bool, n.Value)
	case *ast.StringNode:
		return r.stringLiteral(n)
	case *ast.IntegerNode:
		if !r.grouped(n) {
			return nil
		}
		return literal(n, Invalid, number{text: strconv.Itoa(n.Value)})
	case *ast.FloatNode:
		return r.floatLiteral(n)
	case *ast.IdentifierNode:
		return r.field(n)
	case *ast.MemberNode:
		return r.arg(n)
	case *ast.UnaryNode:
		return r.unary(n, depth)
	case *ast.BinaryNode:
		return r.binary(n, depth)
	case *ast.ConditionalNode:
		return r.conditional(n, depth)
	case *ast.BuiltinNode:
		return r.call(n.Location().From, n.Name, n.Arguments)
	case *ast.CallNode:
		if callee, ok := n.Callee.(*ast.IdentifierNode); ok {
			return r.call(n.Location().From, callee.Value, n.Arguments)
		}
	}
	return r.unsupported(n)
}

// unsupported names what the parser read and the language leaves out.
func (r *reducer) unsupported(n ast.Node) *Node {
	what := "this"
	switch n.(type) {
	case *ast.ArrayNode:
		what = "a list other than behind in"
	case *ast.BytesNode:
		what = "a literal of bytes"
	case *ast.CallNode:
		what = "a method"
	case *ast.SliceNode:
		what = "a slice"
	case *ast.SequenceNode, *ast.VariableDeclaratorNode:
		what = "a statement"
	case *ast.ChainNode, *ast.MemberNode:
		what = "a member of anything but args"
	case *ast.MapNode, *ast.PairNode, *ast.PredicateNode, *ast.PointerNode:
		what = "a map or a predicate"
	}
	if n == nil {
		return r.fail(0, RuleSyntax, "not an expression")
	}
	return r.fail(n.Location().From, RuleUnsupported, "%s is not part of the language", what)
}

func literal(n ast.Node, t Type, v any) *Node {
	return &Node{Op: OpLit, Type: t, Value: v, Pos: n.Location().From}
}

func (r *reducer) stringLiteral(n *ast.StringNode) *Node {
	pos := n.Location().From
	if err := checkString(n.Value); err != nil {
		return r.fail(pos, RuleLiteral, "a string literal that %v", err)
	}
	// The parser turns half a surrogate pair into U+FFFD without a word.
	if strings.ContainsRune(n.Value, utf8.RuneError) && !strings.ContainsRune(r.token(n), utf8.RuneError) {
		return r.fail(pos, RuleLiteral, "a string literal with half a surrogate pair")
	}
	return literal(n, String, n.Value)
}

// token returns a node's own text.
func (r *reducer) token(n ast.Node) string {
	loc := n.Location()
	if loc.From < 0 || loc.To > len(r.src) || loc.From > loc.To {
		return ""
	}
	return string(r.src[loc.From:loc.To])
}

// grouped holds the underscores of a number to where they group digits: the parser takes
// them anywhere.
func (r *reducer) grouped(n ast.Node) bool {
	text := r.token(n)
	if !looseUnderscore.MatchString(text) {
		return true
	}
	r.fail(n.Location().From, RuleLiteral, "%s is no number: _ stands between two digits", text)
	return false
}

var looseUnderscore = regexp.MustCompile(`(^|[^0-9A-Za-z])_|_([^0-9A-Za-z]|$)`)

// floatLiteral keeps the text: the parser's float64 has already lost digits that a
// decimal keeps.
func (r *reducer) floatLiteral(n *ast.FloatNode) *Node {
	if !r.grouped(n) {
		return nil
	}
	text := strings.ReplaceAll(r.token(n), "_", "")
	if strings.HasPrefix(text, ".") {
		text = "0" + text
	}
	return literal(n, Invalid, number{text: strings.TrimSuffix(text, "."), frac: true})
}

// field reads a bare name.
func (r *reducer) field(n *ast.IdentifierNode) *Node {
	pos, name := n.Location().From, n.Value
	if v, ok := r.env.field(name); ok {
		return &Node{Op: OpField, Name: name, Type: v.Type, Nullable: v.Nullable, Pos: pos}
	}
	p := Problem{Rule: RuleUnknownName, Offset: pos, Name: name, Message: fmt.Sprintf("there is no field %q", name)}
	switch name {
	case "id", "status", "version":
		p.Rule = RuleNotReadable
		p.Message = fmt.Sprintf("%s cannot be read in an expression; the machine itself decides by it", name)
	case "args":
		p.Rule, p.Message = RuleUnsupported, "args alone is not a value; name one as args.NAME"
	case "now", "duration":
		p.Message, p.Nearest = fmt.Sprintf("%s is a function", name), name+"()"
	default:
		p.Nearest = r.env.nearestField(name)
	}
	r.problems.add(p)
	return nil
}

// arg reads args.NAME, also written args['NAME'].
func (r *reducer) arg(n *ast.MemberNode) *Node {
	base, ok := n.Node.(*ast.IdentifierNode)
	prop, named := n.Property.(*ast.StringNode)
	if ok && named && base.Value != "args" {
		r.memberOf(base, prop.Value)
		return nil
	}
	if !ok || !named || n.Optional || n.Method {
		return r.unsupported(n)
	}
	pos, name := base.Location().From, prop.Value
	if v, ok := r.env.arg(name); ok {
		return &Node{Op: OpArg, Name: name, Type: v.Type, Nullable: v.Nullable, Pos: pos}
	}
	r.problems.add(Problem{
		Rule: RuleUnknownName, Offset: pos, Name: "args." + name, Nearest: r.env.nearestArg(name),
		Message: fmt.Sprintf("there is no arg %q", name),
	})
	return nil
}

// memberOf reports a member of what has none; args is meant where it has such an arg.
func (r *reducer) memberOf(base *ast.IdentifierNode, prop string) {
	p := Problem{Rule: RuleUnsupported, Offset: base.Location().From, Name: base.Value + "." + prop, Message: "a member of anything but args is not part of the language"}
	_, isField := r.env.field(prop)
	_, isArg := r.env.arg(prop)
	switch {
	case base.Value == "$env" && isField:
		p.Nearest = prop
	case isArg:
		p.Nearest = "args." + prop
	}
	r.problems.add(p)
}

// call admits the two functions of the language.
func (r *reducer) call(pos int, name string, args []ast.Node) *Node {
	switch name {
	case "now":
		if len(args) > 0 {
			return r.fail(pos, RuleType, "now() takes no argument")
		}
		return &Node{Op: OpNow, Type: Time, Pos: pos}
	case "duration":
		if len(args) == 1 {
			if s, ok := args[0].(*ast.StringNode); ok {
				return r.duration(pos, s.Value)
			}
		}
		return r.fail(pos, RuleType, "duration takes one string literal, such as duration('30m')")
	}
	r.problems.add(Problem{
		Rule: RuleUnknownFunc, Offset: pos, Name: name, Nearest: r.env.nearest(name, slices.Values([]string{"now", "duration"})),
		Message: fmt.Sprintf("there is no function %q", name),
	})
	return nil
}

// maxDuration is 100 years of 365.25 days.
const maxDuration = 876600 * time.Hour

func (r *reducer) duration(pos int, text string) *Node {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return r.fail(pos, RuleLiteral, "%q is not a duration such as 90s, 30m or 1h30m", cut(text))
	case d%time.Microsecond != 0:
		return r.fail(pos, RuleLiteral, "%s is not a whole number of microseconds", text)
	case d > maxDuration || d < -maxDuration:
		return r.fail(pos, RuleLiteral, "%s is longer than 100 years", text)
	}
	return &Node{Op: OpLit, Type: Duration, Value: d, Pos: pos}
}
