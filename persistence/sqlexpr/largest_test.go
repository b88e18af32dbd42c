package sqlexpr

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

// largest wraps an expression until the language takes no more, and returns the
// largest that it took.
func largest(tb testing.TB, target expr.Var, innermost string, wrap func(inner string) string) *expr.Expr {
	tb.Helper()
	var last *expr.Expr
	for src := innermost; ; src = wrap(src) {
		e, problems := expr.ParseAssignment(src, testEnv, target)
		if e == nil {
			if last == nil {
				tb.Fatalf("%s: %v", src, problems)
			}
			return last
		}
		last = e
	}
}

// TestLargestExpressions runs the largest expression of every shape: random ones are
// too small to find what grows out of hand. A divisor inside a divisor cost MariaDB
// 2^n once.
func TestLargestExpressions(t *testing.T) {
	conns := connect(t)
	wraps := map[string]struct {
		t     expr.Type
		inner string
		wrap  func(string) string
	}{
		"int sum":             {expr.Int, "i1", func(s string) string { return s + " + in1" }},
		"int sum right":       {expr.Int, "i1", func(s string) string { return "in1 + (" + s + ")" }},
		"int product":         {expr.Int, "i1", func(s string) string { return s + " * args.i" }},
		"int product of args": {expr.Int, "args.i", func(s string) string { return s + " * args.i" }},
		"int quotient":        {expr.Int, "i1", func(s string) string { return s + " / i2" }},
		"int remainder":       {expr.Int, "i1", func(s string) string { return s + " % i2" }},
		"int mixed":           {expr.Int, "i1", func(s string) string { return "-(" + s + " / i2 * 7 % i1 - in1)" }},
		"int negation":        {expr.Int, "i1", func(s string) string { return "-(" + s + ")" }},
		"int choice":          {expr.Int, "i1", func(s string) string { return "(b1 ? " + s + " + 1 : in1 - i2)" }},
		"int choice by value": {expr.Int, "i1", func(s string) string { return "(" + s + " > i2 ? i1 + 1 : in1 - i2)" }},
		"int default":         {expr.Int, "in1", func(s string) string { return "(in1 ?? (" + s + " + in1))" }},
		"int default left":    {expr.Int, "in1", func(s string) string { return "((" + s + " + in1) ?? in1)" }},
		"float sum":           {expr.Float, "f1", func(s string) string { return s + " + fn1" }},
		"float product":       {expr.Float, "f1", func(s string) string { return s + " * fn1" }},
		"float quotient":      {expr.Float, "f1", func(s string) string { return s + " / fn1" }},
		"float choice":        {expr.Float, "f1", func(s string) string { return "f1 + (b1 ? " + s + " : fn1)" }},
		"float default":       {expr.Float, "fn1", func(s string) string { return "f1 - (fn1 ?? (" + s + "))" }},
		"decimal sum":         {expr.Decimal, "d1", func(s string) string { return s + " - dn1" }},
		"decimal product":     {expr.Decimal, "d1", func(s string) string { return s + " * i1" }},
		"decimal choice":      {expr.Decimal, "d1", func(s string) string { return "(" + s + " > dn1 ? d1 + 1 : dn1)" }},
		"string join":         {expr.String, "s1", func(s string) string { return s + " + s20" }},
		"string choice":       {expr.String, "s1", func(s string) string { return "(b1 ? " + s + " + sci : sn1 + s1)" }},
		"time sum":            {expr.Time, "t1", func(s string) string { return s + " + duration('1h')" }},
		"time sum down":       {expr.Time, "t1", func(s string) string { return s + " - duration('876600h')" }},
		"time choice":         {expr.Time, "t1", func(s string) string { return "(" + s + " < now() ? t1 + duration('1s') : tn1)" }},
		"and":                 {expr.Bool, "b1", func(s string) string { return s + " and i1 + 1 > in1" }},
		"or right":            {expr.Bool, "b1", func(s string) string { return "(i1 + 1 > in1 or " + s + ")" }},
		"not":                 {expr.Bool, "b1", func(s string) string { return "not " + s }},
		"and of divisions":    {expr.Bool, "b1", func(s string) string { return "(1 / i1 == in1 and (" + s + " or i1 % i2 == 0))" }},
		"comparison":          {expr.Bool, "b1", func(s string) string { return "((" + s + ") == (i1 + i2 > in1))" }},
		"list":                {expr.Bool, "i1 in [1]", func(s string) string { return strings.TrimSuffix(s, "]") + ", in1 + 1]" }},
		"list of strings":     {expr.Bool, "s1 in ['x']", func(s string) string { return strings.TrimSuffix(s, "]") + ", s20]" }},
		"choice of bools":     {expr.Bool, "b1", func(s string) string { return "(i1 / i2 > 0 ? " + s + " : bn1)" }},
		"choice in condition": {expr.Bool, "b1", func(s string) string { return "((" + s + ") ? bn1 : i1 + 1 > 0)" }},
		"parentheses":         {expr.Int, "i1", func(s string) string { return "(" + s + ")" }},
	}
	var b batch
	g := generator{newRand(1)}
	b = g.batch()
	for name, w := range wraps {
		target := expr.Var{Name: "x", Type: w.t, Nullable: true, Scale: -1}
		e := largest(t, target, w.inner, w.wrap)
		b.values, b.holds, b.steps = nil, nil, nil
		for _, f := range testFields {
			if f.Type == w.t && f.Nullable {
				b.values = []assigned{{f, e}}
				b.steps = []step{{only: -1, set: b.values}}
			}
		}
		if w.t == expr.Bool {
			b.holds = []*expr.Expr{e}
			b.steps = append(b.steps, step{only: -1, when: e, branches: []Branch{{When: e, State: "a"}, {When: e, State: "b"}}})
		}
		for _, c := range conns {
			begin := time.Now()
			if _, err := c.try(&b); err != nil {
				t.Errorf("%s on %s: %.2000v", name, c.name, err)
			}
			if took := time.Since(begin); took > 3*time.Second {
				t.Errorf("%s on %s takes %v", name, c.name, took)
			}
		}
	}
}

// TestRejectionLeavesTheTransactionUsable: no error reaches the caller's transaction,
// on PostgreSQL it would end it.
func TestRejectionLeavesTheTransactionUsable(t *testing.T) {
	for _, c := range connect(t) {
		for _, src := range []string{"9223372036854775807 + args.i", "args.i / (args.i - args.i)", "1 / in1", "i1 * 9223372036854775807 * 9223372036854775807"} {
			g := generator{newRand(2)}
			b := g.batch()
			b.args["i"] = int64(5)
			for i := range b.rows {
				b.rows[i]["i1"], b.rows[i]["in1"] = int64(3), int64(0)
			}
			e, problems := expr.ParseAssignment(src, testEnv, expr.Var{Name: "i32", Type: expr.Int, Nullable: true})
			if e == nil {
				t.Fatal(problems)
			}
			b.values, b.holds = nil, nil
			f := fieldNamed("i32")
			b.steps = []step{{only: -1, set: []assigned{{f, e}}}, {only: -1, branches: []Branch{{State: "reached"}}}}
			n, err := c.try(&b)
			if err != nil || n != rowsPerBatch {
				t.Errorf("%s on %s: %d rows, %v", src, c.name, n, err)
			}
		}
	}
}

// TestValuesOfOtherClients: what another client left in a column and no type allows is
// rejected when it is read, and never raises an error.
func TestValuesOfOtherClients(t *testing.T) {
	ctx := t.Context()
	for _, c := range connect(t) {
		junk := map[Dialect][]struct{ field, value string }{
			SQLite: {
				{"i1", "'abc'"},
				{"i1", "1.5"},
				{"i1", "x'00'"},
				{"f1", "9e999"},
				{"f1", "'abc'"},
				{"s1", "x'41'"},
				{"b1", "'yes'"},
				{"t1", "'soon'"},
				{"t1", "5"},
				{"t1", "''"},
				{"t1", "'0001-01-01 00:00:00+00:00'"},
				{"d1", "'1e3'"},
				{"d1", "'0.1234567'"},
				{"d1", "'1000000000000'"},
				{"d1", "''"},
				{"d1", "'-'"},
				{"d1", "'1-2'"},
				{"d1", "'1.2.3'"},
				{"d1", "'NaN'"},
				{"d1", "x'31'"},
				{"d1", "'99999999999999999999'"},
			},
			Postgres: {
				{"f1", "'NaN'"},
				{"f1", "'Infinity'"},
				{"f1", "'-Infinity'"},
				{"t1", "'infinity'"},
				{"t1", "'-infinity'"},
				{"t1", "'0044-03-15 BC'"},
				{"t1", "'200000-01-01'"},
				{"d1", "'NaN'"},
				{"dn1", "'NaN'"},
				{"dn1", "0.1234567"},
				{"dn1", "1e12"},
				{"dn1", "1e1000"},
				{"dn1", "'Infinity'"},
			},
			MySQL: {{"t1", "'0000-00-00 00:00:00'"}},
		}[c.dialect]
		for _, j := range junk {
			g := generator{newRand(3)}
			b := g.batch()
			if err := c.seed(ctx, b.rows[:1], j.field, j.value); err != nil {
				t.Errorf("%s on %s: %v", j, c.name, err)
				continue
			}
			for _, src := range readings(j.field) {
				e, problems := expr.ParseCondition(src, testEnv)
				if e == nil {
					t.Fatal(src, problems)
				}
				bld := New(c.dialect, c.columns(false))
				text := "UPDATE " + c.table + " SET st = 'read' WHERE " + bld.Condition(e)
				if n, err := c.update(ctx, bld, text, &b); err != nil || n != 0 {
					t.Errorf("%s on %s, %s: %d rows, %v", j, c.name, src, n, err)
				}
			}
		}
		mustExec(t, c.db, "DELETE FROM "+c.table)
	}
}

// readings are conditions that would be true for some value of a field.
func readings(name string) []string {
	f := fieldNamed(name)
	out := []string{fmt.Sprintf("%s == %s or true", name, name)}
	if f.Nullable {
		out = append(out, name+" != nil")
	}
	switch f.Type {
	case expr.Int, expr.Float, expr.Decimal:
		out = append(out, name+" + 1 != "+name, "-"+name+" <= 0 or -"+name+" > 0", name+" - "+name+" == 0")
	case expr.Time:
		out = append(out, name+" + duration('876600h') > "+name, name+" - now() < duration('1s') or true", name+" - duration('876600h') < "+name)
	case expr.String:
		out = append(out, name+" + 'x' != ''")
	}
	return out
}

// seed leaves one row with a raw value in a column.
func (c *conn) seed(ctx context.Context, rows []row, field, raw string) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, "DELETE FROM "+c.table); err != nil {
		return err
	}
	if err := c.insert(ctx, tx, rows); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+c.table+" SET "+c.quote(field)+" = "+raw); err != nil {
		return err
	}
	return tx.Commit()
}

func (c *conn) update(ctx context.Context, bld *Builder, text string, b *batch) (int64, error) {
	st, err := bld.Build(text)
	if err != nil {
		return 0, err
	}
	res, err := c.db.ExecContext(ctx, st.Text, st.Bind(nil, b.binding())...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}
