package persistence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
)

// verifyJournal finds a journal that lacks a column, or one of the indexes on which
// everything rests: that no version is reached twice, and no request applied twice.
func (s *Store) verifyJournal(ctx context.Context, table string) error {
	columns, err := s.columns(ctx, table)
	if err != nil {
		return err
	}
	if len(columns) == 0 {
		return fmt.Errorf("there is no journal table %s: call store.Migrate, or run\n%s", table, strings.Join(s.d.JournalDDL(table), ";\n"))
	}
	var faults []error
	for _, name := range append([]string{"seq", "published_at"}, journalColumns...) {
		if !slices.ContainsFunc(columns, func(c Column) bool { return strings.EqualFold(c.Name, name) }) {
			faults = append(faults, s.lacksColumn(table, name))
		}
	}
	d, ok := s.d.(IndexReader)
	if !ok {
		return errors.Join(faults...)
	}
	var indexes []Index
	err = s.look(ctx, "indexes", table, func() (err error) {
		indexes, err = d.Indexes(ctx, s.reader, table)
		return err
	})
	if err != nil {
		return err
	}
	for _, third := range []string{"version", "key"} {
		if mend := d.MendIndex(table, third, indexes); mend != "" {
			faults = append(faults, fmt.Errorf("journal table %s: its unique index over (machine, entity_id, %s), which keeps a request from being applied twice, is missing or not to be told from others: run\n%s", table, third, mend))
		}
	}
	return errors.Join(faults...)
}

// lacksColumn names the DDL for a column that entries can do without: those that may be
// NULL, and those that only tell requests under one key apart.
func (s *Store) lacksColumn(table, name string) error {
	add := ""
	for _, line := range s.d.JournalColumns() {
		if !strings.HasPrefix(line, s.d.Quote(name)+" ") {
			continue
		}
		switch {
		case name == "fingerprint" || name == "attempt":
			add = line + " DEFAULT ''"
		case !strings.Contains(line, "NOT NULL") && !strings.Contains(line, "PRIMARY KEY"):
			add = line
		}
	}
	if add == "" {
		return fmt.Errorf("journal table %s has no column %s, without which it is no journal: name another table under `journal:` in the definition", table, name)
	}
	return fmt.Errorf("journal table %s has no column %s: run\nALTER TABLE %s ADD COLUMN %s", table, name, QuoteTable(s.d, table), add)
}

// IndexReader is a Dialect that can read the indexes of a table.
type IndexReader interface {
	// Indexes lists them all.
	Indexes(ctx context.Context, db *sqlx.DB, table string) ([]Index, error)
	// MendIndex gives the DDL after which a journal that is there has its unique index
	// over machine, entity_id and third; "" where it has.
	MendIndex(table, third string, indexes []Index) string
}

// Index is an index of a table.
type Index struct {
	Name string
	// Columns are what it keeps unique. One is "" where that is not a column as it
	// stands: an expression, the beginning of a text, a comparison other than by bytes;
	// and where the index does not keep every row unique.
	Columns []string
}

// IndexColumn is one column of an index.
type IndexColumn struct {
	Index  string `db:"index_name"`
	Column string `db:"column_name"`
}

// GroupColumns makes indexes out of rows of index and column, in order.
func GroupColumns(rows []IndexColumn) []Index {
	var out []Index
	for i, r := range rows {
		if i == 0 || rows[i-1].Index != r.Index {
			out = append(out, Index{Name: r.Index})
		}
		last := &out[len(out)-1]
		last.Columns = append(last.Columns, strings.ToLower(r.Column))
	}
	return out
}

// Keeps reports whether the index keeps a journal's machine, entity_id and third unique.
func (x Index) Keeps(third string) bool {
	have, want := slices.Sorted(slices.Values(x.Columns)), []string{"machine", "entity_id", third}
	slices.Sort(want)
	return slices.Equal(have, want)
}

// FreeName gives name, or one like it that no index of the table has.
func FreeName(name string, indexes []Index) string {
	for slices.ContainsFunc(indexes, func(x Index) bool { return strings.EqualFold(x.Name, name) }) {
		name += "_unique"
	}
	return name
}
