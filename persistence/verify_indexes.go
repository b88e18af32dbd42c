package persistence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
)

// IndexReader is a Dialect that can read the indexes of a table.
type IndexReader interface {
	// Indexes lists them all.
	Indexes(ctx context.Context, db *sqlx.DB, table string) ([]Index, error)
	// MendIndex gives the DDL after which a journal that is there has its unique index
	// over machine, entity_id and third; "" where it has.
	MendIndex(table, third string, indexes []Index) string
	// DropIndex gives the DDL that rids a table of an index; "" where nothing can.
	DropIndex(table, name string) string
}

// Index is an index of a table.
type Index struct {
	Name string
	// Unique: it refuses a second row of the same columns, whatever else is in the row, and
	// at once.
	Unique bool
	// Folds: it takes different bytes for equal where the columns themselves do not.
	Folds bool
	// Deferrable: it may be held against rows at the end of a transaction only.
	Deferrable bool
	// Columns are in lower case; one is "" where that is not a column as it stands: an
	// expression, or the beginning of a text.
	Columns []string
}

// IndexColumn is one column of an index.
type IndexColumn struct {
	Index      string `db:"index_name"`
	Column     string `db:"column_name"`
	Unique     bool   `db:"is_unique"`
	Folds      bool   `db:"folds"`
	Deferrable bool   `db:"is_deferrable"`
}

// GroupColumns makes indexes out of rows of index and column, in order.
func GroupColumns(rows []IndexColumn) []Index {
	var out []Index
	for i, r := range rows {
		if i == 0 || rows[i-1].Index != r.Index {
			out = append(out, Index{Name: r.Index, Unique: r.Unique, Deferrable: r.Deferrable})
		}
		last := &out[len(out)-1]
		last.Columns = append(last.Columns, strings.ToLower(r.Column))
		last.Folds = last.Folds || r.Folds
	}
	return out
}

// Keeps reports whether the index keeps a journal's machine, entity_id and third unique.
func (x Index) Keeps(third string) bool {
	have, want := slices.Sorted(slices.Values(x.Columns)), []string{"machine", "entity_id", third}
	slices.Sort(want)
	return x.Unique && !x.Folds && slices.Equal(have, want)
}

// FreeName gives name, or one like it that no index of the table has.
func FreeName(name string, indexes []Index) string {
	for slices.ContainsFunc(indexes, func(x Index) bool { return strings.EqualFold(x.Name, name) }) {
		name += "_unique"
	}
	return name
}

// verifyUnique finds a declared unique key of which the table can hold two rows: nothing
// else keeps two Creates at the same moment apart.
func (s *Store) verifyUnique(ctx context.Context, def *definitions.Machine, columns []Column) error {
	d, ok := s.d.(IndexReader)
	if !ok || len(def.Unique) == 0 {
		return nil
	}
	indexes, err := s.indexes(ctx, d, def.Table.Name)
	if err != nil {
		return err
	}
	var faults []error
	for _, fields := range def.Unique {
		if key := keyColumns(def, fields); !keptUnique(key, columns, indexes) {
			faults = append(faults, fmt.Errorf("table %s: no unique index keeps the declared key (%s), or it keeps some rows, a part of the text, or the end of a transaction only: run\n%s",
				def.Table.Name, strings.Join(key, ", "), s.uniqueIndex(def, key, indexes)))
		}
	}
	return errors.Join(faults...)
}

// keyColumns are the columns of a declared unique key.
func keyColumns(def *definitions.Machine, fields []string) []string {
	out := make([]string, len(fields))
	for i, name := range fields {
		f, _ := def.Field(name)
		out[i] = f.Column
	}
	return out
}

// keptUnique reports whether two rows cannot have the key: what is unique in some of its
// columns is unique in all. An index that folds keeps the key too, and others with it.
func keptUnique(key []string, columns []Column, indexes []Index) bool {
	inKey := func(column string) bool {
		return slices.ContainsFunc(key, func(k string) bool { return strings.EqualFold(k, column) })
	}
	return slices.ContainsFunc(columns, func(c Column) bool { return c.UniqueAlone && inKey(c.Name) }) ||
		slices.ContainsFunc(indexes, func(x Index) bool {
			return x.Unique && !slices.ContainsFunc(x.Columns, func(column string) bool { return !inKey(column) })
		})
}

// uniqueIndex is the DDL of the index that a declared unique key lacks.
func (s *Store) uniqueIndex(def *definitions.Machine, key []string, indexes []Index) string {
	var quoted []string
	for _, column := range key {
		quoted = append(quoted, s.d.Quote(column))
	}
	list := " (" + strings.Join(quoted, ", ") + ")"
	if s.d.Name() != "sqlite" {
		return "ALTER TABLE " + QuoteTable(s.d, def.Table.Name) + " ADD UNIQUE" + list
	}
	schema, name, qualified := strings.Cut(def.Table.Name, ".")
	before := s.d.Quote(schema) + "."
	if !qualified {
		before, name = "", def.Table.Name
	}
	return "CREATE UNIQUE INDEX " + before + s.d.Quote(FreeName(name+"_"+strings.Join(key, "_"), indexes)) + " ON " + s.d.Quote(name) + list
}

// deferrable reports whether some index of a table is, which no INSERT may then run into
// in silence.
func (s *Store) deferrable(ctx context.Context, table string) (bool, error) {
	d, ok := s.d.(IndexReader)
	if !ok {
		return false, nil
	}
	indexes, err := s.indexes(ctx, d, table)
	return slices.ContainsFunc(indexes, func(x Index) bool { return x.Deferrable }), err
}

func (s *Store) indexes(ctx context.Context, d IndexReader, table string) (indexes []Index, err error) {
	err = s.look(ctx, "indexes", table, func() (err error) {
		indexes, err = d.Indexes(ctx, s.reader, table)
		return err
	})
	return indexes, err
}
