package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// walk visits every verb of the command.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, sub := range cmd.Commands() {
		walk(sub, visit)
	}
}

func TestEveryVerbTeaches(t *testing.T) {
	walk(newRoot(), func(cmd *cobra.Command) {
		if cmd.Long == "" || cmd.Short == "" || cmd.HasParent() && cmd.Example == "" {
			t.Errorf("%s lacks help or an example", cmd.CommandPath())
		}
	})
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLostOutputIsAFailure: also of help, which has no error of its own.
func TestLostOutputIsAFailure(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"--version"}, {"help", "check"}, {"completion", "bash"}} {
		var stderr bytes.Buffer
		if code := Run(args, nil, full{}, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "no space left") {
			t.Errorf("%v: exit code %d, stderr %q", args, code, stderr.String())
		}
	}
}

func TestUsageMistakesAreFailures(t *testing.T) {
	for _, verb := range []string{"check", "generate", "diff", "ddl", "diagram", "init"} {
		var stdout, stderr bytes.Buffer
		if code := Run([]string{verb}, nil, &stdout, &stderr); code != exitFailure || stdout.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", verb, code, stdout.String(), stderr.String())
		}
	}
}
