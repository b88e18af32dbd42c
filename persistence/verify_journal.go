package persistence

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fsmgen/fsmgen/definitions"
)

// verifyJournal finds a journal that lacks a column or keeps its values otherwise than
// they are written, or lacks one of the indexes on which everything rests: that no version
// is reached twice, and no request applied twice. found are the machine's own columns.
func (s *Store) verifyJournal(ctx context.Context, def *definitions.Machine, found []Column) error {
	table := def.Journal.Table
	columns, err := s.columns(ctx, table)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("there is no journal table %s: call store.Migrate, or run\n%s", table, strings.Join(s.d.JournalDDL(table), ";\n"))
	}
	var faults []error
	for _, want := range s.journalSpecs(def, found, columns) {
		faults = append(faults, s.verifyEntry(table, want, columns, found[UseVersion]))
	}
	faults = append(faults, s.unwritten(table, columns))
	d, ok := s.d.(IndexReader)
	if !ok {
		return errors.Join(faults...)
	}
	indexes, err := s.indexes(ctx, d, table)
	if err != nil {
		return err
	}
	for _, third := range []string{"version", "key"} {
		if mend := d.MendIndex(table, third, indexes); mend != "" {
			faults = append(faults, fmt.Errorf("journal table %s: its unique index over (machine, entity_id, %s), which keeps a request from being applied twice, is missing or not to be told from others: run\n%s", table, third, mend))
		}
	}
	for _, x := range indexes {
		if x.Unique && x.Folds {
			mend := s.copied(table)
			if drop := d.DropIndex(table, x.Name); drop != "" {
				mend = "run\n" + drop
			}
			faults = append(faults, fmt.Errorf("journal table %s: its unique index %s takes different texts for equal, and so one request for another: %s", table, x.Name, mend))
		}
	}
	return errors.Join(faults...)
}

// lacksColumn names the DDL for a column that entries can do without: those that may be
// NULL, and those that only tell requests under one key apart.
func (s *Store) lacksColumn(table, name string) error {
	add := ""
	switch line := s.journalLine(name); {
	case name == "fingerprint" || name == "attempt":
		add = line + " DEFAULT ''"
	case !strings.Contains(line, "NOT NULL") && !strings.Contains(line, "PRIMARY KEY"):
		add = line
	}
	if add == "" {
		return fmt.Errorf("journal table %s has no column %s, without which it is no journal: name another table under `journal:` in the definition", table, name)
	}
	return fmt.Errorf("journal table %s has no column %s: run\nALTER TABLE %s ADD COLUMN %s", table, name, QuoteTable(s.d, table), add)
}
