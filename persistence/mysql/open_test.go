package mysql

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]server{
		"10.11.19-MariaDB-0+deb12u1": {maria: true, version: [3]int{10, 11, 19}},
		"5.5.5-10.6.2-MariaDB-log":   {maria: true, version: [3]int{10, 6, 2}},
		"11.8.3-MariaDB":             {maria: true, version: [3]int{11, 8, 3}},
		"8.0.36":                     {version: [3]int{8, 0, 36}},
		"8.4.0-commercial":           {version: [3]int{8, 4, 0}},
	} {
		if got, err := parseVersion(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"5.7.44", "8.0.16", "10.2.1-MariaDB", "", "x.y"} {
		if _, err := parseVersion(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestNewVerifiesSession: a session in which values would change is refused with what
// to write into the DSN.
func TestNewVerifiesSession(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	cfg.ParseTime, cfg.Loc = true, time.UTC
	east, err := time.LoadLocation("Asia/Shanghai")
	check(t, err)
	for name, c := range map[string]struct {
		bend func(*driver.Config)
		says string
	}{
		"fine":          {func(*driver.Config) {}, ""},
		"interpolated":  {func(c *driver.Config) { c.InterpolateParams = true }, ""},
		"found rows":    {func(c *driver.Config) { c.ClientFoundRows = true }, ""},
		"times as text": {func(c *driver.Config) { c.ParseTime = false }, "parseTime=true"},
		"local times":   {func(c *driver.Config) { c.Loc = east }, "loc=UTC"},
		"empty is NULL": {func(c *driver.Config) {
			c.Params = map[string]string{"sql_mode": "'STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL'"}
		}, "EMPTY_STRING_IS_NULL"},
		"Oracle":     {func(c *driver.Config) { c.Params = map[string]string{"sql_mode": "'ORACLE,STRICT_TRANS_TABLES'"} }, "ORACLE"},
		"not strict": {func(c *driver.Config) { c.Params = map[string]string{"sql_mode": "''"} }, "not strict"},
		"ANSI, no escape": {func(c *driver.Config) {
			c.Params = map[string]string{"sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,STRICT_ALL_TABLES'"}
		}, ""},
		"latin1":            {func(c *driver.Config) { check(t, c.Apply(driver.Charset("latin1", ""))) }, "charset=utf8mb4"},
		"commits by itself": {func(c *driver.Config) { c.Params = map[string]string{"autocommit": "1"} }, ""},
		"never commits":     {func(c *driver.Config) { c.Params = map[string]string{"autocommit": "0"} }, "autocommit=1"},
		"chained":           {func(c *driver.Config) { c.Params = map[string]string{"completion_type": "CHAIN"} }, "completion_type='NO_CHAIN'"},
	} {
		t.Run(name, func(t *testing.T) {
			own := cfg.Clone()
			c.bend(own)
			db, err := pool(own)
			check(t, err)
			t.Cleanup(func() { check(t, db.Close()) })
			store, err := New(db)
			if c.says == "" {
				check(t, err)
				check(t, store.Close())
				check(t, db.PingContext(t.Context())) // it stays open
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
	if _, err := New(nil); err == nil {
		t.Error("New(nil) was taken")
	}
}

func TestOpenFails(t *testing.T) {
	servertest.MariaDB(t)
	for dsn, says := range map[string]string{
		"nonsense":                            "want user:password@tcp(host:3306)/database",
		"root@tcp(127.0.0.1:3306)/":           "names no database",
		"root@tcp(127.0.0.1:1)/test":          "127.0.0.1:1",
		"nobody:wrong@tcp(127.0.0.1:3306)/no": "denied",
	} {
		if _, err := Open(t.Context(), dsn); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v does not say %q", dsn, err, says)
		}
	}
	for name, opt := range map[string]Option{"nil": nil, "wait": WithWait(0), "lock": WithLockWait(-1), "statement": WithStatementTimeout(0), "conns": WithConnections(0)} {
		if _, err := Open(t.Context(), "root@tcp(127.0.0.1:3306)/test", opt); err == nil {
			t.Errorf("option %s was taken", name)
		}
	}
}

// TestOpenSession: what Open says of a session reaches the server, and what the DSN
// says is left as it is.
func TestOpenSession(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	read := func(store interface{ DB() *sqlx.DB }) (lock, zone string, statement float64) {
		row := store.DB().QueryRowContext(t.Context(), "SELECT @@innodb_lock_wait_timeout, @@time_zone, @@max_statement_time")
		check(t, row.Scan(&lock, &zone, &statement))
		return lock, zone, statement
	}
	store, err := Open(t.Context(), cfg.FormatDSN(), WithLockWait(2500*time.Millisecond), WithStatementTimeout(3500*time.Millisecond))
	check(t, err)
	if lock, zone, statement := read(store); lock != "3" || zone != "+00:00" || statement != 3.5 {
		t.Errorf("lock wait %s, zone %s, statement %v", lock, zone, statement)
	}
	check(t, store.Close())
	store, err = Open(t.Context(), with(cfg, map[string]string{"innodb_lock_wait_timeout": "7", "max_statement_time": "9"}).FormatDSN())
	check(t, err)
	if lock, _, statement := read(store); lock != "7" || statement != 9 {
		t.Errorf("lock wait %s, statement %v", lock, statement)
	}
	check(t, store.Close())
}

// TestOpenCommits: without autocommit a call would be told Applied and be rolled back when
// its connection goes. Open asks for it, and refuses a DSN that says otherwise, however
// that is spelt.
func TestOpenCommits(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	complete(cfg, options{})
	if got := cfg.Params["autocommit"]; got != "1" {
		t.Errorf("Open asks for autocommit=%q", got)
	}
	for _, name := range []string{"autocommit", "AUTOCOMMIT"} {
		_, err := Open(t.Context(), with(servertest.MariaDBDatabase(t), map[string]string{name: "0"}).FormatDSN())
		if err == nil || !strings.Contains(err.Error(), "autocommit=1") {
			t.Errorf("%s=0: %v, want an error that says what to do", name, err)
		}
	}
}

// TestLiteral: DDL reads the same whatever the server's mode and the client's
// character set.
func TestLiteral(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	values := []string{"plain", "it's", `back\slash`, `\`, `\'`, "ünïcödé", "订单🛒", `"`, "`", "%_", "a ' \\ 字"}
	for _, mode := range []string{"''", "'NO_BACKSLASH_ESCAPES'", "'ANSI'", "'ORACLE'"} {
		for _, charset := range []string{"utf8mb4", "latin1"} {
			own := with(cfg, map[string]string{"sql_mode": mode})
			check(t, own.Apply(driver.Charset(charset, "")))
			db, err := pool(own)
			check(t, err)
			for _, v := range values {
				var hex string
				check(t, db.GetContext(t.Context(), &hex, "SELECT HEX(CONVERT("+dialect{}.Literal(v)+" USING utf8mb4))"))
				if !strings.EqualFold(hex, strings.ToUpper(hexOf(v))) {
					t.Errorf("mode %s, %s: %q is read as %s", mode, charset, v, hex)
				}
			}
			check(t, db.Close())
		}
	}
}

func hexOf(s string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		b.WriteByte(digits[s[i]>>4])
		b.WriteByte(digits[s[i]&15])
	}
	return b.String()
}

// TestDDL: the text of the command runs as it stands, also where the server's default
// is another character set, and Machine takes what it makes.
func TestDDL(t *testing.T) {
	cfg := servertest.MariaDBDatabase(t)
	cfg.MultiStatements = true
	db, err := pool(cfg)
	check(t, err)
	defer db.Close() //nolint:errcheck // the store has its own
	def := parse(t, `
machine: parcel
table: {name: parcels}
fields: {note: {type: string, default: "it's"}, doc: {type: json, nullable: true}, price: {type: decimal, nullable: true}}
initial: 新
states:
  新: {value: "n\\ew"}
  old: {value: "o'ld", aliases: ["O\\"], final: true}
transitions: {age: {from: 新, to: old}}
`)
	_, err = db.ExecContext(t.Context(), DDL(def, parse(t, order)))
	check(t, err)
	store, err := Open(t.Context(), cfg.FormatDSN())
	check(t, err)
	defer store.Close() //nolint:errcheck // nothing is written any more
	eng, err := engine.New(store)
	check(t, err)
	m, err := eng.Machine(t.Context(), def)
	check(t, err)
	_, err = m.Create(t.Context(), engine.Row{"id": "p"})
	check(t, err)
	if res, err := m.Fire(t.Context(), "age", "p", nil); err != nil || res.Outcome != engine.Applied {
		t.Fatal(res, err)
	}
	if _, err := store.DB().ExecContext(t.Context(), "UPDATE parcels SET status = 'nonsense'"); err == nil {
		t.Error("the CHECK takes any status")
	}
}

// TestStatesInOtherScripts: values, names, aliases and defaults beyond ASCII stand in
// CHECK and DEFAULT as what they are, made by Migrate or by the text of the command,
// whatever the client's character set and the server's mode, and also once the server
// has read the table anew.
func TestStatesInOtherScripts(t *testing.T) {
	first := parse(t, `
machine: bill
table: {name: bills}
fields: {note: {type: string, default: "né 🛒"}}
initial: 未付
states: {未付: , 已付: {value: "payé", aliases: ["оплачено", "ß"]}, fin: {final: true}}
transitions: {支付: {from: 未付, to: 已付}, end: {from: 已付, to: fin}}
`)
	second := parse(t, `
machine: dunning
table: {name: bills, status: {column: mahnung}}
fields: {grund: {type: string, default: "überfällig"}}
initial: まだ
states: {まだ: , ok: {value: "済み", final: true}}
transitions: {close: {from: まだ, to: ok}}
`)
	for _, charset := range []string{"utf8mb4", "latin1", "migrate"} {
		for _, mode := range []string{"''", "'NO_BACKSLASH_ESCAPES'"} {
			t.Run(charset+mode, func(t *testing.T) {
				cfg := servertest.MariaDBDatabase(t)
				store, err := Open(t.Context(), cfg.FormatDSN())
				check(t, err)
				defer store.Close() //nolint:errcheck // nothing is written any more
				if charset == "migrate" {
					check(t, store.Migrate(t.Context(), first, second))
				} else {
					own := with(cfg, map[string]string{"sql_mode": mode})
					own.MultiStatements = true
					check(t, own.Apply(driver.Charset(charset, "")))
					db, err := pool(own)
					check(t, err)
					_, err = db.ExecContext(t.Context(), DDL(first, second))
					check(t, err)
					check(t, db.Close())
				}
				_, err = store.DB().ExecContext(t.Context(), "FLUSH TABLES bills")
				check(t, err)
				eng, err := engine.New(store)
				check(t, err)
				bills, err := eng.Machine(t.Context(), first)
				check(t, err)
				dunnings, err := eng.Machine(t.Context(), second)
				check(t, err)
				_, err = bills.Create(t.Context(), engine.Row{"id": "1"})
				check(t, err)
				for _, step := range []struct {
					m          *engine.Machine
					transition string
				}{{bills, "支付"}, {dunnings, "close"}, {bills, "end"}} {
					res, err := step.m.Fire(t.Context(), step.transition, "1", nil)
					check(t, err)
					if res.Outcome != engine.Applied {
						t.Fatal(step.transition, res.Outcome)
					}
				}
				var note, reason string
				check(t, store.DB().QueryRowContext(t.Context(), "SELECT note, grund FROM bills").Scan(&note, &reason))
				if note != "né 🛒" || reason != "überfällig" {
					t.Errorf("defaults %q and %q", note, reason)
				}
				_, err = store.DB().ExecContext(t.Context(), "UPDATE bills SET status = ?", "оплачено")
				check(t, err)
				for _, wrong := range []string{"已付", "PAYÉ", "ss", "payé "} {
					if _, err := store.DB().ExecContext(t.Context(), "UPDATE bills SET status = ?", wrong); err == nil {
						t.Errorf("the CHECK takes %q", wrong)
					}
				}
			})
		}
	}
}

// TestFoundRows is CASES 16: nothing rests on how rows are counted.
func TestFoundRows(t *testing.T) {
	for name, found := range map[string]bool{"changed rows": false, "found rows": true} {
		t.Run(name, func(t *testing.T) {
			cfg := servertest.MariaDBDatabase(t)
			cfg.ClientFoundRows = found
			for _, yaml := range []string{counter, lamp} {
				r := openAt(t, cfg, yaml)
				r.create(t, "x", nil)
				if yaml == lamp {
					r.fire(t, engine.Applied, "switch_on", "x", nil)
					r.fire(t, engine.AlreadyReached, "switch_on", "x", nil)
					continue
				}
				for i, key := range []string{"k1", "k2"} {
					if res := r.fire(t, engine.Applied, "add", "x", engine.Args{"by": 0}, engine.WithKey(key)); res.Version != int64(i+2) {
						t.Errorf("version %d", res.Version)
					}
				}
				r.fire(t, engine.Replayed, "add", "x", engine.Args{"by": 0}, engine.WithKey("k1"))
				_, err := r.m.Create(t.Context(), engine.Row{"id": "x"})
				check(t, err)
				r.whole(t)
			}
		})
	}
}

// TestConnectionComesBackAsItWas: the engine's level is that of its own transaction
// only.
func TestConnectionComesBackAsItWas(t *testing.T) {
	r := open(t, order, WithConnections(1))
	r.create(t, "o-1", nil)
	r.fire(t, engine.Applied, "pay", "o-1", engine.Args{"payment_ref": "x"})
	r.fire(t, engine.AlreadyReached, "pay", "o-1", engine.Args{"payment_ref": "x"})
	check(t, r.eng.InTx(t.Context(), func(context.Context, engine.Tx) error { return nil }))
	var level string
	var open bool
	check(t, r.store.DB().QueryRowContext(t.Context(), "SELECT @@tx_isolation, @@in_transaction").Scan(&level, &open))
	if level != "REPEATABLE-READ" || open {
		t.Errorf("the session is at %s, in a transaction: %v", level, open)
	}
	var tx *sql.Tx
	tx, err := r.store.DB().BeginTx(t.Context(), nil)
	check(t, err)
	check(t, tx.QueryRowContext(t.Context(), "SELECT @@tx_isolation").Scan(&level))
	if level != "REPEATABLE-READ" {
		t.Errorf("a transaction of the caller's is at %s", level)
	}
	check(t, tx.Rollback())
}
