package persistence

import (
	"context"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"
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

func (s *Store) indexes(ctx context.Context, d IndexReader, table string) (indexes []Index, err error) {
	err = s.look(ctx, "indexes", table, func() (err error) {
		indexes, err = d.Indexes(ctx, s.reader, table)
		return err
	})
	return indexes, err
}
