package codegen

import (
	"fmt"
	"go/token"
	"regexp"

	"github.com/fsmgen/fsmgen/definitions"
)

// packageForm is what a package name of ours looks like: what golint calls
// idiomatic, lower case without underscores.
var packageForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// unusablePackages compile, but cannot be imported, or are ignored by the go tool.
var unusablePackages = map[string]string{
	"main":          "a package main cannot be imported",
	"init":          "a package init cannot be imported",
	"documentation": "the go tool ignores files of a package documentation",
}

// CheckPackage says why name cannot be the name of a new package, or nil.
func CheckPackage(name string) error {
	switch why, bad := unusablePackages[name]; {
	case bad:
		return fmt.Errorf("%q cannot be the package: %s", name, why)
	case token.IsKeyword(name):
		return fmt.Errorf("%q cannot be the package: it is a keyword of Go", name)
	case !packageForm.MatchString(name):
		return fmt.Errorf("%q cannot be the package: a package name is lower-case letters and digits, beginning with a letter", name)
	}
	return nil
}

// scope collects the identifiers of one block of generated code and notices when
// two things would have the same.
type scope struct {
	what  map[string]string
	found *[]collision
}

type collision struct{ name, first, second string }

func (s scope) declare(goName, what string) {
	if first, taken := s.what[goName]; taken {
		*s.found = append(*s.found, collision{goName, first, what})
		return
	}
	s.what[goName] = what
}

// fixedNames are the package-level identifiers that every generated package has.
var fixedNames = []string{
	"State", "States", "ParseState", "Transition", "Transitions", "Group", "Result", "Handle",
	"Machine", "New", "Definition", "DefinitionHash", "FSM", "Hooks", "HookEvent",
}

// fixedMethods are the methods of Machine that are no transitions.
var fixedMethods = []string{"Create", "Get", "Load", "Journal", "In", "Can", "Result"}

// collisions are the names that would be declared twice in the generated package.
// The loader refuses those that a definition alone can show; this is the net below.
func collisions(m *definitions.Machine) []collision {
	var found []collision
	pkg := scope{map[string]string{}, &found}
	for _, name := range fixedNames {
		pkg.declare(name, "the generated "+name)
	}
	machine := "machine " + m.Name
	typ := definitions.GoName(m.Name)
	pkg.declare(typ, machine)
	pkg.declare("New"+typ, "the generated New"+typ)
	pkg.declare("Test"+typ+"FSM", "the generated test")
	for _, s := range m.States {
		pkg.declare("State"+definitions.GoSuffix(s.Name), "state "+s.Name)
		pkg.declare(typ+definitions.GoSuffix(s.Name), "the handle of state "+s.Name)
	}
	for _, g := range m.Groups {
		pkg.declare("Group"+definitions.GoSuffix(g.Name), "group "+g.Name)
	}
	methods := scope{map[string]string{}, &found}
	for _, name := range fixedMethods {
		methods.declare(name, "the generated method "+name)
	}
	for i := range m.Transitions {
		t := &m.Transitions[i]
		what := "transition " + t.Name
		methods.declare(definitions.GoName(t.Name), what)
		pkg.declare("Transition"+definitions.GoSuffix(t.Name), what)
		pkg.declare("Can"+definitions.GoSuffix(t.Name), "the generated Can of "+what)
		args := scope{map[string]string{}, &found}
		if len(t.Args) > 0 {
			pkg.declare(definitions.GoName(t.Name)+"Args", "the args of "+what)
		}
		for _, a := range t.Args {
			args.declare(definitions.GoName(a.Name), "arg "+a.Name+" of "+what)
		}
	}
	fields := scope{map[string]string{"ID": "the id", "Status": "the status", "Version": "the version"}, &found}
	for _, f := range m.Fields {
		fields.declare(definitions.GoName(f.Name), "field "+f.Name)
	}
	return found
}

// maxMoves bounds the methods of handles, one for each transition that leaves a state: with
// more nobody would want to compile, or read, what comes out.
const maxMoves = 50_000

// handleMoves counts the methods that the handles of a machine would have.
func handleMoves(m *definitions.Machine) int {
	n, x := 0, newIndex(m)
	for i := range m.Transitions {
		n += len(x.sources(&m.Transitions[i]))
	}
	return n
}

// Check returns what [Generate] would refuse, as [definitions.Problems], without
// generating: names that the generated package would declare twice, and a package that
// would be too large.
func Check(m *definitions.Machine) error {
	var problems definitions.Problems
	if n := handleMoves(m); n > maxMoves {
		problems = append(problems, problem(m, "too-many-edges", "", fmt.Sprintf(
			"the transitions leave states in %d ways, groups and \"*\" expanded, each a method in Go; at most %d are generated", n, maxMoves)))
	}
	for _, c := range collisions(m) {
		problems = append(problems, problem(m, "name-collision", c.name, fmt.Sprintf(
			"%s and %s would both be called %s in Go: rename one", c.first, c.second, c.name)))
	}
	if len(problems) > 0 {
		return problems
	}
	return nil
}

// problem is a finding of codegen. It concerns the definition as a whole: the
// model knows no lines.
func problem(m *definitions.Machine, rule, name, message string) definitions.Problem {
	return definitions.Problem{File: m.Source, Line: 1, Column: 1, Rule: rule, Name: name, Message: message}
}
