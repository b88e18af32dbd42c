package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/definitions"
)

func newInit() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "init NAME",
		Short: "Write a starter definition",
		Long: `init writes NAME.yaml, a commented definition to start from, and generate.go, which
lets "go generate" make the Go package from it. It never overwrites a file.`,
		Example: `  fsmgen init order
  fsmgen init order --out internal/order`,
		Args:              exactlyOne("NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return initialize(cmd, out, args[0]) },
	}
	cmd.Flags().StringVar(&out, "out", ".", "directory to write into")
	_ = cmd.MarkFlagDirname("out") // the error is for a flag that does not exist
	return cmd
}

// machineName keeps what is no name out of the YAML; the loader judges the rest.
var machineName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

func initialize(cmd *cobra.Command, out, name string) error {
	if !machineName.MatchString(name) {
		return usagef("%q is no name for a machine: lower-case letters, digits and _, beginning with a letter", name)
	}
	file := name + ".yaml"
	yaml := starter(name)
	m, err := definitions.Parse(filepath.Join(out, file), []byte(yaml))
	var problems definitions.Problems
	if errors.As(err, &problems) {
		return finish(cmd, problems)
	}
	if err != nil {
		return err
	}
	dir, err := readDirectory(out)
	if err != nil {
		return err
	}
	pkg := m.Package()
	if there := dir.packages(); len(there) > 0 {
		pkg = there[0]
	}
	return writeNew(cmd, out, [][2]string{{file, yaml}, {"generate.go", generateLine(pkg, file)}})
}

func generateLine(pkg, file string) string {
	return fmt.Sprintf("package %s\n\n//go:generate go tool fsmgen generate %s\n", pkg, file)
}

// writeNew writes files that must not be there, all or none.
func writeNew(cmd *cobra.Command, dir string, files [][2]string) error {
	for _, f := range files {
		path := filepath.Join(dir, f[0])
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is there already and is not overwritten", path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("make the directory: %w", err)
	}
	for _, f := range files {
		path := filepath.Join(dir, f[0])
		if err := writeFile(path, []byte(f[1])); err != nil {
			return err
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "fsmgen: wrote %s\n", path)
	}
	fmt.Fprint(cmd.ErrOrStderr(), nextSteps)
	return nil
}

// nextSteps is what a module needs once. Both ways end in the same: the tool is in go.mod.
const nextSteps = `fsmgen: next: "go generate". It runs "go tool fsmgen", which a module has after
    go mod edit -tool=github.com/fsmgen/fsmgen/cmd/fsmgen
    go mod tidy    (until there is a release: go work init . ../fsmgen, with a clone beside the module)
`

// starter is a definition that says what most first questions are about.
func starter(name string) string {
	text := starterText
	if name == "null" { // of all names the one that YAML reads as none
		text = strings.Replace(text, "machine: NAME", `machine: "NAME"`, 1)
	}
	return strings.ReplaceAll(text, "NAME", name)
}

const starterText = `# A state machine over one table. "fsmgen check NAME.yaml" says what is wrong with
# this file; "fsmgen generate NAME.yaml" makes the Go package from it.
machine: NAME
doc: What a NAME is, in a sentence.

# Your own table. The engine owns three columns of it; these are the defaults.
table:
  name: NAMEs
  id: {column: id, type: string}   # or int
  status: status
  version: version                 # an integer: 1 at creation, +1 per transition

# The columns that transitions read or write. Types: string int float bool time
# bytes json decimal.
fields:
  amount: {type: int, doc: Total in cents.}
  paid_at: {type: time, nullable: true}

initial: pending

states:
  pending:
  paid:
  done: {final: true}
  cancelled: {final: true}

groups:
  open: [pending, paid]            # in from: "@open"

transitions:
  pay:
    doc: The payment provider confirmed the charge.
    from: pending
    to: paid
    args: {reference: string}      # recorded in the journal
    set: {paid_at: now()}          # written in the same UPDATE
    emit: NAME.paid                # topic of the journal row
  finish:
    from: paid
    to: done
  cancel:
    from: "@open"
    to: cancelled
    args: {reason: "string?"}      # ? = optional
`
