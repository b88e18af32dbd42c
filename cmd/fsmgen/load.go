package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/definitions"
)

// stdinName stands for standard input as FILE.
const stdinName = "-"

// maxStdin is more than a definition may have: what is longer is a finding of the loader.
const maxStdin = 2 << 20

// once leaves out the files that were named before, in whatever spelling.
func once(paths []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, path := range paths {
		real := realFile(path)
		if path == stdinName {
			real = stdinName
		}
		if !seen[real] {
			seen[real] = true
			kept = append(kept, path)
		}
	}
	return kept
}

// realPath is the one spelling of a path: absolute, with links followed as far as it
// exists.
func realPath(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return filepath.Clean(path)
	}
	rest := ""
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// realFile is [realPath] of a file that may itself be a link: what is generated from it
// belongs beside the link.
func realFile(path string) string {
	return filepath.Join(realPath(filepath.Dir(path)), filepath.Base(path))
}

// load reads one definition. The findings, warnings among them, come beside the
// machine, which is nil where one is an error; err is a failure of the system.
func load(cmd *cobra.Command, path string) (*definitions.Machine, definitions.Problems, error) {
	m, err := read(cmd, path)
	var problems definitions.Problems
	if errors.As(err, &problems) {
		return nil, problems, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return m, m.Warnings, nil
}

func read(cmd *cobra.Command, path string) (*definitions.Machine, error) {
	if path != stdinName {
		return definitions.Load(path)
	}
	data, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxStdin))
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return definitions.Parse("stdin.yaml", data)
}

// loadOne is load for a verb that writes its product to stdout: findings take the
// product's place, warnings go to stderr beside it.
func loadOne(cmd *cobra.Command, path string) (*definitions.Machine, error) {
	m, problems, err := load(cmd, path)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, finish(cmd, problems)
	}
	for _, p := range problems {
		fmt.Fprintln(cmd.ErrOrStderr(), p)
	}
	return m, nil
}

// finding is a finding of the command itself about the file at path.
func finding(path, rule, name, format string, args ...any) definitions.Problem {
	return definitions.Problem{File: path, Line: 1, Column: 1, Rule: rule, Name: name, Message: fmt.Sprintf(format, args...)}
}

// asFindings gives the findings in an error of codegen, which does not know the
// path; ok is false where the error is none.
func asFindings(path string, err error) (found definitions.Problems, ok bool) {
	var problems definitions.Problems
	if !errors.As(err, &problems) {
		return nil, false
	}
	for _, p := range problems {
		p.File = path
		found = append(found, p)
	}
	return found, true
}
