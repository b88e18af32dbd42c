package codegen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
)

// handleView is the type of the rows in one state.
type handleView struct {
	Type  string
	Doc   string
	Moves []handleMove
}

// handleMove is a transition that leaves the state.
type handleMove struct {
	Handle   string
	Method   string
	Const    string // of the transition
	Doc      string
	ArgsType string
	Returns  string
	Target   string // constant of the only target; empty where there are several
}

// handle is the name of the handle of a state.
func (v *fileView) handle(state string) string { return v.Type + definitions.GoSuffix(state) }

func (v *fileView) addHandles(m *definitions.Machine, x *index) {
	v.Handles = make([]handleView, len(m.States))
	for i, s := range m.States {
		h := handleView{Type: v.handle(s.Name)}
		h.Doc = comment(wrap(fmt.Sprintf("%s is a row in state %s.", h.Type, s.Name), docWidth)...)
		v.Handles[i] = h
	}
	for j := range m.Transitions {
		for from, to := range m.Transitions[j].Targets() {
			h := &v.Handles[x.states[from]]
			h.Moves = append(h.Moves, v.handleMove(h.Type, from, j, to))
		}
	}
	v.FirstHandle = "[" + v.Handles[0].Type + "], …"
}

// handleMove describes transition j of a state, whose view is there already.
func (v *fileView) handleMove(handle, state string, j int, targets []string) handleMove {
	t := &v.Transitions[j]
	mv := handleMove{Handle: handle, Method: t.Method, Const: t.Const, ArgsType: t.ArgsType, Returns: "Handle"}
	if len(targets) == 1 {
		mv.Returns, mv.Target = v.handle(targets[0]), stateConst(targets[0])
		v.HasTyped = true
	} else {
		v.HasBranching = true
	}
	to := list(targets, "or")
	if len(targets) > manyNames {
		to = few(targets)
	}
	doc := fmt.Sprintf("%s is [Machine.%s] at the version of the handle: %s → %s.", mv.Method, mv.Method, state, to)
	mv.Doc = comment(wrap(doc, docWidth)...)
	return mv
}

// hookView is one method of Hooks.
type hookView struct {
	Method string
	Doc    string
	Quoted string
	Field  string // of engine.Hook
	Effect bool
}

func (v *fileView) addHooks(m *definitions.Machine) {
	uses := map[string][]string{} // transitions by hook
	kinds := map[string]string{}
	var names, args []string
	for i := range m.Transitions {
		t := &m.Transitions[i]
		for _, hook := range [...][2]string{{t.Guard, "Guard"}, {t.Effect, "Effect"}, {t.After, "After"}} {
			name, kind := hook[0], hook[1]
			if name == "" {
				continue
			}
			if uses[name] == nil {
				names = append(names, name)
			}
			kinds[name], uses[name] = kind, append(uses[name], t.Name)
		}
		if tv := &v.Transitions[i]; tv.Hooked && len(tv.Args) > 0 {
			args, v.HasHookArgs = append(args, tv.ArgsType), true
			v.HasPointer = v.HasPointer || tv.hasOptional
		}
	}
	slices.Sort(names)
	for _, name := range names {
		h := hookView{Method: definitions.GoName(name), Quoted: quote(name), Field: kinds[name], Effect: kinds[name] == "Effect"}
		h.Doc = comment(wrap(h.Method+" "+hookText[h.Field]+list(uses[name], "and")+hookMore[h.Field], docWidth)...)
		v.Hooks = append(v.Hooks, h)
	}
	v.HookArgs = "nil where it has none"
	if len(args) > 0 {
		v.HookArgs = "a " + strings.Join(args, ", a ") + "; nil where it has none"
	}
}

var (
	hookText = map[string]string{"Guard": "guards ", "Effect": "takes effect with ", "After": "runs after "}
	hookMore = map[string]string{
		"Guard":  ": it reads, and its error refuses the transition.",
		"Effect": ": it runs in the same transaction, and its error undoes the transition.",
		"After":  ": once COMMIT has succeeded, at most once; its error fails nothing.",
	}
)
