package codegen

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fsmgen/fsmgen/definitions"
)

// runProgram builds and runs a program over an overlay, and returns what it says.
func runProgram(o *overlay) string {
	out, _ := exec.Command("go", "run", o.flag(), "./testdata/stale").CombinedOutput()
	return string(out)
}

// newStale lays out a generated package, changed by edit, and a program that uses it.
func newStale(t *testing.T, edit func(source string) string) *overlay {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the go command")
	}
	m, err := definitions.Load("testdata/BareMachineWithoutJournal/lamp.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := newOverlay(t)
	o.lay("testdata/stale/lamp/lamp_fsm.go", []byte(edit(string(generateOne(t, m, Options{})))))
	o.lay("testdata/stale/main.go", []byte(`package main

import (
	"context"
	"fmt"

	"github.com/fsmgen/fsmgen/codegen/testdata/stale/lamp"
)

func main() {
	_, err := lamp.New(context.Background(), nil)
	fmt.Println("New:", err)
	lamp.Definition()
}
`))
	return o
}

func TestStaleDefinitionDoesNotStart(t *testing.T) {
	for name, edit := range map[string]func(string) string{
		"edited by hand": func(s string) string { return strings.Replace(s, `"name": "lamps"`, `"name": "lampS"`, 1) },
		"of another format": func(s string) string {
			return strings.Replace(s, `"machine": "lamp",`, `"machine": "lamp", "news": 1,`, 1)
		},
	} {
		said := runProgram(newStale(t, edit))
		if !strings.Contains(said, "New: lamp: the definition in this package") || strings.Count(said, `run "fsmgen generate"`) != 2 || !strings.Contains(said, "panic: ") {
			t.Errorf("%s:\n%s", name, said)
		}
	}
}

func TestStaleCodeDoesNotCompile(t *testing.T) {
	o := newStale(t, func(s string) string { return s })
	paths, err := filepath.Glob("../engine/*.go")
	if err != nil {
		t.Fatal(err)
	}
	renamed := false
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if next := bytes.ReplaceAll(data, []byte("GeneratedABI1"), []byte("GeneratedABI2")); !bytes.Equal(data, next) {
			o.lay(path, next)
			renamed = true
		}
	}
	if said := runProgram(o); !renamed || !strings.Contains(said, "undefined: engine.GeneratedABI1") {
		t.Errorf("the compiler says:\n%s", said)
	}
}
