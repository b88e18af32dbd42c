package main

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// dialects give the DDL of a machine. The text is each dialect's own.
var dialects = map[string]func(...*definitions.Machine) string{
	"mysql":    mysql.DDL,
	"postgres": postgres.DDL,
	"sqlite":   sqlite.DDL,
}

func newDDL() *cobra.Command {
	var dialect string
	known := slices.Sorted(maps.Keys(dialects))
	cmd := &cobra.Command{
		Use:   "ddl --dialect DIALECT FILE",
		Short: "Write the SQL that makes the table and the journal",
		Long: `ddl writes the CREATE statements of the business table and of the journal to
stdout, for a migration tool of your own. Store.Migrate runs the same statements.
FILE may be "-" for standard input.`,
		Example:           `  fsmgen ddl --dialect sqlite order.yaml > migrations/001_orders.sql`,
		Args:              exactlyOne("FILE"),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dialect == "" {
				return usagef("which database? Say --dialect %s", strings.Join(known, "|"))
			}
			if err := oneOf("dialect", dialect, known); err != nil {
				return err
			}
			m, err := loadOne(cmd, args[0])
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), dialects[dialect](m))
			return err
		},
	}
	cmd.Flags().StringVar(&dialect, "dialect", "", "the database: "+strings.Join(known, ", "))
	completeFlag(cmd, "dialect", known)
	return cmd
}
