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
