package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The exit codes. They are part of the contract.
const (
	exitFine     = 0
	exitFindings = 1 // findings, drift or breaking changes
	exitFailure  = 2 // usage or system failure
)

// errFindings ends a command whose findings are already on stdout.
var errFindings = errors.New("findings")

// usageError is a mistake on the command line, as opposed to a failure of the system.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run executes one command line, without the program's name, and returns the
// exit code. Findings go to stdout, diagnostics to stderr.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteC()
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFindings):
		return exitFindings
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "fsmgen: %v\nRun %q for how to call it.\n", err, cmd.CommandPath()+" --help")
	default:
		fmt.Fprintf(stderr, "fsmgen: %v\n", err)
	}
	return exitFailure
}

const rootHelp = `fsmgen turns the definition of a state machine, one YAML file, into a typed Go
package whose transitions are compare-and-set updates of your own table.

  fsmgen init order            write a starter definition, order.yaml
  fsmgen check order.yaml      say everything that is wrong with it
  fsmgen generate order.yaml   write order_fsm.go beside it
  fsmgen diff order.yaml       say whether order_fsm.go is up to date (for CI)

Exit codes: 0 fine; 1 findings or drift; 2 usage or system failure.
Findings are on stdout, everything else on stderr.`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "fsmgen",
		Short:         "State machines over your own table, from a definition",
		Long:          rootHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usagef("no verb given")
		},
	}
	root.SetVersionTemplate("fsmgen {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newInit(), newCheck(), newGenerate(), newDiff(), newDDL(), newDiagram())
	for _, cmd := range root.Commands() {
		positional := cmd.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := positional(cmd, args); err != nil {
				return usageError{err}
			}
			return nil
		}
	}
	root.Args = func(cmd *cobra.Command, args []string) error {
		if err := cobra.NoArgs(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
	return root
}

// version is the module version the binary was built from.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown version)"
}

// completeYAML offers definitions for a positional argument.
func completeYAML(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
