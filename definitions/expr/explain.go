package expr

import (
	"strings"
	"time"
)

// Explain says in one line what the expression saw:
//
//	amount == args.amount: amount is 9900, args.amount is 100
//
// Every field and arg it reads is named with its value, in the order written, each
// once; a secret arg without its value. If computing it is rejected, the reason
// follows.
func (e *Expr) Explain(in Input) string {
	text := strings.Join(strings.Fields(e.Source), " ")
	if values := readings(e.Root, &in); len(values) > 0 {
		text += ": " + strings.Join(values, ", ")
	}
	if _, rej := e.eval(in); rej != nil {
		text += "; " + rej.Operation + ": " + rej.Reason
	}
	return text
}

// readings lists what n reads, with values.
func readings(n *Node, in *Input) []string {
	var out []string
	seen := map[string]bool{}
	n.Walk(func(n *Node) {
		name := source(n)
		if n.Op == OpNow {
			name = "now()"
		}
		if name == "" || seen[name] {
			return
		}
		seen[name] = true
		out = append(out, name+" is "+reading(n, in))
	})
	return out
}

// reading writes the value of a field, an arg or now().
func reading(n *Node, in *Input) string {
	var v any
	switch {
	case n.Op == OpNow:
		return FormatValue(Time, in.Now.Truncate(time.Microsecond))
	case n.Op == OpArg && in.Secret != nil && in.Secret(n.Name):
		return "secret"
	case n.Op == OpField && in.Field != nil:
		v = in.Field(n.Name)
	case n.Op == OpArg && in.Arg != nil:
		v = in.Arg(n.Name)
	}
	if canonical, err := Coerce(n.Type, -1, v); err == nil {
		v = canonical
	}
	return FormatValue(n.Type, v)
}
