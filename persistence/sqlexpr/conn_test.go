package sqlexpr

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3"
	"github.com/shopspring/decimal"

	"github.com/fsmgen/fsmgen/definitions/expr"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

// A field of the test table, with its column type in each dialect.
type testField struct {
	expr.Var
	limits expr.Limits
	types  [3]string // SQLite, PostgreSQL, MySQL
}

const (
	myText = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
	myFold = "VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
)

// testFields holds every type, plain and nullable, and columns that are narrower than
// their type or compare without regard to case.
var testFields = []testField{
	field("i1", expr.Int, false, expr.Limits{}, "INTEGER", "bigint", "BIGINT"),
	field("i2", expr.Int, false, expr.Limits{}, "INTEGER", "bigint", "BIGINT"),
	field("in1", expr.Int, true, expr.Limits{}, "INTEGER", "bigint", "BIGINT"),
	field("i32", expr.Int, true, expr.Limits{Min: -1 << 31, Max: 1<<31 - 1}, "INTEGER", "integer", "INT"),
	field("f1", expr.Float, false, expr.Limits{}, "REAL", "double precision", "DOUBLE"),
	field("fn1", expr.Float, true, expr.Limits{}, "REAL", "double precision", "DOUBLE"),
	field("s1", expr.String, false, expr.Limits{Length: 255}, "TEXT", "text", myText),
	field("sn1", expr.String, true, expr.Limits{Length: 255}, "TEXT", "varchar(255)", myText),
	field("sci", expr.String, true, expr.Limits{Length: 255}, "TEXT COLLATE NOCASE", `text COLLATE "und-x-icu"`, myFold),
	field("s20", expr.String, true, expr.Limits{Length: 20}, "TEXT COLLATE RTRIM", "varchar(20)", "VARCHAR(20) CHARACTER SET utf8mb4"),
	field("b1", expr.Bool, false, expr.Limits{}, "BOOLEAN", "boolean", "TINYINT(1)"),
	field("bn1", expr.Bool, true, expr.Limits{}, "BOOLEAN", "boolean", "TINYINT(1)"),
	field("t1", expr.Time, false, expr.Limits{}, "TIMESTAMP", "timestamptz", "DATETIME(6)"),
	field("tn1", expr.Time, true, expr.Limits{}, "TIMESTAMP", "timestamptz", "DATETIME(6)"),
	field("d1", expr.Decimal, false, expr.Limits{}, "TEXT", "numeric(18,6)", "DECIMAL(18,6)"),
	field("dn1", expr.Decimal, true, expr.Limits{}, "TEXT", "numeric", "DECIMAL(18,6)"),
	field("d10", expr.Decimal, true, expr.Limits{Precision: 10, Scale: 2}, "TEXT", "numeric(10,2)", "DECIMAL(10,2)"),
	field("y1", expr.Bytes, false, expr.Limits{}, "BLOB", "bytea", "BLOB"),
	field("yn1", expr.Bytes, true, expr.Limits{}, "BLOB", "bytea", "BLOB"),
	field("j1", expr.JSON, false, expr.Limits{}, "TEXT", "jsonb", "JSON"),
	field("jn1", expr.JSON, true, expr.Limits{}, "TEXT", "json", "JSON"),
}

func field(name string, t expr.Type, null bool, l expr.Limits, types ...string) testField {
	return testField{expr.Var{Name: name, Type: t, Nullable: null, Scale: -1}, l, [3]string(types)}
}

var testArgs = []expr.Var{
	{Name: "i", Type: expr.Int},
	{Name: "in", Type: expr.Int, Nullable: true},
	{Name: "f", Type: expr.Float},
	{Name: "fn", Type: expr.Float, Nullable: true},
	{Name: "s", Type: expr.String},
	{Name: "sn", Type: expr.String, Nullable: true},
	{Name: "b", Type: expr.Bool},
	{Name: "bn", Type: expr.Bool, Nullable: true},
	{Name: "t", Type: expr.Time},
	{Name: "tn", Type: expr.Time, Nullable: true},
	{Name: "d", Type: expr.Decimal, Scale: -1},
	{Name: "dn", Type: expr.Decimal, Nullable: true, Scale: -1},
	{Name: "y", Type: expr.Bytes},
	{Name: "yn", Type: expr.Bytes, Nullable: true},
	{Name: "j", Type: expr.JSON},
	{Name: "jn", Type: expr.JSON, Nullable: true},
}

var testEnv = func() expr.Env {
	env := expr.Env{Args: testArgs}
	for _, f := range testFields {
		env.Fields = append(env.Fields, f.Var)
	}
	return env
}()

func fieldNamed(name string) testField {
	for _, f := range testFields {
		if f.Name == name {
			return f
		}
	}
	panic(name)
}

// A conn is one database with a test table of its own, reached in one way.
type conn struct {
	name    string
	dialect Dialect
	db      *sql.DB
	table   string
}

func (c *conn) quote(name string) string {
	if c.dialect == Postgres {
		return `"` + name + `"`
	}
	return "`" + name + "`"
}

func (c *conn) columns(bound bool) map[string]Column {
	out := map[string]Column{}
	for _, f := range testFields {
		out[f.Name] = Column{
			Name: c.table + "." + c.quote(f.Name), Target: c.quote(f.Name), Type: f.Type, Limits: f.limits, SQLType: f.types[c.dialect], Bound: bound,
		}
		if f.Name == "dn1" && c.dialect == Postgres {
			continue // no precision: PostgreSQL keeps anything there
		}
		if col := out[f.Name]; f.Type == expr.Decimal && f.limits.Precision == 0 {
			col.Limits = expr.Limits{Precision: 18, Scale: 6}
			out[f.Name] = col
		}
	}
	return out
}

func (c *conn) create(tb testing.TB) {
	tb.Helper()
	defs := []string{c.quote("id") + " INTEGER PRIMARY KEY"}
	for _, f := range testFields {
		def := c.quote(f.Name) + " " + f.types[c.dialect]
		if !f.Nullable {
			def += " NOT NULL"
		}
		defs = append(defs, def)
	}
	defs = append(defs, c.quote("st")+[3]string{" TEXT", " varchar(64)", " " + myText}[c.dialect])
	mustExec(tb, c.db, "CREATE TABLE "+c.table+" ("+strings.Join(defs, ", ")+")")
}

func mustExec(tb testing.TB, db *sql.DB, text string) {
	tb.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(tb.Context()), text); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}

// connect opens all databases that can be reached, servers in both protocols.
func connect(tb testing.TB) []*conn {
	tb.Helper()
	conns := []*conn{open(tb, "sqlite", SQLite, "sqlite3", filepath.Join(tb.TempDir(), "test.db")+"?_journal_mode=WAL&_synchronous=OFF")}
	onServer(tb, "postgres", func(sub testing.TB) {
		dsn := servertest.Postgres(sub)
		simple := dsn + "?default_query_exec_mode=simple_protocol"
		if strings.Contains(dsn, "?") {
			simple = dsn + "&default_query_exec_mode=simple_protocol"
		}
		conns = append(conns, open(tb, "postgres", Postgres, "pgx", dsn), open(tb, "postgres_simple", Postgres, "pgx", simple))
	})
	onServer(tb, "mysql", func(sub testing.TB) {
		cfg := servertest.MariaDB(sub)
		cfg.ParseTime = true
		binary := cfg.FormatDSN()
		cfg.InterpolateParams = true
		cfg.Params = map[string]string{"div_precision_increment": "0"} // a setting that once made a difference
		conns = append(conns, open(tb, "mysql", MySQL, "mysql", binary), open(tb, "mysql_text", MySQL, "mysql", cfg.FormatDSN()))
	})
	return conns
}

// onServer runs add in a subtest: a server that is not there is left out aloud.
func onServer(tb testing.TB, name string, add func(sub testing.TB)) {
	tb.Helper()
	if t, ok := tb.(*testing.T); ok {
		t.Run(name, func(t *testing.T) { add(t) })
		return
	}
	add(tb)
}

func open(tb testing.TB, name string, d Dialect, driver, dsn string) *conn {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	c := &conn{name: name, dialect: d, db: db}
	c.table = c.quote(fmt.Sprintf("sqlexpr_%s_%d_%x", name, os.Getpid(), time.Now().UnixNano()&0xffffff))
	c.create(tb)
	tb.Cleanup(func() {
		mustExec(tb, db, "DROP TABLE "+c.table)
		db.Close()
	})
	return c
}

// canonical reads what a driver returned for a value of type t.
func canonical(t expr.Type, raw any) (any, error) {
	if b, ok := raw.([]byte); ok && t != expr.Bytes && t != expr.JSON {
		raw = string(b)
	}
	s, isText := raw.(string)
	switch {
	case raw == nil:
		return nil, nil
	case t == expr.Bool:
		switch v := raw.(type) {
		case int64:
			return v != 0, nil
		case string:
			return v != "0", nil
		}
	case t == expr.Time && isText:
		for _, layout := range []string{"2006-01-02 15:04:05.999999999-07:00", "2006-01-02 15:04:05.999999"} {
			if tm, err := time.Parse(layout, s); err == nil {
				return expr.Coerce(t, -1, tm)
			}
		}
		return nil, fmt.Errorf("not a time: %q", s)
	case isText && (t == expr.Int || t == expr.Float):
		return expr.FromJSON(t, []byte(s))
	case t == expr.JSON && isText:
		return expr.Coerce(t, -1, json.RawMessage(s))
	}
	return expr.Coerce(t, -1, raw)
}

// stored is a canonical value as a client of the dialect writes it.
func stored(d Dialect, v any) any {
	switch x := v.(type) {
	case decimal.Decimal:
		return x.String()
	case json.RawMessage:
		return string(x)
	case time.Time:
		if d == MySQL {
			return x.UTC().Format(wallLayout)
		}
	}
	return v
}
