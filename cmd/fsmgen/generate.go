package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/codegen"
)

func newGenerate() *cobra.Command {
	var t target
	cmd := &cobra.Command{
		Use:   "generate FILE...",
		Short: "Write the Go package of a definition",
		Long: `generate writes MACHINE_fsm.go beside each definition, or into the directory given
with --out. Only files that changed are written, each at once and as a whole. A
file that fsmgen did not make is never overwritten. If any definition has
findings, nothing is written at all.

With --tests there is MACHINE_fsm_test.go beside it: it tries every transition in
every state, follows every path, and has calls meet in all the ways they do, on the
store in memory and on the databases that FSMGEN_TEST_SQLITE, FSMGEN_TEST_POSTGRES
and FSMGEN_TEST_MYSQL name. Once it is there it is kept up to date without the flag;
delete it to be rid of it.`,
		Example: `  fsmgen generate order.yaml
  fsmgen generate --out internal/order --package order definitions/order.yaml
  fsmgen generate --tests order.yaml
  //go:generate go tool fsmgen generate order.yaml      in a Go file beside it`,
		Args:              oneOrMore("FILE"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			plans, problems, err := t.plans(cmd, args)
			if err != nil {
				return err
			}
			if err := finish(cmd, problems); err != nil {
				return err
			}
			for _, p := range plans {
				if err := p.write(cmd); err != nil {
					return err
				}
			}
			return nil
		},
	}
	t.addFlags(cmd)
	return cmd
}

// write brings the directory up to date.
func (p *plan) write(cmd *cobra.Command) error {
	content := make(map[string][]byte, len(p.files))
	for _, f := range p.files {
		content[f.Name] = f.Data
	}
	for _, d := range p.drift {
		path := filepath.Join(p.dir.path, d.Name)
		if d.Kind == codegen.Orphaned {
			fmt.Fprintf(cmd.ErrOrStderr(), "fsmgen: %s is no longer generated from %s: delete it\n", path, p.path)
			continue
		}
		if err := os.MkdirAll(p.dir.path, 0o777); err != nil {
			return fmt.Errorf("make the output directory: %w", err)
		}
		if err := writeFile(path, content[d.Name]); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "fsmgen: wrote %s\n", path)
	}
	return nil
}
