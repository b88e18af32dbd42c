// Package definitions reads state-machine definitions: YAML of format v1 becomes
// a validated [Machine], or [Problems] that say what is wrong and where.
//
// [Load] and [Parse] report everything they find in one pass. [Rules] lists what
// they hold a definition to. A Machine can be written back in canonical form
// ([Machine.Canonical]) and has a hash over its meaning ([Machine.Hash]).
package definitions

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Load reads the definition in the file at path. A definition with findings is
// returned as [Problems]; any other error means that the file could not be read.
func Load(path string) (*Machine, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(file, maxFileSize+1))
	if err != nil {
		return nil, fmt.Errorf("read definition: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a definition from data; name stands for the file in findings. If a
// finding is an error the result is nil and the error [Problems], warnings among
// them; otherwise the warnings are in the machine.
func Parse(name string, data []byte) (*Machine, error) {
	f := &findings{file: name}
	m := parse(f, data)
	problems := f.sorted()
	if problems.Failed() {
		return nil, problems
	}
	m.Source = filepath.Base(filepath.ToSlash(name))
	m.Warnings = problems
	return m, nil
}

func parse(f *findings, data []byte) *Machine {
	src := newSource(data, f)
	if src == nil {
		return nil
	}
	root := document(src, f)
	if root == nil {
		return nil
	}
	l := &loader{findings: f, src: src, m: &Machine{}}
	l.read(root)
	if !f.found.Failed() {
		l.checkWrittenOut()
	}
	return l.m
}
