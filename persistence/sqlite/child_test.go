package sqlite_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

func fmtInt(n int) string { return strconv.Itoa(n) }

// say tells the parent a line.
func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// child makes a copy of this test binary that plays a part on a database.
func child(t *testing.T, part, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, path)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	return cmd
}

// runChild runs a child to its end and gives what it said.
func runChild(t *testing.T, part, path string) string {
	t.Helper()
	out, err := child(t, part, path).Output()
	if err != nil {
		t.Fatalf("%s: %v", part, err)
	}
	return string(out)
}

// talker is a child that runs beside the test.
type talker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// startChild starts a child; it ends with the test at the latest.
func startChild(t *testing.T, part, path string) *talker {
	t.Helper()
	cmd := child(t, part, path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &talker{cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { k.kill() })
	return k
}

// hear gives the child's next line; false when it has ended.
func (k *talker) hear() (string, bool) {
	if !k.lines.Scan() {
		return "", false
	}
	return k.lines.Text(), true
}

// kill ends the child as kill -9 does.
func (k *talker) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
}
