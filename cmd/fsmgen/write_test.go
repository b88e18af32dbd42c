package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// lamp is a definition whose generated file depends on doc and is long enough to be
// caught half-written.
func lamp(doc string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "machine: lamp\ndoc: %s\ntable: {name: lamps}\ninitial: s0\nstates:\n", doc)
	for i := range 200 {
		fmt.Fprintf(&b, "  s%d:\n", i)
	}
	b.WriteString("  off: {final: true}\ntransitions:\n  switch_off: {from: \"*\", to: off}\n")
	for i := range 199 {
		fmt.Fprintf(&b, "  go%d: {from: s%d, to: s%d}\n", i, i, i+1)
	}
	return b.String()
}

// generated returns a directory with two definitions, and what each generates.
func generated(t *testing.T) (dir string, definition, want [2]string) {
	t.Helper()
	dir = t.TempDir()
	out := filepath.Join(dir, "lamp_fsm.go")
	for i, doc := range []string{"one", "two"} {
		sub := filepath.Join(dir, doc)
		if err := os.Mkdir(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		definition[i] = filepath.Join(sub, "lamp.yaml")
		if err := os.WriteFile(definition[i], []byte(lamp(doc)), 0o666); err != nil {
			t.Fatal(err)
		}
		if code := Run([]string{"generate", "--out", dir, definition[i]}, nil, io.Discard, io.Discard); code != exitFine {
			t.Fatalf("exit code %d", code)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		want[i] = string(data)
	}
	if want[0] == want[1] || len(want[0]) < 1<<16 {
		t.Fatalf("the two files are no use: %d bytes", len(want[0]))
	}
	return dir, definition, want
}

func TestFailedWriteLeavesTheOldFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.go")
	for _, old := range []string{"", "old"} {
		if old != "" {
			if err := os.WriteFile(path, []byte(old), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		err := replace(path, func(file *os.File) error {
			if _, err := file.WriteString("half"); err != nil {
				t.Fatal(err)
			}
			return &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
		})
		if err == nil || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("error %v", err)
		}
		data, _ := os.ReadFile(path)
		if string(data) != old {
			t.Errorf("the file holds %q, want %q", data, old)
		}
		onlyIn(t, filepath.Dir(path), "x.go")
	}
}

// onlyIn checks that a directory holds no other files than these.
func onlyIn(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.IsDir() && !strings.Contains(" "+strings.Join(names, " ")+" ", " "+e.Name()+" ") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	defer full.Close()
	_, definition, _ := generated(t)
	for _, args := range [][]string{{"diagram", definition[0]}, {"ddl", "--dialect", "sqlite", definition[0]}, {"diff", definition[0]}, {"check", "--format", "json", definition[0]}} {
		var stderr bytes.Buffer
		if code := Run(args, nil, full, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%s: exit code %d, %s", args[0], code, stderr.String())
		}
	}
}

func TestRunsAtOnceLeaveAWholeFile(t *testing.T) {
	dir, definition, want := generated(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			var out bytes.Buffer
			if code := Run([]string{"generate", "--out", dir, definition[i%2]}, nil, &out, &out); code != exitFine {
				t.Errorf("exit code %d\n%s", code, out.String())
			}
		})
		wg.Go(func() {
			data, err := os.ReadFile(filepath.Join(dir, "lamp_fsm.go"))
			if err != nil || string(data) != want[0] && string(data) != want[1] {
				t.Errorf("read a broken file of %d bytes, %v", len(data), err)
			}
		})
	}
	wg.Wait()
	onlyIn(t, dir, "lamp_fsm.go")
}

func TestKilledRunLeavesAWholeFile(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	command, err := exec.LookPath("fsmgen") // testscript.Main put it there
	if err != nil {
		t.Fatal(err)
	}
	dir, definition, want := generated(t)
	took := time.Now()
	if err := exec.Command(command, "generate", "--out", dir, definition[0]).Run(); err != nil {
		t.Fatal(err)
	}
	whole := time.Since(took)
	killed := 0
	for i := range 30 {
		cmd := exec.Command(command, "generate", "--out", dir, definition[i%2])
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(whole * time.Duration(i) / 25)
		_ = cmd.Process.Kill() // it may have ended
		if cmd.Wait() != nil {
			killed++
		}
		data, err := os.ReadFile(filepath.Join(dir, "lamp_fsm.go"))
		if err != nil || string(data) != want[0] && string(data) != want[1] {
			t.Fatalf("run %d left a broken file of %d bytes, %v", i, len(data), err)
		}
	}
	t.Logf("%d of 30 runs were killed before their end", killed)
	if killed == 0 {
		t.Error("no run was killed")
	}
	// What a killed run leaves does not stand in the way of the next.
	if err := exec.Command(command, "generate", "--out", dir, definition[0]).Run(); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "lamp_fsm.go")); err != nil || string(data) != want[0] {
		t.Errorf("the next run failed: %v", err)
	}
}

// BenchmarkGenerateProcess is the whole command, process and all, on ten states: at
// most 50 ms.
func BenchmarkGenerateProcess(b *testing.B) {
	command, err := exec.LookPath("fsmgen")
	if err != nil {
		b.Fatal(err)
	}
	definition := filepath.Join(b.TempDir(), "ten.yaml")
	text := "machine: ten\ntable: {name: tens}\nfields: {a: {type: int}, b: {type: time, nullable: true}}\ninitial: s0\nstates:\n"
	for i := range 9 {
		text += fmt.Sprintf("  s%d:\n", i)
	}
	text += "  s9: {final: true}\ntransitions:\n"
	for i := range 9 {
		text += fmt.Sprintf("  go%d: {from: s%d, to: s%d, args: {x: int}, set: {a: args.x, b: now()}}\n", i, i, i+1)
	}
	if err := os.WriteFile(definition, []byte(text), 0o666); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		_ = os.Remove(filepath.Join(filepath.Dir(definition), "ten_fsm.go")) // not there the first time
		b.StartTimer()
		if out, err := exec.Command(command, "generate", definition).CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
