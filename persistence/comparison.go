package persistence

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
)

// Comparison compares a column, given by its quoted name, with a value. Each call of param
// gives a placeholder of that value.
type Comparison func(column string, param func() string) string

// Comparer is a Dialect under which a unique index may take texts for equal that differ in
// their bytes. What an INSERT runs into has to be found again by the same measure.
type Comparer interface {
	// Comparisons say how the unique index over text columns and others compares each of
	// them; nil where that is like [Dialect.TextEqual].
	Comparisons(ctx context.Context, db *sqlx.DB, table string, columns []Column) ([]Comparison, error)
}

// comparisons are those of the declared unique keys, nil where there is nothing to say.
func (s *Store) comparisons(ctx context.Context, def *definitions.Machine, fields []Column) ([][]Comparison, error) {
	d, ok := s.d.(Comparer)
	if !ok {
		return nil, nil
	}
	out := make([][]Comparison, len(def.Unique))
	for i, key := range def.Unique {
		var columns []Column
		var text []bool
		for _, name := range key {
			at := slices.IndexFunc(def.Fields, func(f definitions.Field) bool { return f.Name == name })
			columns, text = append(columns, fields[at]), append(text, def.Fields[at].Type == expr.String)
		}
		err := s.look(ctx, "unique indexes", def.Table.Name, func() (err error) {
			out[i], err = d.Comparisons(ctx, s.reader, def.Table.Name, columns)
			return err
		})
		if err != nil {
			return nil, err
		}
		for n := range columns {
			if !text[n] {
				out[i][n] = nil
			}
		}
	}
	return out, nil
}
