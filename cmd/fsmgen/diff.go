package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
)

func newDiff() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "diff FILE...",
		Short: "Say whether generated code is up to date",
		Long: `diff compares the generated code on disk with the definitions, and writes nothing.
Each file that differs is a line: missing, changed, or orphaned (generated once,
and no longer). The exit code is 1 if there is one, so that CI can ask.`,
		Example: `  fsmgen diff order.yaml
  fsmgen diff --out internal/order definitions/order.yaml`,
		Args:              oneOrMore("FILE"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			plans, problems, err := t.plans(cmd, args)
			if err != nil {
				return err
			}
			result := finish(cmd, problems)
			if result != nil && !errors.Is(result, errFindings) {
				return result
			}
			for _, p := range plans {
				drifted, err := p.reportDrift(cmd.OutOrStdout())
				if err != nil {
					return fmt.Errorf("write drift: %w", err)
				}
				if drifted {
					result = errFindings
				}
			}
			if result != nil && !problems.Failed() {
				fmt.Fprintln(cmd.ErrOrStderr(), "fsmgen: run fsmgen generate, and delete what is orphaned")
			}
			return result
		},
	}
	t.addFlags(cmd)
	return cmd
}

// reportDrift writes a line for each file that differs.
func (p *plan) reportDrift(w io.Writer) (drifted bool, err error) {
	for _, d := range p.drift {
		drifted = true
		if _, err := fmt.Fprintf(w, "%s: %s\n", filepath.Join(p.dir.path, d.Name), d.Kind); err != nil {
			return drifted, err
		}
	}
	return drifted, nil
}
