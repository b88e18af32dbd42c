package sqlexpr

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// plainColumns name every field's column like the field, in the dialect's quotes.
func plainColumns(d Dialect) map[string]Column {
	c := conn{dialect: d}
	out := map[string]Column{}
	for _, f := range testFields {
		out[f.Name] = Column{Name: c.quote(f.Name), Type: f.Type, Limits: f.limits, SQLType: f.types[d]}
	}
	return out
}

func condition(tb testing.TB, src string) *expr.Expr {
	tb.Helper()
	e, problems := expr.ParseCondition(src, testEnv)
	if e == nil {
		tb.Fatalf("%s: %v", src, problems)
	}
	return e
}

func assignment(tb testing.TB, name, src string) Assignment {
	tb.Helper()
	e, problems := expr.ParseAssignment(src, testEnv, fieldNamed(name).Var)
	if e == nil {
		tb.Fatalf("%s: %v", src, problems)
	}
	return Assignment{name, e}
}

// TestTexts pins the shortest texts: comparisons of ints have no guard, what is handed
// through is bound as it is.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		d    Dialect
		src  string
		want string
	}{
		{SQLite, "i1 == args.i", "typeof(`i1`) IN ('integer', 'null') AND (`i1` = ?1)"},
		{Postgres, "i1 == args.i", `("i1" = CAST($1 AS bigint))`},
		{MySQL, "i1 == args.i", "(`i1` = CAST(? AS SIGNED))"},
		{Postgres, "i1 in [args.i, 3, args.i]", `("i1" IN (CAST($1 AS bigint), CAST($2 AS bigint), CAST($1 AS bigint)))`},
		{MySQL, "i1 in [args.i, 3, args.i]", "(`i1` IN (CAST(? AS SIGNED), CAST(? AS SIGNED), CAST(? AS SIGNED)))"},
		{Postgres, "b1 and not args.b", `("b1" AND (NOT CAST($1 AS boolean)))`},
		{MySQL, "b1 or true", "((`b1` <> 0) OR TRUE)"},
		{Postgres, "s1 == 'x'", `(CAST("s1" AS text) COLLATE "C" = CAST($1 AS text))`},
		{MySQL, "s1 == 'x'", "(CAST(CONVERT(`s1` USING utf8mb4) AS BINARY) = CAST(? AS BINARY))"},
		{SQLite, "args.s == 'x'", "(?1 COLLATE BINARY = ?2)"},
		{Postgres, "i1 + 1 > 2", `((CAST("i1" AS numeric) + CAST(CAST($1 AS bigint) AS numeric)) BETWEEN -9223372036854775808 AND 9223372036854775807) IS NOT FALSE` +
			` AND ((CAST("i1" AS numeric) + CAST(CAST($1 AS bigint) AS numeric)) > CAST($2 AS bigint))`},
		{MySQL, "args.b and 1 / i1 == 1", "(? IS FALSE OR (CAST(`i1` AS DECIMAL(65,0)) <> 0) IS NOT FALSE AND ((TRUNCATE(CAST(CAST(? AS SIGNED) AS DECIMAL(65,0)) / NULLIF(CAST(`i1` AS DECIMAL(65,0)), 0), 0) + 0) BETWEEN -9223372036854775808 AND 9223372036854775807) IS NOT FALSE)" +
			" AND (? AND ((TRUNCATE(CAST(CAST(? AS SIGNED) AS DECIMAL(65,0)) / NULLIF(CAST(`i1` AS DECIMAL(65,0)), 0), 0) + 0) = CAST(? AS SIGNED)))"},
	} {
		b := New(c.d, plainColumns(c.d))
		st, err := b.Build(b.Condition(condition(t, c.src)))
		if err != nil || st.Text != c.want {
			t.Errorf("%s:\ngot  %s, %v\nwant %s", c.src, st.Text, err, c.want)
		}
		if c.d == MySQL && strings.Count(st.Text, "?") != len(st.Slots) {
			t.Errorf("%s has %d slots", st.Text, len(st.Slots))
		}
	}
}

// TestNoDataInText: whatever literals hold, they are bound.
func TestNoDataInText(t *testing.T) {
	t.Parallel()
	for _, d := range []Dialect{SQLite, Postgres, MySQL} {
		var texts []string
		for _, lit := range []string{"'a'", `'\'; DROP TABLE x; --'`, "'$1 ? :name @v ?1'", "'`\"\\\\'"} {
			b := New(d, plainColumns(d))
			set := b.Set([]Assignment{assignment(t, "s1", lit)})
			value, when := b.Branches([]Branch{{When: condition(t, "s1 == "+lit), State: "'; --"}}, expr.String)
			st, err := b.Build(set.Text + value + when + b.Condition(condition(t, "s1 + "+lit+" in ["+lit+", 'b']")))
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, st.Text)
		}
		for _, text := range texts[1:] {
			if text != texts[0] {
				t.Errorf("the text depends on a literal:\n%s\n%s", texts[0], text)
			}
		}
	}
}

func TestBind(t *testing.T) {
	t.Parallel()
	moment := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.FixedZone("", 3600))
	micros := moment.UnixMicro()
	d := decimal.RequireFromString("1.50")
	args := map[string]any{"d": d, "t": moment, "j": json.RawMessage(`{}`), "i": int64(7)}
	in := Binding{
		Arg: func(n string) any { return args[n] }, Field: func(string) any { return int64(9) },
		Now: moment, Own: []any{"id"},
	}
	for _, c := range []struct {
		d    Dialect
		want []any
	}{
		{SQLite, []any{"id", "1.5", "{}", moment.UTC().Truncate(time.Microsecond), int64(1500000), int64(2000000), micros, int64(7), int64(1800000000)}},
		{Postgres, []any{"id", "1.5", "{}", moment.UTC().Truncate(time.Microsecond), "2", int64(7), int64(1800000000)}},
		{MySQL, []any{"id", "1.5", "{}", "2026-01-02 02:04:05.678901", "1.5", "2", "2026-01-02 02:04:05.678901", "2026-01-02 02:04:05.678901", int64(7)}},
	} {
		b := New(c.d, plainColumns(c.d))
		text := b.Own(0)
		for _, a := range []Assignment{assignment(t, "d1", "args.d"), assignment(t, "j1", "args.j"), assignment(t, "tn1", "args.t")} {
			text += b.Set([]Assignment{a}).Text
		}
		for _, src := range []string{"args.d == 2", "args.t == now()", "1 == args.i"} {
			text += b.Value(condition(t, src))
		}
		if c.d != MySQL {
			text += b.Value(condition(t, "args.t - now() > duration('30m')"))
		}
		st, err := b.Build(text)
		if err != nil {
			t.Fatal(err)
		}
		got := st.Bind(nil, in)
		for _, want := range c.want {
			found := false
			for _, v := range got {
				found = found || reflect.DeepEqual(v, want)
			}
			if !found {
				t.Errorf("%v: %#v is not among %#v", c.d, want, got)
			}
		}
		if got[0] != "id" {
			t.Errorf("the first parameter is %v", got[0])
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	a := func(name, src string) Assignment { return assignment(t, name, src) }
	for _, c := range []struct {
		in     []Assignment
		want   string
		cyclic bool
	}{
		{nil, "", false},
		{[]Assignment{a("i1", "1"), a("i2", "i1")}, "i2 i1", false},
		{[]Assignment{a("i1", "i1 + 1"), a("i2", "2")}, "i1 i2", false},
		{[]Assignment{a("i1", "1"), a("i2", "i1"), a("in1", "i2"), a("i32", "in1")}, "i32 in1 i2 i1", false},
		{[]Assignment{a("i1", "i2"), a("i2", "i1")}, "i1 i2", true},
		{[]Assignment{a("s1", "'x'"), a("i1", "i2"), a("i2", "i32 ?? 0"), a("i32", "i1")}, "s1 i1 i2 i32", true},
	} {
		got, cyclic := Order(c.in, nil)
		var names []string
		for _, x := range got {
			names = append(names, x.Field)
		}
		if strings.Join(names, " ") != c.want || cyclic != c.cyclic {
			t.Errorf("got %v, %v; want %s, %v", names, cyclic, c.want, c.cyclic)
		}
	}
	cycle := []Assignment{a("i1", "i2"), a("i2", "i1")}
	if _, cyclic := Order(cycle, func(string) bool { return true }); cyclic {
		t.Error("bound values cannot be overwritten, so there is no cycle")
	}
}

func TestBuildErrors(t *testing.T) {
	t.Parallel()
	b := New(SQLite, nil)
	if _, err := b.Build(b.Condition(condition(t, "i1 == 1"))); err == nil || !strings.Contains(err.Error(), `"i1"`) {
		t.Error(err)
	}
	if _, err := New(SQLite, nil).Build(New(SQLite, nil).Own(0)); err == nil {
		t.Error("a text of another builder passes")
	}
}

func BenchmarkBind(b *testing.B) {
	bld := New(Postgres, plainColumns(Postgres))
	e, _ := expr.ParseCondition("i1 == args.i and s1 == args.s", testEnv)
	st, err := bld.Build("UPDATE t SET x = 1 WHERE id = " + bld.Own(0) + " AND " + bld.Condition(e))
	if err != nil {
		b.Fatal(err)
	}
	args := map[string]any{"i": int64(7), "s": "x"}
	in := Binding{Arg: func(n string) any { return args[n] }, Own: []any{"id"}}
	dst := make([]any, 0, 8)
	b.ReportAllocs()
	for b.Loop() {
		dst = st.Bind(dst[:0], in)
	}
}
