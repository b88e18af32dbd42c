package enginetest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence/memory"
)

// impossible counts edges whose conditions nothing meets: who is in odd came by the one
// branch that makes both conditions false.
var impossible = map[string]int{"registers": 2}

// TestWalkEveryDefinition walks whatever definitions this module has: for each edge of
// them a row and arguments are found.
func TestWalkEveryDefinition(t *testing.T) {
	var all []string
	for _, pattern := range []string{"../../codegen/testdata/*/*.yaml", "../../examples/*/*.yaml", "../../persistence/workflowtest/testdata/*.yaml"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		all = append(all, paths...)
	}
	for _, path := range all {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			def, err := definitions.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			w, err := newWalker(memory.New(), Config{Definition: def})
			if err != nil {
				t.Fatal(err)
			}
			if got := w.coverage(); strings.Count(got, "NOT") != impossible[def.Name] {
				t.Error(got)
			}
			Walk(t, memory.New(), Config{Definition: def})
		})
	}
}

// TestWalkUniqueKeys: many rows follow each plan, and none has the unique key of another,
// whatever type it is of and whoever reads it. What one row alone can do is left out.
func TestWalkUniqueKeys(t *testing.T) {
	const form = `
machine: ticket
table: {name: tickets}
fields: {u: {type: TYPE}, v: {type: bool, default: false}, w: {type: TYPE, nullable: true}}
unique: [KEYS]
initial: a
states: {a: , b: , c: {final: true}}
transitions:
  go: {from: a, to: b, args: {x: TYPE}, when: u == args.x, set: {w: args.x}}
  on: {from: b, to: c, args: {y: TYPE}, when: COND, set: {u: args.y, w: SET}}
`
	for _, typ := range []string{"string", "int", "float", "decimal", "{type: decimal, scale: 0}", "time", "bool"} {
		for name, tt := range map[string]struct {
			keys, cond, set string
			missing         int // "NOT" in the coverage
		}{
			"every part is read":     {"[u], [w]", "w == u and args.y != u", "u", 0},
			"a part is another's":    {"[u, v], [v, w]", "v == false", "args.y", 0},
			"a literal is no key":    {"[u]", "u == u", "nil", 0},
			"one value and no other": {"[v]", "true", "nil", 5},
		} {
			t.Run(typ+" "+name, func(t *testing.T) {
				t.Parallel()
				text := strings.NewReplacer("KEYS", tt.keys, "COND", tt.cond, "SET", tt.set, "u: {type: TYPE}", "u: "+full(typ), "w: {type: TYPE, nullable: true}", "w: "+strings.Replace(full(typ), "}", ", nullable: true}", 1), "TYPE", typ).Replace(form)
				def, err := definitions.Parse("ticket.yaml", []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				w, err := newWalker(memory.New(), Config{Definition: def})
				if err != nil {
					t.Fatal(err)
				}
				missing := tt.missing
				if typ == "bool" {
					missing = 5 // there are two of them
				}
				if got := w.coverage(); strings.Count(got, "NOT") != missing {
					t.Error(got)
				}
				Walk(t, memory.New(), Config{Definition: def})
			})
		}
	}
}

func full(typ string) string {
	if strings.HasPrefix(typ, "{") {
		return typ
	}
	return "{type: " + typ + "}"
}

// TestWalkNilBesideADefault: a row cannot be created with nil in a field that has a default,
// so that an edge which asks for it is counted as not walked, and is no failure.
func TestWalkNilBesideADefault(t *testing.T) {
	def, err := definitions.Parse("note.yaml", []byte(`
machine: note
table: {name: notes}
fields: {text: {type: string, nullable: true, default: hello}}
initial: a
states: {a: , b: {final: true}, c: {final: true}}
transitions:
  go:
    moves:
      - {from: a, to: b, when: text == nil}
      - {from: a, to: c}
`))
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWalker(memory.New(), Config{Definition: def})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.coverage(); strings.Count(got, "NOT") != 2 { // the edge, and the state behind it
		t.Error(got)
	}
	Walk(t, memory.New(), Config{Definition: def})
}
