package definitions

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// env is what the expressions of a transition may read.
func (l *loader) env(d *draft) expr.Env {
	if l.fieldEnv == nil {
		vars := make([]expr.Var, len(l.m.Fields))
		for i := range l.m.Fields {
			vars[i] = l.m.Fields[i].variable()
		}
		env := expr.NewEnv(vars)
		l.fieldEnv = &env
	}
	if d.env == nil {
		vars := make([]expr.Var, len(d.Args))
		for i, a := range d.Args {
			vars[i] = expr.Var{Name: a.Name, Type: a.Type, Nullable: a.Optional, Scale: a.Scale}
		}
		env := l.fieldEnv.WithArgs(vars)
		d.env = &env
	}
	return *d.env
}

func (f *Field) variable() expr.Var {
	return expr.Var{Name: f.Name, Type: f.Type, Nullable: f.Nullable, Scale: f.Scale}
}

// condition reads a `when`. One that cannot be read is unreadable, and not none.
func (l *loader) condition(n *node, d *draft) *expr.Expr {
	text, ok := l.text(n, "when")
	if !ok {
		return &expr.Expr{}
	}
	if strings.TrimSpace(text) == "" {
		l.report(n.at, finding{rule: ruleEmptyText}, "when is empty")
		return &expr.Expr{}
	}
	e, problems := expr.ParseCondition(strings.TrimSpace(text), l.env(d))
	l.reportExpression(n, d, problems)
	if e == nil {
		return &expr.Expr{}
	}
	return e
}

// unreadable reports whether nothing is known of a condition that is there.
func unreadable(e *expr.Expr) bool { return e != nil && e.Root == nil }

// assignment reads the right-hand side of a `set`. Without a field, whose name
// was wrong, only the shape of the value is looked at.
func (l *loader) assignment(n *node, d *draft, f *Field) *expr.Expr {
	if n.kind == scalar && n.value == "null" {
		n = &node{at: n.at, value: "nil"}
	}
	if n.isNull() {
		l.report(n.at, finding{rule: ruleNull, name: n.value}, "an expression is missing here; for NULL write null")
		return nil
	}
	text, ok := l.text(n, "a set value")
	if !ok || f == nil || f.Type == expr.Invalid {
		return nil
	}
	if strings.TrimSpace(text) == "" {
		l.report(n.at, finding{rule: ruleEmptyText}, "the expression is empty; an empty text is written '\"\"'")
		return nil
	}
	e, problems := expr.ParseAssignment(strings.TrimSpace(text), l.env(d), f.variable())
	if f.Type == expr.String && len(problems) == 1 && bareText.MatchString(text) && problems[0].Nearest == "" {
		problems[0].Message += "; a text has quotes of its own here: '" + strconv.Quote(text) + "'"
	}
	l.reportExpression(n, d, problems)
	return e
}

// bareText matches what is a text rather than an expression, where a text is due.
var bareText = regexp.MustCompile(`^[\pL\pN_][\pL\pN_ -]*$`)

func (l *loader) reportExpression(n *node, d *draft, problems []expr.Problem) {
	for _, p := range problems {
		lost := l.lostFields
		if strings.HasPrefix(p.Name, "args.") {
			lost = d.lostArgs
		}
		if lost && p.Rule == expr.RuleUnknownName {
			continue
		}
		if p.Unfinished {
			if text := l.src.commented(n); text != "" {
				p.Message += "; YAML ends a text at \" #\": put all of it in quotes: " + strconv.Quote(shortened(text))
			}
		}
		at := l.src.locate(n, p.Offset)
		l.add(Problem{
			File: l.file, Line: at.line, Column: at.col,
			Rule: p.Rule, Name: p.Name, Nearest: p.Nearest, Message: p.Message, Warning: p.Warning,
		})
	}
}
