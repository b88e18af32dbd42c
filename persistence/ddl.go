package persistence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// DDL gives the statements that create the business table and the journal of
// definitions, where they are missing. Machines that share a table give one table
// with the columns of all.
func DDL(d Dialect, defs ...*definitions.Machine) []string {
	var out []string
	var journals []string
	seen := map[string]bool{}
	for _, def := range defs {
		if !seen[def.Table.Name] {
			seen[def.Table.Name] = true
			out = append(out, tableDDL(d, sharing(def.Table.Name, defs)))
		}
		if def.Journal.Enabled && !slices.Contains(journals, def.Journal.Table) {
			journals = append(journals, def.Journal.Table)
		}
	}
	for _, j := range journals {
		out = append(out, d.JournalDDL(j)...)
	}
	return out
}

// sharing gives the definitions over one table; the first of them owns Create.
func sharing(table string, defs []*definitions.Machine) []*definitions.Machine {
	var out []*definitions.Machine
	for _, def := range defs {
		if def.Table.Name == table {
			out = append(out, def)
		}
	}
	return out
}

func tableDDL(d Dialect, defs []*definitions.Machine) string {
	var lines, checks []string
	done := map[string]bool{}
	for i, def := range defs {
		for _, c := range columnsOf(def) {
			if done[c.Name] {
				continue
			}
			done[c.Name] = true
			lines = append(lines, columnDDL(d, c, def, i > 0))
		}
		checks = append(checks, statusCheck(d, def))
		for _, fields := range def.Unique {
			checks = append(checks, uniqueDDL(d, def, fields))
		}
	}
	return d.TableDDL(defs[0].Table.Name, append(lines, checks...))
}

func columnDDL(d Dialect, c ColumnSpec, def *definitions.Machine, shared bool) string {
	line := d.Quote(c.Name) + " " + d.ColumnType(c)
	if !c.Nullable {
		line += " NOT NULL"
	}
	switch {
	case c.Use == UseID:
		line += " PRIMARY KEY"
	case c.Use == UseVersion:
		line += " DEFAULT 1"
	case c.Use == UseStatus && shared:
		line += " DEFAULT " + initialLiteral(d, def)
	case c.Use == UseField && shared && !c.Nullable:
		line += fieldDefault(d, def, c)
	}
	return line
}

// fieldDefault lets the machine that owns Create insert rows without knowing the
// fields of the others.
func fieldDefault(d Dialect, def *definitions.Machine, c ColumnSpec) string {
	i := slices.IndexFunc(def.Fields, func(f definitions.Field) bool { return f.Column == c.Name })
	f := &def.Fields[i]
	if f.Default == nil || f.Default.Value == nil {
		return ""
	}
	switch v := bindValue(f.Default.Value).(type) {
	case int64, float64, bool:
		return fmt.Sprintf(" DEFAULT %v", v)
	case string:
		return " DEFAULT " + d.Literal(v)
	}
	return ""
}

// statusCheck refuses values that are no state, aliases included.
func statusCheck(d Dialect, def *definitions.Machine) string {
	var list []string
	for _, s := range def.States {
		for _, v := range append([]any{s.Value}, s.Aliases...) {
			list = append(list, stateLiteral(d, v))
		}
	}
	return fmt.Sprintf("CHECK (%s IN (%s))", d.Quote(def.Table.Status.Name), strings.Join(list, ", "))
}

// uniqueDDL declares a business unique key.
func uniqueDDL(d Dialect, def *definitions.Machine, fields []string) string {
	columns := keyColumns(def, fields)
	for i, name := range columns {
		columns[i] = d.Quote(name)
	}
	return "UNIQUE (" + strings.Join(columns, ", ") + ")"
}

// initialLiteral is what the status column of a new row holds.
func initialLiteral(d Dialect, def *definitions.Machine) string {
	s, _ := def.State(def.Initial[0])
	return stateLiteral(d, s.Value)
}

func stateLiteral(d Dialect, v any) string {
	if s, ok := v.(string); ok {
		return d.Literal(s)
	}
	return fmt.Sprint(v)
}

// Migrate creates the journal and, where missing, the business tables of
// definitions. It never alters a table that is there. The store knows the machines from
// then on: the versions of a row count over all that share its table, also over those
// that the process does not bind.
func (s *Store) Migrate(ctx context.Context, defs ...*definitions.Machine) error {
	if err := s.machines.Check(defs...); err != nil { // before anything is created
		return fmt.Errorf("persistence: migrate: %w", err)
	}
	conn, err := s.conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	for _, text := range DDL(s.d, defs...) {
		locked := func(err error) bool {
			d, ok := s.d.(Migrator)
			return s.classify(err) == engine.ClassRetryable || ok && d.Collided(err)
		}
		err := Patiently(ctx, s.wait, locked, func() error {
			_, err := conn.ExecContext(context.WithoutCancel(ctx), text)
			return err
		})
		if err != nil {
			return fmt.Errorf("persistence: migrate: %w\nin: %s", err, text)
		}
	}
	if err := s.machines.Join(defs...); err != nil { // others came while this one was at work
		return fmt.Errorf("persistence: migrate: %w", err)
	}
	return nil
}
