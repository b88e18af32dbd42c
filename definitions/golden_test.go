package definitions

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden reads every testdata/<CaseName>/input.yaml. Beside it, findings.txt
// holds what is found, and canonical.json what a definition without errors is
// written back as.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no golden cases: %v", err)
	}
	for _, input := range inputs {
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir), func(t *testing.T) { golden(t, dir) })
	}
}

func golden(t *testing.T, dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "input.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse("input.yaml", data)
	found, canonical := outcome(t, m, err)
	compareFile(t, filepath.Join(dir, "findings.txt"), found)
	compareFile(t, filepath.Join(dir, "canonical.json"), canonical)
}

// outcome returns the findings, one a line, and the canonical form.
func outcome(t *testing.T, m *Machine, err error) (found, canonical string) {
	t.Helper()
	problems := Problems(nil)
	if err != nil {
		if !errors.As(err, &problems) || m != nil {
			t.Fatalf("Parse = %v, %v; want Problems alone", m, err)
		}
	} else {
		problems, canonical = m.Warnings, string(m.Canonical())
	}
	if len(problems) > 0 {
		found = problems.Error() + "\n"
	}
	return found, canonical
}

// compareFile holds got against a golden file; a file that is missing is empty.
func compareFile(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		writeGolden(t, path, got)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func writeGolden(t *testing.T, path, got string) {
	t.Helper()
	if got == "" {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		t.Fatal(err)
	}
}
