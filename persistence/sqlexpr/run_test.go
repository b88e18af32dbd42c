package sqlexpr

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// try runs a batch on one connection, in a transaction that is rolled back. It returns
// how many rows were updated.
func (c *conn) try(b *batch) (int, error) {
	ctx := context.Background()
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := c.insert(ctx, tx, b.rows); err != nil {
		return 0, err
	}
	if err := c.tryValues(ctx, tx, b); err != nil {
		return 0, err
	}
	if err := c.tryTotal(ctx, tx, b); err != nil {
		return 0, err
	}
	applied := 0
	rows := append([]row{}, b.rows...)
	for _, s := range b.steps {
		n, err := c.tryStep(ctx, tx, b, &s, rows)
		if err != nil {
			return 0, err
		}
		applied += n
	}
	return applied, nil
}

func (c *conn) insert(ctx context.Context, tx *sql.Tx, rows []row) error {
	b := New(c.dialect, nil)
	var own []any
	var tuples []string
	for i, r := range rows {
		var places []string
		for j, name := range c.names() {
			v := any(i)
			if name != "id" {
				v = stored(c.dialect, r[name])
			}
			if tm, ok := v.(time.Time); ok && (i+j)%3 == 0 && tm.Year() > 1 && tm.Year() < 9999 { // as a client in another zone writes it
				v = tm.In(time.FixedZone("", []int{8 * 3600, -11 * 3600, 20700}[i%3]))
			}
			places = append(places, b.Own(len(own)))
			own = append(own, v)
		}
		tuples = append(tuples, "("+strings.Join(places, ", ")+")")
	}
	st, err := b.Build("INSERT INTO " + c.table + " VALUES " + strings.Join(tuples, ", "))
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, st.Text, st.Bind(nil, Binding{Own: own})...)
	return err
}

func (c *conn) names() []string {
	out := []string{"id"}
	for _, f := range testFields {
		out = append(out, f.Name)
	}
	return append(out, "st")
}

func (b *batch) binding() Binding {
	return Binding{Arg: func(n string) any { return b.args[n] }, Now: b.now}
}

// tryValues selects check and value of every expression for every row.
func (c *conn) tryValues(ctx context.Context, tx *sql.Tx, b *batch) error {
	bld := New(c.dialect, c.columns(false))
	var list []string
	for _, a := range b.values {
		value, check := bld.Assign(Assignment{a.field.Name, a.e})
		list = append(list, orTrue(check), value)
	}
	for _, e := range b.holds {
		list = append(list, orTrue(bld.Check(e)), "("+bld.Condition(e)+") IS TRUE")
	}
	if len(list) == 0 {
		return nil
	}
	st, err := bld.Build("SELECT " + strings.Join(list, ", ") + " FROM " + c.table + " ORDER BY id")
	if err != nil {
		return err
	}
	res, err := tx.QueryContext(ctx, st.Text, st.Bind(nil, b.binding())...)
	if err != nil {
		return fmt.Errorf("%w\n%s\n%s", err, b.sources(), st.Text)
	}
	defer res.Close()
	for i := 0; res.Next(); i++ {
		raw := make([]any, len(list))
		ptrs := make([]any, len(list))
		for k := range raw {
			ptrs[k] = &raw[k]
		}
		if err := res.Scan(ptrs...); err != nil {
			return err
		}
		if err := b.compare(i, raw); err != nil {
			return err
		}
	}
	return res.Err()
}

func (b *batch) sources() string {
	var out []string
	for _, a := range b.values {
		out = append(out, a.field.Name+": "+a.e.Source)
	}
	for _, e := range b.holds {
		out = append(out, e.Source)
	}
	return strings.Join(out, "\n")
}

// compare holds one selected row against Go.
func (b *batch) compare(i int, raw []any) error {
	in := b.input(b.rows[i])
	for k, a := range b.values {
		want, wantErr := a.e.Assign(in, a.field.limits)
		if err := same(a.field.Type, raw[2*k], raw[2*k+1], want, wantErr); err != nil {
			return fmt.Errorf("%s: %s: %w\n%s", a.field.Name, a.e.Source, err, a.e.Explain(in))
		}
	}
	for k, e := range b.holds {
		k += len(b.values)
		want, wantErr := e.Holds(in)
		if err := same(expr.Bool, raw[2*k], raw[2*k+1], want, wantErr); err != nil {
			return fmt.Errorf("%s: %w\n%s", e.Source, err, e.Explain(in))
		}
	}
	return nil
}

// same holds a check and a value of SQL against a value and an error of Go.
func same(t expr.Type, rawCheck, rawValue, want any, wantErr error) error {
	check, err := canonical(expr.Bool, rawCheck)
	if err != nil || check == nil {
		return fmt.Errorf("the check is %v, %s", rawCheck, fmt.Sprint(err))
	}
	if check != (wantErr == nil) {
		return fmt.Errorf("the check is %v, Go says %v, %s", check, want, fmt.Sprint(wantErr))
	}
	if wantErr != nil {
		return nil //nolint:nilerr // both refuse, which is agreement
	}
	got, err := canonical(t, rawValue)
	if err != nil || !equal(t, got, want) {
		return fmt.Errorf("SQL says %v (%s), Go says %v", rawValue, fmt.Sprint(err), want)
	}
	return nil
}

// equal compares JSON loosely: jsonb writes numbers in its own way.
func equal(t expr.Type, a, b any) bool {
	if t == expr.JSON && a != nil && b != nil {
		return strings.ReplaceAll(fmt.Sprintf("%s", a), " ", "") == strings.ReplaceAll(fmt.Sprintf("%s", b), " ", "") || expr.Equal(t, a, b)
	}
	return expr.Equal(t, a, b)
}

// tryTotal evaluates every value unguarded in an UPDATE, in WHERE and in SET: no text
// may raise, whatever checks stand beside it.
func (c *conn) tryTotal(ctx context.Context, tx *sql.Tx, b *batch) error {
	bld := New(c.dialect, c.columns(false))
	var set, where []string
	for _, a := range b.values {
		value, _ := bld.Assign(Assignment{a.field.Name, a.e})
		set = append(set, " WHEN "+value+" IS NULL THEN 'old'")
		where = append(where, "CASE WHEN "+bld.Value(a.e)+" IS NULL THEN 1 ELSE 2 END > 0")
	}
	for _, e := range b.holds {
		where = append(where, "CASE WHEN "+bld.Value(e)+" IS NULL THEN 1 ELSE 2 END > 0")
	}
	if len(set) == 0 {
		return nil
	}
	st, err := bld.Build("UPDATE " + c.table + " SET st = CASE WHEN id < 0 THEN 'old'" + strings.Join(set, "") + " ELSE 'new' END WHERE " + all(where...))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, st.Text, st.Bind(nil, b.binding())...); err != nil {
		return fmt.Errorf("not total: %w\n%s\n%s", err, b.sources(), st.Text)
	}
	_, err = tx.ExecContext(ctx, "UPDATE "+c.table+" SET st = 'new'")
	return err
}

// tryStep runs one UPDATE and holds the whole table against Go.
func (c *conn) tryStep(ctx context.Context, tx *sql.Tx, b *batch, s *step, rows []row) (int, error) {
	bld := New(c.dialect, c.columns(s.bound))
	var set []string
	where := []string{"1 = 1"}
	if s.only >= 0 {
		where[0] = "id = " + bld.Own(0)
	}
	if s.when != nil {
		where = append(where, bld.Condition(s.when))
	}
	if len(s.branches) > 0 {
		value, condition := bld.Branches(s.branches, expr.String)
		set = append(set, c.quote("st")+" = "+value)
		where = append(where, condition)
	}
	var assignments []Assignment
	for _, a := range s.set {
		assignments = append(assignments, Assignment{a.field.Name, a.e})
	}
	fields := bld.Set(assignments)
	text := "UPDATE " + c.table + " SET " + join(", ", append(set, fields.Text)) + " WHERE " + all(append(where, fields.Check)...)
	if fields.Cyclic {
		text = "SET STATEMENT sql_mode = CONCAT(@@sql_mode, ',SIMULTANEOUS_ASSIGNMENT') FOR " + text
	}
	st, err := bld.Build(text)
	if err != nil {
		return 0, err
	}
	in := b.binding()
	if s.only >= 0 {
		in.Own, in.Field = []any{s.only}, func(n string) any { return rows[s.only][n] }
	}
	if _, err := tx.ExecContext(ctx, st.Text, st.Bind(nil, in)...); err != nil {
		return 0, fmt.Errorf("%w\n%s\n%s", err, s, st.Text)
	}
	applied := 0
	for i, r := range rows {
		if s.only >= 0 && s.only != i {
			continue
		}
		if after := s.run(b, r); after != nil {
			rows[i] = after
			applied++
		}
	}
	if err := c.holdTable(ctx, tx, rows); err != nil {
		return 0, fmt.Errorf("%w\nafter %s\n%s", err, s, st.Text)
	}
	return applied, nil
}

func (s *step) String() string {
	var out []string
	for _, a := range s.set {
		out = append(out, a.field.Name+" = "+a.e.Source)
	}
	for _, br := range s.branches {
		if br.When != nil {
			out = append(out, fmt.Sprintf("%v if %s", br.State, br.When.Source))
		}
	}
	if s.when != nil {
		out = append(out, "when "+s.when.Source)
	}
	return strings.Join(out, "\n")
}

// holdTable compares the table with what Go made of the rows.
func (c *conn) holdTable(ctx context.Context, tx *sql.Tx, rows []row) error {
	res, err := tx.QueryContext(ctx, "SELECT * FROM "+c.table+" ORDER BY id")
	if err != nil {
		return err
	}
	defer res.Close()
	names := c.names()
	for i := 0; res.Next(); i++ {
		raw := make([]any, len(names))
		ptrs := make([]any, len(names))
		for k := range raw {
			ptrs[k] = &raw[k]
		}
		if err := res.Scan(ptrs...); err != nil {
			return err
		}
		for k, name := range names[1:] {
			t := expr.String
			if name != "st" {
				t = fieldNamed(name).Type
			}
			got, err := canonical(t, raw[k+1])
			if f, ok := raw[k+1].(float64); ok && f == 0 && math.Signbit(f) {
				err = errors.New("-0 is stored")
			}
			if err != nil || !equal(t, got, rows[i][name]) {
				return fmt.Errorf("row %d, %s: SQL has %v (%s), Go %v", i, name, raw[k+1], fmt.Sprint(err), rows[i][name])
			}
		}
	}
	return res.Err()
}
