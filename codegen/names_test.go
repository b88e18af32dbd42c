package codegen

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

func TestCheckPackage(t *testing.T) {
	for _, name := range []string{"order", "o2", "importfsm", "string", "engine"} {
		if err := CheckPackage(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "_", "Order", "order_flow", "order-flow", "2fa", "type", "main", "init", "documentation", "foo_test", "a.b", "a/b", "größe", "x\n"} {
		if err := CheckPackage(name); err == nil || !strings.Contains(err.Error(), "cannot be the package: ") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestCollisionsAreFindings goes past the loader, which refuses these itself: the
// net below must hold too.
func TestCollisionsAreFindings(t *testing.T) {
	machine := func(name string) *definitions.Machine {
		return &definitions.Machine{
			Name: name, Source: "x.yaml", Initial: []string{"a"},
			States: []definitions.State{{Name: "a", Value: "a"}},
		}
	}
	transition := func(name string, args ...string) definitions.Transition {
		t := definitions.Transition{Name: name}
		for _, a := range args {
			t.Args = append(t.Args, definitions.Arg{Name: a})
		}
		return t
	}
	tests := map[string]func() *definitions.Machine{
		"State":  func() *definitions.Machine { return machine("state") },
		"Group":  func() *definitions.Machine { return machine("group") },
		"New":    func() *definitions.Machine { return machine("new") },
		"StateA": func() *definitions.Machine { return machine("state_a") },
		"Create": func() *definitions.Machine {
			m := machine("x")
			m.Transitions = []definitions.Transition{transition("create")}
			return m
		},
		"Result": func() *definitions.Machine {
			m := machine("x")
			m.Transitions = []definitions.Transition{transition("result")}
			return m
		},
		"PayNow": func() *definitions.Machine {
			m := machine("x")
			m.Transitions = []definitions.Transition{transition("pay_now"), transition("payNow")}
			return m
		},
		"PayArgs": func() *definitions.Machine {
			m := machine("pay_args")
			m.Transitions = []definitions.Transition{transition("pay", "a")}
			return m
		},
		"CanPay": func() *definitions.Machine {
			m := machine("can_pay")
			m.Transitions = []definitions.Transition{transition("pay")}
			return m
		},
		"PaymentID": func() *definitions.Machine {
			m := machine("x")
			m.Transitions = []definitions.Transition{transition("pay", "payment_id", "paymentId")}
			return m
		},
		"Version": func() *definitions.Machine {
			m := machine("x")
			m.Fields = []definitions.Field{{Name: "version"}}
			return m
		},
		"StateInTwo": func() *definitions.Machine {
			m := machine("x")
			m.States = append(m.States, definitions.State{Name: "in_two"}, definitions.State{Name: "in-two"})
			return m
		},
		"TestTestFSM": func() *definitions.Machine {
			m := machine("test")
			m.States = append(m.States, definitions.State{Name: "testFSM"})
			return m
		},
		"GroupOpen": func() *definitions.Machine {
			m := machine("x")
			m.Groups = []definitions.Group{{Name: "open"}, {Name: "OPEN"}}
			return m
		},
	}
	for name, build := range tests {
		_, err := Generate(build(), Options{})
		var problems definitions.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: %v, want findings", name, err)
			continue
		}
		named := false
		for _, p := range problems {
			named = named || p.Name == name && p.Rule == "name-collision" && p.Line == 1 && p.File == "x.yaml"
		}
		if !named {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUniqueNamesCollideWithNothing(t *testing.T) {
	for _, c := range goldenCases(t) {
		if found := collisions(c.def); len(found) > 0 {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

// TestDeclaredNamesAreReserved: whatever a generated package declares under a fixed name
// is a name that no machine may take, and the loader says so at the machine's line.
func TestDeclaredNamesAreReserved(t *testing.T) {
	for _, c := range goldenCases(t) {
		own := definitions.GoName(c.def.Name)
		derived := regexp.MustCompile(`^(State|Transition|Group|Can|` + own + `).+$|^.+Args$|^(New)?` + own + `$`)
		for name := range exported(t, generateOne(t, c.def, Options{})) {
			if !derived.MatchString(name) && !slices.Contains(fixedNames, name) {
				t.Errorf("%s declares %s, which is not reserved", c.name, name)
			}
		}
	}
	word := regexp.MustCompile(`[A-Z][a-z]*`)
	for _, name := range fixedNames {
		machine := strings.ToLower(strings.TrimPrefix(word.ReplaceAllString(name, "_$0"), "_"))
		_, err := definitions.Parse("x.yaml", []byte("machine: "+machine+"\ntable: {name: t}\ninitial: a\nstates: {a: {final: true}}\ntransitions: {}\n"))
		var found definitions.Problems
		if !errors.As(err, &found) || found[0].Rule != "reserved-name" || found[0].Line != 1 || found[0].Column != 10 {
			t.Errorf("a machine called %s, which would declare %s: %v", machine, name, err)
		}
	}
}

// exported gives the exported identifiers that a file declares.
func exported(t *testing.T, source []byte) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names[s.Name.Name] = true
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
	for name := range names {
		if !ast.IsExported(name) {
			delete(names, name)
		}
	}
	return names
}

// TestTooManyMovesAreAFinding: what would be hundreds of megabytes of Go is refused at once.
func TestTooManyMovesAreAFinding(t *testing.T) {
	var b strings.Builder
	b.WriteString("machine: m\ntable: {name: t}\ninitial: s0\nstates:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  s%d:\n", i)
	}
	b.WriteString("transitions:\n")
	for i := range 300 {
		fmt.Fprintf(&b, "  t%d: {from: \"*\", to: s%d}\n", i, i)
	}
	m, err := definitions.Parse("m.yaml", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = Generate(m, Options{})
	var problems definitions.Problems
	if !errors.As(err, &problems) || problems[0].Rule != "too-many-edges" {
		t.Error(err)
	}
}
