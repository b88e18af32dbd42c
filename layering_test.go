package fsmgen_test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/fsmgen/fsmgen"

// layer says what the packages at and below a path may import of this module, and
// which other modules' packages they may reach, directly or not.
type layer struct {
	path string
	may  []string // of this module; "" is the package itself and what is below it
	not  []string // of anybody; prefixes, over all dependencies
}

var (
	drivers = []string{"github.com/mattn/go-sqlite3", "github.com/jackc/pgx", "github.com/go-sql-driver/mysql"}
	sql     = append([]string{"github.com/jmoiron/sqlx"}, drivers...)
)

// layers is the import direction. The longest path that fits a package counts.
var layers = []layer{
	{"definitions", []string{""}, append([]string{"database/sql$", "github.com/looplab/fsm"}, sql...)},
	{"definitions/expr", []string{""}, append([]string{"database/sql$", "gopkg.in/yaml.v3", "github.com/looplab/fsm"}, sql...)},
	{"engine", []string{"", "definitions"}, sql},
	{"codegen", []string{"", "definitions"}, append([]string{"database/sql$", "github.com/looplab/fsm"}, sql...)},
	{"persistence", []string{"", "engine", "definitions"}, drivers},
	{"persistence/sqlite", []string{"", "persistence", "engine", "definitions"}, drivers[1:]},
	{"persistence/postgres", []string{"", "persistence", "engine", "definitions"}, []string{drivers[0], drivers[2]}},
	{"persistence/mysql", []string{"", "persistence", "engine", "definitions"}, drivers[:2]},
	{"persistence/memory", []string{"", "persistence", "engine", "definitions"}, sql},
	{"persistence/internal/servertest", nil, drivers[:1]},
	{"persistence/opentest", []string{"", "persistence", "engine", "definitions"}, nil},
	{"idempotency", []string{"", "definitions", "engine", "persistence"}, nil},
	{"cmd/fsmgen", []string{"", "definitions", "codegen", "engine", "persistence"}, nil},
	{"examples", []string{"", "definitions", "engine", "persistence", "idempotency"}, nil},
}

// listed is what `go list` says of a package.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	Deps       []string
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,GoFiles,CgoFiles,Imports,Deps", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(out); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

// below gives a package's path inside the module.
func below(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
}

// within reports whether a path is dir, or below it.
func within(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// matches reports whether an import path has a prefix, or with $ is it.
func matches(importPath, pattern string) bool {
	if exact, ok := strings.CutSuffix(pattern, "$"); ok {
		return importPath == exact
	}
	return within(importPath, pattern)
}

func layerOf(p string) (layer, bool) {
	var best layer
	for _, l := range layers {
		if within(p, l.path) && len(l.path) > len(best.path) {
			best = l
		}
	}
	return best, best.path != ""
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		name := below(p.ImportPath)
		if name == "" {
			continue // this package: tests only
		}
		l, ok := layerOf(name)
		if !ok {
			t.Errorf("%s belongs to no layer: give it one in layering_test.go", name)
			continue
		}
		for _, imported := range p.Imports {
			if in := below(imported); in != imported && !l.allows(in) {
				t.Errorf("%s imports %s; %s may import of this module: %s", name, in, l.path, strings.Join(l.may[1:], ", "))
			}
		}
		for _, dep := range p.Deps {
			for _, pattern := range l.not {
				if matches(dep, pattern) {
					t.Errorf("%s reaches %s, which %s must not", name, dep, l.path)
				}
			}
		}
	}
}

func (l layer) allows(p string) bool {
	return slices.ContainsFunc(l.may, func(m string) bool { return within(p, path.Clean(l.path)) && m == "" || m != "" && within(p, m) })
}

// onlyHere are modules that one place alone may import, by file.
var onlyHere = map[string][]string{
	"gopkg.in/yaml.v3":               {"definitions/*.go"},
	"github.com/looplab/fsm":         {"engine/fsm.go", "engine/enginetest/*.go"},
	"github.com/mattn/go-sqlite3":    {"persistence/sqlite/*.go"},
	"github.com/jackc/pgx":           {"persistence/postgres/*.go", "persistence/internal/servertest/*.go"},
	"github.com/go-sql-driver/mysql": {"persistence/mysql/*.go", "persistence/internal/servertest/*.go"},
	"github.com/expr-lang/expr":      {"definitions/expr/*.go"},
	"github.com/spf13/cobra":         {"cmd/fsmgen/*.go"},
}

func TestLayersKeepModulesInOnePlace(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		for _, file := range slices.Concat(p.GoFiles, p.CgoFiles) {
			place := path.Join(below(p.ImportPath), file)
			parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range parsed.Imports {
				for mod, places := range onlyHere {
					if within(strings.Trim(spec.Path.Value, `"`), mod) && !slices.ContainsFunc(places, func(glob string) bool {
						ok, _ := path.Match(glob, place)
						return ok
					}) {
						t.Errorf("%s imports %s, which belongs to %s", place, mod, strings.Join(places, ", "))
					}
				}
			}
		}
	}
}

// testOnly are modules that prove things. Suites that tests call import "testing", and
// may have them; nothing else, or they would be built into users' programs.
var testOnly = []string{"github.com/google/go-cmp", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/rogpeppe/go-internal", "github.com/anishathalye/porcupine"}

func TestLayersKeepTestModulesOut(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		if slices.Contains(p.Deps, "testing") {
			if name := below(p.ImportPath); !strings.HasSuffix(name, "test") {
				t.Errorf("%s reaches testing; only suites, whose names end in test, may", name)
			}
			continue
		}
		for _, dep := range p.Deps {
			for _, mod := range testOnly {
				if within(dep, mod) {
					t.Errorf("%s reaches %s, which is for tests", below(p.ImportPath), dep)
				}
			}
		}
	}
}

// Generated packages are thin: whatever they import, users import.
func TestLayersOfGeneratedCode(t *testing.T) {
	t.Parallel()
	allowed := []string{module + "/engine", module + "/definitions", "github.com/shopspring/decimal"}
	generated := 0
	for _, p := range list(t) {
		if len(p.GoFiles) != 1 || !strings.HasSuffix(p.GoFiles[0], "_fsm.go") {
			continue
		}
		generated++
		for _, imported := range p.Imports {
			if strings.Contains(imported, ".") && !slices.Contains(allowed, imported) {
				t.Errorf("%s imports %s", below(p.ImportPath), imported)
			}
		}
	}
	if generated == 0 {
		t.Error("there is no generated package")
	}
}

func TestLayersHaveTellingNames(t *testing.T) {
	t.Parallel()
	for _, p := range list(t) {
		switch base := path.Base(p.ImportPath); base {
		case "util", "utils", "common", "types", "models", "helpers", "misc", "base":
			t.Errorf("%s: a package is named for what it does", below(p.ImportPath))
		}
	}
}

// A replace directive breaks `go install …@latest` and `go get -tool`.
func TestLayersHaveNoReplacement(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimSpace(line), "replace") {
			t.Errorf("go.mod: %s", line)
		}
	}
}
