package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// Put writes a row as somebody else than the engine would: without a journal entry,
// and over whatever is there. The names are the definition's: "id", "status",
// "version" and the fields. Status is what the column is to hold, a state's value or
// anything else; it is the first initial state's, and the version 1, where the row is
// new and does not say. A field that is not given keeps its value, or gets its default.
//
// It waits for open transactions like every writer.
func (s *Store) Put(ctx context.Context, def *definitions.Machine, values engine.Row) error {
	id, err := seedID(def, values["id"])
	if err != nil {
		return fmt.Errorf("memory: Put: %w", err)
	}
	given := row{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		column, v, err := seedValue(def, name, values[name])
		if err != nil {
			return fmt.Errorf("memory: Put %q: %w", id, err)
		}
		if name != "id" {
			given[column] = v
		}
	}
	return s.seed(ctx, func(l *layer) error {
		k := rowKey{def.Table.Name, id}
		r := maps.Clone(l.row(k))
		if r == nil {
			r = fresh(def)
		}
		maps.Copy(r, given)
		l.rows[k] = r
		return nil
	})
}

// Delete removes a row and leaves its journal, as DELETE in a database does. It is no
// error if there is none.
func (s *Store) Delete(ctx context.Context, def *definitions.Machine, id string) error {
	return s.seed(ctx, func(l *layer) error {
		l.rows[rowKey{def.Table.Name, id}] = nil
		return nil
	})
}

// seed writes in a transaction of its own.
func (s *Store) seed(ctx context.Context, write func(l *layer) error) error {
	tx, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if _, err := tx.step(func(l *layer) (bool, error) { return true, write(l) }); err != nil {
		return err
	}
	return tx.Commit()
}

// fresh is a row as a database's defaults make it.
func fresh(def *definitions.Machine) row {
	s, _ := def.State(def.Initial[0])
	r := row{def.Table.Status.Name: s.Value, def.Table.Version: int64(1)}
	for i := range def.Fields {
		f := &def.Fields[i]
		switch {
		case f.Default == nil:
		case f.Default.Now:
			r[f.Column] = time.Now().UTC().Truncate(time.Microsecond) //nolint:forbidigo // as a database would: by its own clock, not the engine's
		default:
			r[f.Column] = own(f.Default.Value)
		}
	}
	return r
}

func seedID(def *definitions.Machine, v any) (string, error) {
	if n, err := expr.Coerce(expr.Int, -1, v); err == nil && n != nil {
		return fmt.Sprint(n), nil
	}
	c, err := expr.Coerce(expr.String, -1, v)
	id, ok := c.(string)
	if err != nil || !ok || id == "" {
		return "", fmt.Errorf("id: want a string or an integer, got %T", v)
	}
	if def.Table.ID.Type == expr.Int {
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || strconv.FormatInt(n, 10) != id {
			return "", fmt.Errorf("id %q is not an integer", id)
		}
	}
	return id, nil
}

// seedValue gives the column for a name, and the value in the form rows hold.
func seedValue(def *definitions.Machine, name string, v any) (column string, _ any, err error) {
	t, scale := expr.Int, -1
	switch name {
	case "id":
		return def.Table.ID.Name, v, nil
	case "version":
		column = def.Table.Version
	case "status":
		column, t = def.Table.Status.Name, def.Table.Status.Type
	default:
		f, ok := def.Field(name)
		if !ok {
			return "", nil, fmt.Errorf("the definition has no field %q", name)
		}
		column, t, scale = f.Column, f.Type, f.Scale
	}
	c, err := expr.Coerce(t, scale, v)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", name, err)
	}
	return column, own(c), nil
}
