package definitions

import (
	"slices"
	"strings"
)

// Identifiers of every generated package, and methods of every generated machine.
var (
	packageNames = []string{
		"Definition", "DefinitionHash", "FSM", "Group", "Handle", "HookEvent", "Hooks", "Machine", "New", "ParseState",
		"Result", "State", "States", "Transition", "Transitions",
	}
	machineMethods = []string{"Can", "Create", "Get", "In", "Journal", "Load"}
	handleMethods  = []string{"Result"}
	// vetMethods have a signature of their own in the standard library; go vet
	// refuses every other.
	vetMethods = []string{
		"GobDecode", "GobEncode", "MarshalJSON", "MarshalXML", "ReadByte", "ReadFrom", "ReadRune",
		"UnmarshalJSON", "UnmarshalXML", "UnreadByte", "UnreadRune", "WriteByte", "WriteTo",
	}
	rowFields = map[string]string{"ID": "id", "Status": "status", "Version": "version"}
)

// identifiers are the names a generated package declares, each with what it is
// made for.
type identifiers struct {
	l     *loader
	owner map[string]string
}

// add declares identifier for what, written at a place. The first owner keeps it.
func (ids *identifiers) add(identifier, name, what string, at pos) {
	other, taken := ids.owner[identifier]
	if !taken {
		ids.owner[identifier] = what
		return
	}
	rule := ruleNameCollision
	if strings.HasPrefix(other, "the generated") {
		rule = ruleReservedName
	}
	ids.l.report(at, finding{rule: rule, name: name}, "%s would be %s in Go, and so is %s", what, identifier, other)
}

// checkGenerated holds the names of the definition apart from those of generated
// code, and from each other where one package declares both.
func (l *loader) checkGenerated(root *object) {
	ids := &identifiers{l: l, owner: map[string]string{}}
	for _, name := range packageNames {
		ids.owner[name] = "the generated " + name
	}
	machine := l.checkMachineIdentifiers(root, ids)
	for i := range l.m.States {
		name := l.m.States[i].Name
		ids.declare("State"+GoSuffix(name), name, "the state "+quoted(name), l.stateAt[name])
	}
	for _, d := range l.drafts {
		l.checkTransitionName(d)
		ids.declare("Transition"+GoSuffix(d.Name), d.Name, "the transition "+quoted(d.Name), d.at)
		ids.declare("Can"+GoSuffix(d.Name), d.Name, "the check of "+quoted(d.Name), d.at)
		if len(d.Args) > 0 {
			ids.add(GoName(d.Name)+"Args", d.Name, "the args of "+quoted(d.Name), d.at)
		}
	}
	for i := range l.m.States {
		name := l.m.States[i].Name
		if machine != "" {
			ids.declare(machine+GoSuffix(name), name, "the handle of "+quoted(name), l.stateAt[name])
		}
	}
	l.checkGroupIdentifiers(root, ids)
	l.checkRowFields()
	l.checkHooks()
}

// declare is add for names that are already known to differ among their kind, or
// reported.
func (ids *identifiers) declare(identifier, name, what string, at pos) {
	if other, taken := ids.owner[identifier]; taken && sameKind(other, what) {
		return
	}
	ids.add(identifier, name, what, at)
}

func sameKind(a, b string) bool {
	return a[:strings.IndexByte(a, '"')+1] == b[:strings.IndexByte(b, '"')+1]
}

func quoted(name string) string { return `"` + name + `"` }

func (l *loader) checkMachineIdentifiers(root *object, ids *identifiers) string {
	n := root.get("machine")
	if n == nil || !machineName.MatchString(l.m.Name) {
		return ""
	}
	name := GoName(l.m.Name)
	if slices.Contains(packageNames, name) {
		ids.add(name, l.m.Name, "the machine "+quoted(l.m.Name), n.at)
		return ""
	}
	ids.add(name, l.m.Name, "the machine "+quoted(l.m.Name), n.at)
	ids.add("New"+name, l.m.Name, "the constructor of "+quoted(l.m.Name), n.at)
	return name
}

func (l *loader) checkGroupIdentifiers(root *object, ids *identifiers) {
	for _, p := range l.members(root.quiet(), "groups") {
		ids.declare("Group"+GoSuffix(p.key.value), p.key.value, "the group "+quoted(p.key.value), p.key.at)
	}
}

// quiet is root with what is not a mapping left out: it was reported when it was
// read.
func (o *object) quiet() *object {
	kept := &object{node: o.node, what: o.what, values: map[string]pair{}}
	for key, p := range o.values {
		if p.value.kind == mapping {
			kept.values[key] = p
		}
	}
	return kept
}

// checkTransitionName holds a transition's method apart from those every machine
// and every handle has.
func (l *loader) checkTransitionName(d *draft) {
	method := GoName(d.Name)
	what := ""
	switch {
	case slices.Contains(machineMethods, method):
		what = "the generated machine has a method %s of its own"
	case slices.Contains(handleMethods, method):
		what = "generated handles have a method %s of their own"
	case slices.Contains(vetMethods, method):
		what = "Go's standard library fixes the signature of a method %s, and go vet refuses any other"
	default:
		return
	}
	l.report(d.at, finding{rule: ruleReservedName, name: d.Name}, "the transition %q collides: "+what, d.Name, method)
}

// checkRowFields holds fields apart from what every row has.
func (l *loader) checkRowFields() {
	for i := range l.m.Fields {
		name := l.m.Fields[i].Name
		own, taken := rowFields[GoSuffix(name)]
		if taken && l.ownColumn(l.m.Fields[i].Column) == "" {
			l.report(l.fieldAt[name], finding{rule: ruleReservedName, name: name}, "the field %q collides with %s, which every row has; give it another name, and {column: %s}", name, own, l.m.Fields[i].Column)
		}
	}
}

// checkHooks holds the Go methods of hooks apart: one hook serves one purpose.
func (l *loader) checkHooks() {
	type use struct{ kind, name string }
	uses := map[string]use{}
	for _, d := range l.drafts {
		for _, h := range []use{{"guard", d.Guard}, {"effect", d.Effect}, {"after", d.After}} {
			if h.name == "" {
				continue
			}
			method := GoName(h.name)
			if slices.Contains(vetMethods, method) {
				l.report(d.object.get(h.kind).at, finding{rule: ruleReservedName, name: h.name},
					"the %s %q would be the method %s, whose signature Go's standard library fixes, and go vet refuses any other", h.kind, h.name, method)
				continue
			}
			first, taken := uses[method]
			if taken && first != h {
				l.report(d.object.get(h.kind).at, finding{rule: ruleNameCollision, name: h.name},
					"the %s %q and the %s %q would both be the method %s", first.kind, first.name, h.kind, h.name, method)
				continue
			}
			uses[method] = h
		}
	}
}
