package persistence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
)

// verify holds the table against the definition. Every fault is reported, each
// with the column and the DDL that mends it. The columns come back in the order of
// columnsOf.
func (s *Store) verify(ctx context.Context, def *definitions.Machine) ([]Column, error) {
	columns, err := s.columns(ctx, def.Table.Name)
	if err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return nil, fmt.Errorf("there is no table %s: call store.Migrate, or run\n%s", def.Table.Name, strings.Join(DDL(s.d, def), ";\n"))
	}
	var faults []error
	var found []Column
	for _, want := range columnsOf(def) {
		c, err := s.verifyColumn(def, want, columns)
		if err != nil {
			faults = append(faults, err)
		}
		found = append(found, c)
	}
	faults = append(faults, s.verifyUnique(ctx, def, columns), s.verifyStates(ctx, def))
	if def.Journal.Enabled {
		faults = append(faults, s.verifyJournal(ctx, def, found))
	}
	return found, errors.Join(faults...)
}

func (s *Store) columns(ctx context.Context, table string) (columns []Column, err error) {
	err = s.look(ctx, "columns", table, func() (err error) {
		columns, err = s.d.Columns(ctx, s.reader, table)
		return err
	})
	return columns, err
}

// look reads what the database knows of a table, which another process may have locked.
func (s *Store) look(ctx context.Context, what, table string, read func() error) error {
	locked := func(err error) bool { return s.classify(err) == engine.ClassRetryable }
	if err := Patiently(ctx, s.wait, locked, read); err != nil {
		return fmt.Errorf("reading the %s of %s: %w", what, table, err)
	}
	return nil
}

func (s *Store) verifyColumn(def *definitions.Machine, want ColumnSpec, columns []Column) (Column, error) {
	table := def.Table.Name
	for _, c := range columns {
		if strings.EqualFold(c.Name, want.Name) {
			return c, s.verifyFound(table, want, c)
		}
	}
	line := s.d.Quote(want.Name) + " " + s.d.ColumnType(want)
	if want.Use == UseVersion {
		line += " NOT NULL DEFAULT 1"
	}
	if want.Use == UseStatus {
		line += " NOT NULL DEFAULT " + initialLiteral(s.d, def)
	}
	return Column{}, fmt.Errorf("table %s has no column %s: ALTER TABLE %s ADD COLUMN %s", table, want.Name, QuoteTable(s.d, table), line)
}

func (s *Store) verifyFound(table string, want ColumnSpec, c Column) error {
	if want.Use != UseField && want.Use != UseID && c.Nullable {
		return fmt.Errorf("table %s, column %s: it may hold NULL; declare it NOT NULL: %s", table, c.Name, s.notNull(table, want))
	}
	if want.Use == UseField && want.Nullable && !c.Nullable {
		return fmt.Errorf("table %s, column %s: the definition says nullable, the column says NOT NULL; drop one of the two", table, c.Name)
	}
	if want.Use == UseID && !c.UniqueAlone {
		return fmt.Errorf("table %s, column %s: an id must be unique: CREATE UNIQUE INDEX %s ON %s (%s), or make it the primary key",
			table, c.Name, s.d.Quote(table[strings.LastIndexByte(table, '.')+1:]+"_"+c.Name), QuoteTable(s.d, table), s.d.Quote(c.Name))
	}
	if err := s.d.Verify(want, c); err != nil {
		return fmt.Errorf("table %s, column %s: %w", table, c.Name, err)
	}
	return nil
}

// notNull is the DDL that forbids NULL in a column.
func (s *Store) notNull(table string, want ColumnSpec) string {
	column := s.d.Quote(want.Name)
	switch s.d.Name() {
	case "postgres":
		return "ALTER TABLE " + QuoteTable(s.d, table) + " ALTER COLUMN " + column + " SET NOT NULL"
	case "mysql":
		return "ALTER TABLE " + QuoteTable(s.d, table) + " MODIFY " + column + " " + s.d.ColumnType(want) + " NOT NULL"
	}
	return "copy the table into one whose column is " + column + " " + s.d.ColumnType(want) + " NOT NULL (SQLite cannot alter it)"
}
