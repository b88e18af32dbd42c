package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/codegen"
)

// directory is what an output directory holds, as far as generating is concerned.
type directory struct {
	path  string
	files map[string][]byte // Go files by name
	// irregular are names of Go files that are links, directories and the like. Those
	// behind links are read, as the go tool does, and never written.
	irregular map[string]bool
	linked    map[string][]byte
}

// readDirectory reads the Go files of a directory; one that does not exist is empty.
func readDirectory(path string) (*directory, error) {
	d := &directory{path: path, files: map[string][]byte{}, irregular: map[string]bool{}, linked: map[string][]byte{}}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the output directory: %w", err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case !strings.HasSuffix(name, ".go"):
		case !e.Type().IsRegular():
			d.irregular[name] = true
			if data, ok := readLinked(filepath.Join(path, name)); ok {
				d.linked[name] = data
			}
		default:
			data, err := os.ReadFile(filepath.Join(path, name))
			if err != nil {
				return nil, fmt.Errorf("read the output directory: %w", err)
			}
			d.files[name] = data
		}
	}
	return d, nil
}

// readLinked reads a regular file behind a link. What cannot be read is no file of the
// package.
func readLinked(path string) ([]byte, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	data, err := os.ReadFile(path)
	return data, err == nil
}

// packages lists the package names of the hand-written files, sorted. Files that
// do not compile count as long as their package clause can be read.
func (d *directory) packages() []string {
	var names []string
	for _, files := range []map[string][]byte{d.files, d.linked} {
		for name, data := range files {
			if codegen.IsGenerated(data) {
				continue
			}
			if pkg, ok := packageClause(name, data); ok {
				names = append(names, pkg)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// packageClause returns the package a Go file belongs to. Files that the go tool
// leaves out of the package (hidden, ignored, documentation) belong to none.
func packageClause(name string, data []byte) (string, bool) {
	if strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return "", false
	}
	file, err := parser.ParseFile(token.NewFileSet(), name, data, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil || file.Name == nil || file.Name.Name == "documentation" || ignored(file) {
		return "", false
	}
	pkg := file.Name.Name
	if strings.HasSuffix(name, "_test.go") {
		pkg = strings.TrimSuffix(pkg, "_test")
	}
	return pkg, true
}

// ignored reports whether a build constraint leaves a file out on every system, as it
// does with scripts and tools that only lie beside a package: tags of one's own are not
// given, all others may be.
func ignored(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package {
				return false
			}
			if constraint.IsGoBuild(c.Text) {
				expr, err := constraint.Parse(c.Text)
				return err == nil && !satisfiable(expr)
			}
		}
	}
	return false
}

// mostTags bounds the tags whose combinations are tried; more are taken for given.
const mostTags = 12

func satisfiable(expr constraint.Expr) bool {
	var tags []string
	expr.Eval(func(tag string) bool {
		if systemTag.MatchString(tag) && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
		return false
	})
	for given := range 1 << min(len(tags), mostTags) {
		if expr.Eval(func(tag string) bool {
			i := slices.Index(tags, tag)
			return i >= mostTags || i >= 0 && given>>i&1 == 1
		}) {
			return true
		}
	}
	return false
}

// systemTag matches what the go tool may give by itself: systems, architectures,
// compilers and versions.
var systemTag = regexp.MustCompile(`^(aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|nacl|netbsd|openbsd|plan9|solaris|wasip1|windows|zos|unix|` +
	`386|amd64|arm|arm64|loong64|mips|mipsle|mips64|mips64le|ppc64|ppc64le|riscv64|s390x|sparc64|wasm|` +
	`cgo|gc|gccgo|race|msan|asan|go1(\.\d+)?|goexperiment\..*|(386|amd64|arm|arm64|mips|mips64|ppc64|ppc64le|riscv64|wasm)\..*)$`)

// sourceOf returns the definition that one of our files names in its second line.
func sourceOf(data []byte) string {
	lines := strings.SplitN(string(data), "\n", 3)
	if len(lines) < 2 {
		return ""
	}
	source, _ := strings.CutPrefix(strings.TrimRight(lines[1], "\r"), "// source: ")
	return source
}

// relativeSource is the path of the definition for the header: relative to the
// output where both are in one module, else the base name, so that no path of this
// machine ever gets into a file.
func relativeSource(definition, out string) string {
	file, dir := realFile(definition), realPath(out)
	root, ok := moduleRoot(dir)
	if !ok || !inside(root, file) {
		return filepath.Base(definition)
	}
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		return filepath.Base(definition)
	}
	return filepath.ToSlash(rel)
}

// moduleRoot finds the directory of the go.mod that dir belongs to.
func moduleRoot(dir string) (string, bool) {
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

func inside(root, file string) bool {
	rel, err := filepath.Rel(root, file)
	return err == nil && filepath.IsLocal(rel)
}
