package main

import (
	"bytes"
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

func TestUsageMistakesAreFailures(t *testing.T) {
	for _, verb := range []string{"check", "generate", "diff", "ddl", "diagram", "init"} {
		var stdout, stderr bytes.Buffer
		if code := Run([]string{verb}, nil, &stdout, &stderr); code != exitFailure || stdout.Len() > 0 || stderr.Len() == 0 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", verb, code, stdout.String(), stderr.String())
		}
	}
}
