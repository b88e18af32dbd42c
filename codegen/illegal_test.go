package codegen

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestIllegalProgramsDoNotBuild builds programs that use generated packages in ways
// the definition rules out, and holds the compiler's error against the first line of each.
func TestIllegalProgramsDoNotBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	paths, err := filepath.Glob("testdata/illegal/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no programs", err)
	}
	o := newOverlay(t)
	want := map[string]*regexp.Regexp{}
	var packages []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dir := strings.TrimSuffix(filepath.ToSlash(path), ".txt")
		o.lay(dir+"/illegal.go", data)
		packages = append(packages, "./"+dir)
		first, _, _ := strings.Cut(string(data), "\n")
		want[filepath.Base(dir)] = regexp.MustCompile(strings.TrimPrefix(first, "// "))
	}
	out, err := exec.Command("go", append([]string{"build", o.flag()}, packages...)...).CombinedOutput()
	if err == nil {
		t.Fatal("all of them build")
	}
	said := map[string][]string{}
	for _, part := range strings.Split("\n"+string(out), "\n# ")[1:] {
		lines := strings.Split(strings.TrimSpace(part), "\n")
		said[lines[0][strings.LastIndex(lines[0], "/")+1:]] = slices.DeleteFunc(lines[1:], detail)
	}
	for name, want := range want {
		if got := said[name]; len(got) != 1 || !want.MatchString(got[0]) {
			t.Errorf("%s: the compiler says\n%s\nwant one error like %s", name, strings.Join(got, "\n"), want)
		}
	}
}

// detail reports whether a line of the compiler only says more about the one before.
func detail(line string) bool { return strings.HasPrefix(line, "\t") }
