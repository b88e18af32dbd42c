package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

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
	out := &output{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	addCompletion(root)
	cmd, err := root.ExecuteC()
	if err == nil && out.err != nil { // of help, which tells nobody
		err = fmt.Errorf("write to standard output: %w", out.err)
	}
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

// output remembers the first error of writing.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
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
		Args:          cobra.ArbitraryArgs,
		RunE:          noVerb,

		SuggestionsMinimumDistance: 2,
	}
	root.SetVersionTemplate("fsmgen {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetHelpCommand(newHelp(root))
	root.AddCommand(newInit(), newCheck(), newGenerate(), newDiff(), newDDL(), newDiagram())
	return root
}

// addCompletion adds cobra's verb, which would answer a shell that does not exist with
// success. The scripts go to the output that root has by then.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = cobra.ArbitraryArgs, noShell
		}
	}
}

// noShell answers a call of completion that names no shell it knows.
func noShell(cmd *cobra.Command, args []string) error {
	var shells []string
	for _, c := range cmd.Commands() {
		shells = append(shells, c.Name())
	}
	if len(args) == 0 {
		return usagef("no shell given: %s", strings.Join(shells, ", "))
	}
	return usagef("there is no completion for %q: %s", args[0], strings.Join(shells, ", "))
}

// newHelp is in place of cobra's, which answers a verb that does not exist with success.
func newHelp(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Say how a verb is called",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return noVerb(root, args)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
			for _, c := range root.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// noVerb answers a call that names no verb, or one that does not exist.
func noVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("no verb given")
	}
	err := fmt.Errorf("there is no verb %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %q?", err, near[0])
	}
	return usageError{err}
}

// oneOrMore and exactlyOne are the two shapes a verb's arguments can have.
func oneOrMore(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("no %s given", what)
		}
		return nil
	}
}

func exactlyOne(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("no %s given", what)
		case 1:
			return nil
		}
		return usagef("one %s at a time, got %d", what, len(args))
	}
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
