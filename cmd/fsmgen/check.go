package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/codegen"
	"github.com/fsmgen/fsmgen/definitions"
)

func newCheck() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "check FILE...",
		Short: "Say everything that is wrong with a definition",
		Long: `check reads definitions and reports every finding in one pass: file:line:column,
the rule, what is wrong, and the nearest legal name of a misspelling. Warnings
are printed and do not change the exit code. FILE may be "-" for standard input.`,
		Example: `  fsmgen check order.yaml
  fsmgen check --format github definitions/*.yaml   # annotations in a pull request
  fsmgen check --format json order.yaml             # for tools`,
		Args:              oneOrMore("FILE"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, reportFormats); err != nil {
				return err
			}
			return check(cmd, format, args)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "form of the findings: "+strings.Join(reportFormats, ", "))
	completeFlag(cmd, "format", reportFormats)
	return cmd
}

func check(cmd *cobra.Command, format string, paths []string) error {
	var all definitions.Problems
	var failed error // of files that could not be read: what the others have is told all the same
	for _, path := range once(paths) {
		m, problems, err := load(cmd, path)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		all = append(all, problems...)
		if m == nil {
			continue
		}
		// What only shows in Go is a finding too.
		found, _ := asFindings(path, codegen.Check(m))
		all = append(all, found...)
	}
	found := finishAs(cmd, format, all)
	if failed != nil {
		return failed
	}
	return found
}

// oneOf refuses a flag's value that is not among the legal ones.
func oneOf(flag, value string, legal []string) error {
	if slices.Contains(legal, value) {
		return nil
	}
	return usagef("--%s %q: want %s", flag, value, strings.Join(legal, ", "))
}

// completeFlag offers a flag's legal values to the shell.
func completeFlag(cmd *cobra.Command, flag string, legal []string) {
	// The error is for a flag that does not exist; a test walks all of them.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(legal, cobra.ShellCompDirectiveNoFileComp))
}
