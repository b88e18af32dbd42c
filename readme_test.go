// Package fsmgen_test holds the README and the import direction against the code.
package fsmgen_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

// block is a fenced block of the README.
type block struct {
	line       int
	lang, path string // path where the line before names a file: `main.go`
	text       string
}

// readme returns the README and its fenced blocks.
func readme(t *testing.T) (string, []block) {
	t.Helper()
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	file := regexp.MustCompile("^`([a-z0-9_./]+)`$")
	var blocks []block
	var open *block
	last := ""
	for i, line := range strings.Split(string(data), "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 1, lang: fence}
			if m := file.FindStringSubmatch(last); m != nil {
				open.path = m[1]
			}
		case isFence:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case line != "":
			last = line
		}
		if isFence {
			last = ""
		}
	}
	return string(data), blocks
}

// section returns the blocks under one heading.
func section(t *testing.T, heading string) []block {
	t.Helper()
	text, blocks := readme(t)
	before, rest, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("the README has no heading %q", heading)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	from := strings.Count(before, "\n") + 1
	to := from + strings.Count(body, "\n") + 1
	var in []block
	for _, b := range blocks {
		if b.line > from && b.line <= to {
			in = append(in, b)
		}
	}
	return in
}

// The quickstart is typed as it stands: its commands are run in order, its files
// written where they come, and its output is the one it shows. Only `git clone` is
// replaced, by this tree.
func TestReadmeQuickstart(t *testing.T) {
	t.Parallel()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(root, filepath.Join(dir, "fsmgen")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	var want string
	lines := 0
	for i, b := range section(t, "Quickstart") {
		switch {
		case b.path != "":
			fmt.Fprintf(&script, "cat > %s <<'END_%d'\n%sEND_%d\n", b.path, i, b.text, i)
			lines += len(strings.FieldsFunc(b.text, func(r rune) bool { return r == '\n' }))
		case b.lang == "sh":
			for line := range strings.Lines(b.text) {
				if !strings.HasPrefix(line, "git clone ") {
					script.WriteString(line)
				}
			}
		case b.lang == "text":
			want = b.text
		}
	}
	if got := shell(t, dir, script.String()); got != want {
		t.Errorf("the quickstart prints:\n%swant:\n%s", got, want)
	}
	if lines > 48 {
		t.Errorf("the quickstart has %d lines of YAML and Go", lines)
	}
}

// shell runs a script and returns what it writes on stdout.
func shell(t *testing.T, dir, script string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-eu")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=-mod=readonly")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s\nof the script:\n%s", err, stdout.String(), stderr.String(), script)
	}
	return stdout.String()
}

// fragmentImports are the imports a Go fragment of the README may use.
const fragmentImports = `
import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/examples/orders/order"
	"github.com/fsmgen/fsmgen/persistence"
%s)

var (
	_ context.Context; _ *sql.DB; _ = errors.New; _ = fmt.Sprint; _ = log.Print; _ *testing.T; _ time.Time
	_ *sqlx.DB; _ *definitions.Machine; _ *engine.Engine; _ *order.Machine; _ *persistence.Store
%s)
`

// Fragments of Go compile, as the body of a function that has a store, an engine and
// the machine of examples/orders; those that are tests are run. Blocks that name a
// file are whole files, and not looked at here.
func TestReadmeFragmentsCompile(t *testing.T) {
	t.Parallel()
	_, blocks := readme(t)
	imports, uses := "", ""
	for _, pkg := range []string{"sqlite", "postgres", "mysql", "memory"} {
		if slices.ContainsFunc(blocks, func(b block) bool { return b.lang == "go" && b.path == "" && strings.Contains(b.text, pkg+".") }) {
			imports += "\t\"github.com/fsmgen/fsmgen/persistence/" + pkg + "\"\n"
			constructor := map[bool]string{true: ".New", false: ".Open"}[pkg == "memory"]
			uses += "\t_ = " + pkg + constructor + "\n"
		}
	}
	source := "package fragments\n" + fmt.Sprintf(fragmentImports, imports, uses)
	for _, b := range blocks {
		switch {
		case b.lang != "go" || b.path != "":
		case strings.HasPrefix(b.text, "func "):
			source += fmt.Sprintf("\n//line README.md:%d\n%s", b.line+1, b.text)
		default:
			source += fmt.Sprintf("\nfunc fragment%d(ctx context.Context, store *persistence.Store, eng *engine.Engine, orders *order.Machine) (err error) {\n//line README.md:%d\n%s\nreturn err\n}\n",
				b.line, b.line+1, b.text)
		}
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fragments_test.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	shell(t, dir, "go mod init example.com/fragments && go work init . '"+root+"' && go vet -unreachable=false . && go test -vet=off .")
}

// Definitions that the README shows have no findings; a block that is not a whole
// file is read as the transitions of one.
func TestReadmeDefinitions(t *testing.T) {
	t.Parallel()
	_, blocks := readme(t)
	for _, b := range blocks {
		if b.lang != "yaml" {
			continue
		}
		m, err := definitions.Parse(fmt.Sprintf("README.md, from line %d", b.line), []byte(b.text))
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		for _, w := range m.Warnings {
			t.Logf("%v", w)
		}
	}
}

// The README names every outcome and every error of the engine, every verb and flag
// of the command.
func TestReadmeIsComplete(t *testing.T) {
	t.Parallel()
	text, _ := readme(t)
	for _, name := range append(exported(t, "engine/errors.go", "Err"), "Applied", "AlreadyReached", "AlreadyPassed", "Replayed") {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the README does not say what %s means", name)
		}
	}
	for _, name := range append(exported(t, "engine/options.go", "With"), "InTx", "AfterCommit") {
		if !strings.Contains(text, name) {
			t.Errorf("the README does not name %s", name)
		}
	}
	help := shell(t, ".", "go run ./cmd/fsmgen --help")
	_, verbs, _ := strings.Cut(help, "Available Commands:\n")
	verbs, _, _ = strings.Cut(verbs, "\n\n")
	for line := range strings.Lines(verbs) {
		if verb := strings.Fields(line)[0]; verb != "help" && verb != "completion" && !strings.Contains(text, "| `fsmgen "+verb) {
			t.Errorf("the README does not describe fsmgen %s", verb)
		}
	}
}

// exported returns the exported names with a prefix that a file declares at top level.
func exported(t *testing.T, file, prefix string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	add := func(name string) {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" && ast.IsExported(name) && name != "Error" {
			names = append(names, name)
		}
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, n := range v.Names {
						add(n.Name)
					}
				}
			}
		}
	}
	return names
}

// Every test that the README calls a proof exists: `TestX`, or "a check" of
// storetest by its topic and name.
func TestReadmeProofsExist(t *testing.T) {
	t.Parallel()
	text, _ := readme(t)
	var code strings.Builder
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		code.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	proofs := 0
	for _, m := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(text, -1) {
		proofs++
		if !strings.Contains(code.String(), "func "+m[1]+"(") {
			t.Errorf("there is no %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("“([^”]+)” of (?:its )?storetest").FindAllStringSubmatch(text, -1) {
		proofs++
		if !strings.Contains(code.String(), `{name: "`+m[1]+`", `) {
			t.Errorf("storetest has no check %q", m[1])
		}
	}
	if proofs == 0 {
		t.Error("the README names no proof")
	}
}

// Links of the README and the docs lead somewhere: relative ones to a file, those
// with # to a heading.
func TestReadmeLinks(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, file := range append(files, "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(data), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			if target == "" {
				target = filepath.Base(file)
			}
			linked, err := os.ReadFile(filepath.Join(filepath.Dir(file), target))
			if info, statErr := os.Stat(filepath.Join(filepath.Dir(file), target)); statErr == nil && info.IsDir() {
				err = nil
			}
			if err != nil {
				t.Errorf("%s links to %s: %v", file, m[1], err)
			}
			if anchor != "" && !strings.Contains(anchors(string(linked)), "#"+anchor+"\n") {
				t.Errorf("%s links to %s, and there is no such heading", file, m[1])
			}
		}
	}
}

// anchors lists the anchors of a document's headings, one a line.
func anchors(text string) string {
	var b strings.Builder
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			heading := strings.TrimSpace(strings.TrimLeft(line, "#"))
			b.WriteString("#" + strings.ReplaceAll(strings.ToLower(drop.ReplaceAllString(heading, "")), " ", "-") + "\n")
		}
	}
	return b.String()
}
