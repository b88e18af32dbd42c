package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/codegen"
)

func newDiagram() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diagram FILE",
		Short: "Draw a machine",
		Long: `diagram writes the machine as a picture to stdout: the text of a Mermaid state
diagram, or a graph for Graphviz. FILE may be "-" for standard input.`,
		Example: `  fsmgen diagram order.yaml                              # Mermaid
  fsmgen diagram --format dot order.yaml | dot -Tsvg     # needs Graphviz`,
		Args:              exactlyOne("FILE"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, codegen.Formats()); err != nil {
				return err
			}
			m, err := loadOne(cmd, args[0])
			if err != nil {
				return err
			}
			text, err := codegen.Diagram(m, format)
			if found, ok := asFindings(args[0], err); ok {
				return finish(cmd, found)
			}
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "mermaid", "language of the picture: "+strings.Join(codegen.Formats(), ", "))
	completeFlag(cmd, "format", codegen.Formats())
	return cmd
}
