package storetest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/engine"
)

// SQL is a [Backend] over database/sql.
type SQL struct {
	Opened engine.Store
	// Pool is the store's own pool: transactions of a caller begin there.
	Pool *sqlx.DB
	// More are further pools of the store's, which must be idle after a test.
	More []*sqlx.DB
	// Beside is a pool of somebody else's over the same database. The suite reads
	// and bends rows through it.
	Beside *sqlx.DB
	// Quote quotes a table or column name; Param is the n-th placeholder.
	Quote func(ident string) string
	Param func(n int) string
	// BeginText opens a transaction on a *sql.Conn; "BEGIN" where empty.
	BeginText string
	// OpenAgain gives the store and its pools anew, over the same data.
	OpenAgain func(t testing.TB) SQL
	// LoosenText gives the statements for [Backend.Loosen].
	LoosenText func(def *definitions.Machine) []string
	// RefuseText gives the statements for a trigger that refuses every UPDATE of a table,
	// given by its quoted name.
	RefuseText func(table string) []string
}

// Store returns the store under test.
func (s *SQL) Store() engine.Store { return s.Opened }

// Insert adds a row.
func (s *SQL) Insert(ctx context.Context, def *definitions.Machine, row engine.Row) error {
	var columns, params []string
	var args []any
	for _, name := range slices.Sorted(maps.Keys(row)) {
		columns = append(columns, s.Quote(columnOf(def, name)))
		args = append(args, bindRaw(row[name]))
		params = append(params, s.Param(len(args)))
	}
	return s.exec(ctx, "INSERT INTO "+s.table(def.Table.Name)+" ("+strings.Join(columns, ", ")+") VALUES ("+strings.Join(params, ", ")+")", args...)
}

// Update sets some columns of a row.
func (s *SQL) Update(ctx context.Context, def *definitions.Machine, id string, set engine.Row) error {
	var parts []string
	var args []any
	for _, name := range slices.Sorted(maps.Keys(set)) {
		args = append(args, bindRaw(set[name]))
		parts = append(parts, s.Quote(columnOf(def, name))+" = "+s.Param(len(args)))
	}
	args = append(args, s.id(def, id))
	return s.exec(ctx, "UPDATE "+s.table(def.Table.Name)+" SET "+strings.Join(parts, ", ")+" WHERE "+s.Quote(def.Table.ID.Name)+" = "+s.Param(len(args)), args...)
}

// Delete removes a row.
func (s *SQL) Delete(ctx context.Context, def *definitions.Machine, id string) error {
	return s.exec(ctx, "DELETE FROM "+s.table(def.Table.Name)+" WHERE "+s.Quote(def.Table.ID.Name)+" = "+s.Param(1), s.id(def, id))
}

// exec runs a statement that must touch one row.
func (s *SQL) exec(ctx context.Context, text string, args ...any) error {
	res, err := s.Beside.ExecContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("%s: touched %d rows, want 1", text, n))
	}
	return nil
}

// Rows reads the table.
func (s *SQL) Rows(ctx context.Context, def *definitions.Machine) (map[string]RawRow, error) {
	out := map[string]RawRow{}
	text := "SELECT " + s.Quote(def.Table.ID.Name) + ", " + s.Quote(def.Table.Status.Name) + ", " + s.Quote(def.Table.Version) + " FROM " + s.table(def.Table.Name)
	err := s.query(ctx, text, nil, func(rows *sql.Rows) error {
		var id, status, version any
		if err := rows.Scan(&id, &status, &version); err != nil {
			return err
		}
		out[fmt.Sprint(plain(id))] = RawRow{Status: plain(status), Version: plain(version)}
		return nil
	})
	return out, err
}

// Journal reads the machine's journal.
func (s *SQL) Journal(ctx context.Context, def *definitions.Machine) (map[string][]RawEntry, error) {
	out := map[string][]RawEntry{}
	if !def.Journal.Enabled {
		return out, nil
	}
	text := "SELECT entity_id, version, transition, from_state, to_state, " + s.Quote("key") + ", topic FROM " + s.table(def.Journal.Table) +
		" WHERE machine = " + s.Param(1) + " ORDER BY entity_id, version"
	err := s.query(ctx, text, []any{def.Name}, func(rows *sql.Rows) error {
		var id string
		var e RawEntry
		var from, topic sql.NullString
		if err := rows.Scan(&id, &e.Version, &e.Transition, &from, &e.To, &e.Key, &topic); err != nil {
			return err
		}
		e.From, e.Topic = from.String, topic.String
		out[id] = append(out[id], e)
		return nil
	})
	return out, err
}

func (s *SQL) query(ctx context.Context, text string, args []any, scan func(rows *sql.Rows) error) error {
	rows, err := s.Beside.QueryContext(ctx, text, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says it
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Begin opens a transaction as a caller would.
func (s *SQL) Begin(ctx context.Context, form TxForm, level sql.IsolationLevel) (*Tx, error) {
	switch form {
	case StdTx:
		tx, err := s.Pool.DB.BeginTx(ctx, &sql.TxOptions{Isolation: level})
		if err != nil {
			return nil, err
		}
		return &Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
	case SqlxTx:
		tx, err := s.Pool.BeginTxx(ctx, &sql.TxOptions{Isolation: level})
		if err != nil {
			return nil, err
		}
		return &Tx{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}, nil
	case Conn:
		return s.beginConn(ctx)
	case OwnTx: // a store over database/sql has none
	}
	return nil, fmt.Errorf("no transactions of form %q", form)
}

func (s *SQL) beginConn(ctx context.Context) (*Tx, error) {
	conn, err := s.Pool.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	begin := s.BeginText
	if begin == "" {
		begin = "BEGIN"
	}
	if _, err := conn.ExecContext(ctx, begin); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	end := func(text string) func() error {
		return func() error {
			_, err := conn.ExecContext(context.WithoutCancel(ctx), text)
			return errors.Join(err, conn.Close())
		}
	}
	return &Tx{Tx: conn, Commit: end("COMMIT"), Rollback: end("ROLLBACK")}, nil
}

// InUse counts the store's connections that somebody holds.
func (s *SQL) InUse() int {
	n := s.Pool.Stats().InUse
	for _, db := range s.More {
		n += db.Stats().InUse
	}
	return n
}

// Reopen opens the store again over the same data.
func (s *SQL) Reopen(t testing.TB) { *s = s.OpenAgain(t) }

// Loosen runs LoosenText.
func (s *SQL) Loosen(t testing.TB, def *definitions.Machine) {
	t.Helper()
	for _, text := range s.LoosenText(def) {
		if _, err := s.Beside.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("loosen: %s: %v", text, err)
		}
	}
}

// table quotes a name that may be qualified by a schema.
func (s *SQL) table(name string) string {
	if schema, table, ok := strings.Cut(name, "."); ok {
		return s.Quote(schema) + "." + s.Quote(table)
	}
	return s.Quote(name)
}

// id is an id in its column's type.
func (s *SQL) id(def *definitions.Machine, id string) any {
	if def.Table.ID.Type == expr.Int {
		v, err := expr.ParseText(expr.Int, -1, id)
		if err == nil {
			return v
		}
	}
	return id
}

// columnOf gives the column for a name of the definition.
func columnOf(def *definitions.Machine, name string) string {
	switch name {
	case "id":
		return def.Table.ID.Name
	case "status":
		return def.Table.Status.Name
	case "version":
		return def.Table.Version
	}
	if f, ok := def.Field(name); ok {
		return f.Column
	}
	return name
}

// bindRaw gives a value the form drivers take.
func bindRaw(v any) any {
	switch v := v.(type) {
	case decimal.Decimal:
		return v.String()
	case json.RawMessage:
		return string(v)
	}
	return v
}

// plain makes what drivers read comparable.
func plain(v any) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case int:
		return int64(v)
	case int32:
		return int64(v)
	}
	return v
}
