package codegen

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/google/go-cmp/cmp"
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

// output is everything codegen makes from a case: the package and the pictures.
func (c goldenCase) output(t testing.TB) []File {
	t.Helper()
	files, err := Generate(c.def, Options{})
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

// checkPrograms vets and tests the packages as they are generated now. They lie over
// the committed ones without touching them, each with selfcheck.txt as a further test.
func checkPrograms(t *testing.T, cases []goldenCase) {
	t.Helper()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	temp := t.TempDir()
	lay := func(dir, name string, data []byte) {
		real, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(temp, fmt.Sprintf("%d-%s", len(overlay.Replace), name))
		if err := os.WriteFile(copied, data, 0o666); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[real] = copied
	}
	selfcheck, err := os.ReadFile("testdata/selfcheck.txt")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{}
	for _, c := range cases {
		files, err := Generate(c.def, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			lay(c.dir, f.Name, f.Data)
		}
		lay(c.dir, "selfcheck_test.go", bytes.Replace(selfcheck, []byte("package selfcheck"), []byte("package "+c.def.Package()), 1))
		args = append(args, "./"+filepath.ToSlash(c.dir))
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	lay(temp, "overlay.json", data)
	overlayFlag := "-overlay=" + filepath.Join(temp, fmt.Sprintf("%d-overlay.json", len(overlay.Replace)-1))
	goCommand(t, append([]string{"vet", overlayFlag}, args...)...)
	goCommand(t, append([]string{"test", "-vet=off", overlayFlag}, args...)...)
}

func goCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args[:2], " "), err, out)
	}
}
