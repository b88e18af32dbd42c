package codegen

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fsmgen/fsmgen/definitions"
)

var update = flag.Bool("update", false, "build, vet and run what is generated now, and if that succeeds make it the golden files")

// goldenCase is one directory of testdata: a definition, what is generated from it,
// and tests of the generated package.
type goldenCase struct {
	name string
	dir  string
	def  *definitions.Machine
}

func goldenCases(t testing.TB) []goldenCase {
	t.Helper()
	paths, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	var cases []goldenCase
	for _, path := range paths {
		dir := filepath.Dir(path)
		def, err := definitions.Load(path)
		if err != nil {
			t.Fatalf("%s:\n%v", path, err)
		}
		cases = append(cases, goldenCase{filepath.Base(dir), dir, def})
	}
	return cases
}

// options ask for the test of the package where the case has one: each is a program of
// its own with every driver in it, so few have. Package enginetest walks them all.
func (c goldenCase) options() Options {
	_, err := os.Stat(filepath.Join(c.dir, TestName(c.def)))
	return Options{Tests: err == nil}
}

// output is everything codegen makes from a case: the package and the pictures.
func (c goldenCase) output(t testing.TB) []File {
	t.Helper()
	files, err := Generate(c.def, c.options())
	if err != nil {
		t.Fatalf("Generate(%s): %v", c.name, err)
	}
	for _, format := range Formats() {
		text, err := Diagram(c.def, format)
		if err != nil {
			t.Fatalf("Diagram(%s, %s): %v", c.name, format, err)
		}
		files = append(files, File{"diagram." + format, text})
	}
	return files
}

// TestGolden holds what is generated against the committed files, and what is
// generated against the compiler, go vet and its own tests. With -update the golden
// files are written only after that.
func TestGolden(t *testing.T) {
	cases := goldenCases(t)
	if *update {
		checkPrograms(t, cases)
		if t.Failed() {
			t.Fatal("not recorded")
		}
	}
	for _, c := range cases {
		for _, f := range c.output(t) {
			path := filepath.Join(c.dir, f.Name)
			if *update {
				if err := os.WriteFile(path, f.Data, 0o666); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Error(err)
				continue
			}
			if diff := cmp.Diff(string(unixLines(want)), string(f.Data)); diff != "" {
				t.Errorf("%s is not what is generated (-committed +generated); after a look at it: go test ./codegen -run TestGolden -update\n%s", path, diff)
			}
		}
	}
}

func TestGoldenProgramsBuildVetAndRun(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	checkPrograms(t, goldenCases(t))
}

// checkPrograms vets the packages as they are generated now, runs one program that
// lets each check itself, and runs the tests that lie beside some of them. The
// generated files lie over the committed ones without touching them. One program for
// all is linked in a second; a test binary for each took half a minute.
func checkPrograms(t *testing.T, cases []goldenCase) {
	t.Helper()
	selfcheck, err := os.ReadFile("testdata/selfcheck.txt")
	if err != nil {
		t.Fatal(err)
	}
	o := newOverlay(t)
	var all, tested []string
	program := "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n\n"
	calls := ""
	for i, c := range cases {
		files, err := Generate(c.def, c.options())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			o.lay(filepath.Join(c.dir, f.Name), f.Data)
		}
		o.lay(filepath.Join(c.dir, "selfcheck.go"), bytes.Replace(selfcheck, []byte("package selfcheck"), []byte("package "+c.def.Package()), 1))
		all = append(all, "./"+filepath.ToSlash(c.dir))
		if tests, _ := filepath.Glob(filepath.Join(c.dir, "*_test.go")); len(tests) > 0 {
			tested = append(tested, "./"+filepath.ToSlash(c.dir))
		}
		program += fmt.Sprintf("\tp%d \"github.com/fsmgen/fsmgen/codegen/%s\"\n", i, filepath.ToSlash(c.dir))
		calls += fmt.Sprintf("\tcheck(%q, p%d.SelfCheck())\n", c.name, i)
	}
	program += ")\n\nvar failed bool\n\nfunc main() {\n" + calls + "\tif failed {\n\t\tos.Exit(1)\n\t}\n}\n" +
		"\nfunc check(name string, faults []string) {\n\tfor _, f := range faults {\n\t\tfailed = true\n\t\tfmt.Println(name+\":\", f)\n\t}\n}\n"
	o.lay("testdata/selfcheck/main.go", []byte(program))
	flag := o.flag()
	goCommand(t, append([]string{"vet", flag}, all...)...)
	goCommand(t, "run", flag, "./testdata/selfcheck")
	goCommand(t, append([]string{"test", flag}, tested...)...)
}

// TestGeneratedTestsCompile vets the test of every case, also where it is not run here.
func TestGeneratedTestsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	o := newOverlay(t)
	var dirs []string
	for _, c := range goldenCases(t) {
		files, err := Generate(c.def, Options{Tests: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			o.lay(filepath.Join(c.dir, f.Name), f.Data)
		}
		dirs = append(dirs, "./"+filepath.ToSlash(c.dir))
	}
	goCommand(t, append([]string{"vet", o.flag()}, dirs...)...)
}

// overlay lays files over the tree for the go command.
type overlay struct {
	t       *testing.T
	temp    string
	Replace map[string]string
}

func newOverlay(t *testing.T) *overlay {
	t.Helper()
	return &overlay{t: t, temp: t.TempDir(), Replace: map[string]string{}}
}

// lay puts data over the file called name, which need not exist.
func (o *overlay) lay(name string, data []byte) {
	o.t.Helper()
	name, err := filepath.Abs(name)
	if err != nil {
		o.t.Fatal(err)
	}
	copied := filepath.Join(o.temp, fmt.Sprintf("%d-%s", len(o.Replace), filepath.Base(name)))
	if err := os.WriteFile(copied, data, 0o666); err != nil {
		o.t.Fatal(err)
	}
	o.Replace[name] = copied
}

// flag is the flag of the go command that makes it see the overlay.
func (o *overlay) flag() string {
	o.t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		o.t.Fatal(err)
	}
	path := filepath.Join(o.temp, "overlay.json")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		o.t.Fatal(err)
	}
	return "-overlay=" + path
}

func goCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", args[0], err, out)
	}
}
