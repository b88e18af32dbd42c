package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/definitions"
)

// reporters are the forms in which findings can be written.
var reporters = map[string]func(io.Writer, definitions.Problems) error{
	"text":   reportText,
	"json":   reportJSON,
	"github": reportGitHub,
}

// reportFormats lists them in the order of the help text.
var reportFormats = []string{"text", "json", "github"}

// finish writes findings as text and turns them into the command's result.
func finish(cmd *cobra.Command, problems definitions.Problems) error {
	return finishAs(cmd, "text", problems)
}

func finishAs(cmd *cobra.Command, format string, problems definitions.Problems) error {
	if err := reporters[format](cmd.OutOrStdout(), problems); err != nil {
		return fmt.Errorf("write findings: %w", err)
	}
	if problems.Failed() {
		return errFindings
	}
	return nil
}

func reportText(w io.Writer, problems definitions.Problems) error {
	for _, p := range problems {
		if _, err := fmt.Fprintln(w, p); err != nil {
			return err
		}
	}
	return nil
}

// jsonFinding fixes the keys of the JSON form.
type jsonFinding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"` // error or warning
	Rule     string `json:"rule"`
	Name     string `json:"name,omitempty"`
	Message  string `json:"message"`
	Nearest  string `json:"nearest,omitempty"`
}

func reportJSON(w io.Writer, problems definitions.Problems) error {
	found := make([]jsonFinding, 0, len(problems))
	for _, p := range problems {
		found = append(found, jsonFinding{p.File, p.Line, p.Column, severity(p), p.Rule, p.Name, p.Message, p.Nearest})
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(found)
}

func severity(p definitions.Problem) string {
	if p.Warning {
		return "warning"
	}
	return "error"
}

// reportGitHub writes workflow commands, which GitHub shows beside the line.
func reportGitHub(w io.Writer, problems definitions.Problems) error {
	for _, p := range problems {
		message := p.Message
		if p.Nearest != "" {
			message += fmt.Sprintf(" (did you mean %q?)", p.Nearest)
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n", severity(p),
			githubProperty.Replace(p.File), p.Line, p.Column, githubProperty.Replace(p.Rule), githubData.Replace(message))
		if err != nil {
			return err
		}
	}
	return nil
}

var (
	githubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	githubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
