package workflowtest

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/mattn/go-sqlite3"

	"github.com/fsmgen/fsmgen/definitions"
	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/internal/recorder"
	"github.com/fsmgen/fsmgen/persistence/internal/servertest"
	"github.com/fsmgen/fsmgen/persistence/mysql"
	"github.com/fsmgen/fsmgen/persistence/postgres"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
	"github.com/fsmgen/fsmgen/persistence/storetest"
)

// recorded are the databases with every statement of the store written down.
func recorded(log *recorder.Log) []kind {
	through := func(t testing.TB, d sqldriver.Driver, dsn, name string) *sqlx.DB {
		t.Helper()
		c, err := recorder.FromDriver(d, dsn, log)
		check(t, err)
		db := sqlx.NewDb(sql.OpenDB(c), name)
		closing(t, db)
		return db
	}
	over := func(db *sqlx.DB, open func() (*persistence.Store, error)) place {
		return place{db: db, open: func(t testing.TB, defs ...*definitions.Machine) backend {
			t.Helper()
			store, err := open()
			check(t, err)
			check(t, store.Migrate(t.Context(), defs...))
			return &storetest.SQL{Opened: store, Pool: db, Beside: db}
		}}
	}
	return []kind{
		{name: "sqlite", open: func(t testing.TB) place {
			t.Helper()
			db := through(t, &sqlite3.SQLiteDriver{}, "file:"+filepath.Join(t.TempDir(), "x.db")+"?_journal_mode=WAL", "sqlite3")
			return over(db, func() (*persistence.Store, error) { return sqlite.New(db) })
		}},
		{name: "postgres", open: func(t testing.TB) place {
			t.Helper()
			db := through(t, &stdlib.Driver{}, servertest.PostgresSchema(t), "pgx")
			return over(db, func() (*persistence.Store, error) { return postgres.New(db) })
		}},
		{name: "mariadb", open: func(t testing.TB) place {
			t.Helper()
			cfg := servertest.MariaDBDatabase(t)
			cfg.ParseTime, cfg.Params = true, map[string]string{"time_zone": "'+00:00'"}
			db := through(t, &driver.MySQLDriver{}, cfg.FormatDSN(), "mysql")
			return over(db, func() (*persistence.Store, error) { return mysql.New(db) })
		}},
	}
}

// marked is a literal of the definition.
const marked = `mark's? $1 :name -- \ ;`

// hostile are texts that would end a literal, begin a comment, or pass for a parameter.
func hostile() []string {
	return []string{
		`'`, `''`, `"`, "`", `\`, `\'`, `$1`, `$$`, `?`, `??`, `:name`, `@x`, `--`, `-- `, `/*`, `*/`, `#`, `;`, `%s`, `{}`,
		`'); DROP TABLE x; --`, "line\nbreak", "tab\t", "\x01\x7f", "\u2028", "é支🦊", " ", "NULL", "nil", "",
		marked, `mark's? $1 :name -- \\ ;`,
	}
}

// TestNothingReachesTheText: what a call brings changes no statement, and neither the
// literals of the definition nor the values of its states stand in one.
func TestNothingReachesTheText(t *testing.T) {
	def := load(t, "odd_names")
	for i := range recorded(nil) {
		log := &recorder.Log{}
		onEach(t, recorded(log)[i:i+1], func(s *site) {
			t := s.t
			log.Reset()
			s.roundTrip(t, "plain", "plain")
			s.roundTrip(t, "same", marked)
			plain := distinct(log)
			log.Reset()
			for _, text := range hostile() {
				s.roundTrip(t, "id "+text, text)
			}
			for _, text := range distinct(log) {
				if !slices.Contains(plain, text) {
					t.Errorf("a statement that harmless values did not make: %s", text)
				}
			}
			wantNoneOf(t, plain, "plain", "lit'", "1=1", "mark", "never", "st'art", "sa?me", "do$$ne", "o\"ld", "odd_names")
			if !slices.ContainsFunc(plain, func(text string) bool {
				return strings.Contains(text, "UPDATE") && strings.Contains(text, "te?xt:a $3")
			}) {
				t.Errorf("no UPDATE was recorded: %q", plain)
			}
		}, def)
	}
}

func wantNoneOf(t testing.TB, texts []string, parts ...string) {
	t.Helper()
	for _, text := range texts {
		for _, part := range parts {
			if strings.Contains(text, part) {
				t.Errorf("%q stands in a statement: %s", part, text)
			}
		}
	}
}

// distinct are the statements of calls; what a pool asks of a new connection is not.
func distinct(log *recorder.Log) []string {
	texts := log.Texts()
	slices.Sort(texts)
	return slices.Compact(texts)
}

// roundTrip makes every kind of call with a text in every place, and wants it back.
func (s *site) roundTrip(t testing.TB, id, text string) {
	t.Helper()
	m, ctx := s.m, context.Background()
	s.create(t, m, engine.Row{"id": id, "text": text})
	key := "key " + text
	opts := []engine.CallOption{engine.WithKey(key), engine.WithActor(text), engine.WithMeta(map[string]string{"m": text})}
	res := s.apply(t, m, "put", id, engine.Args{"text": text}, opts...)
	want := "done"
	if text == marked {
		want = "same"
	}
	if res.To != want {
		t.Errorf("put %q leads to %s, want %s", text, res.To, want)
	}
	s.want(t, engine.Replayed, m, "put", id, engine.Args{"text": text}, opts...)
	s.refuse(t, engine.ErrKeyReused, m, "put", id, engine.Args{"text": text + "x"}, opts...)
	s.wantRow(t, m, id, want, 2, 2, engine.Row{"text": text, "n": int64(1), "other": `lit' ? $1 :name -- /* */ \ ;` + text})
	if want == "same" {
		s.apply(t, m, "reset", id, nil, engine.WithKey(key+"2"))
	}
	entries, err := m.Journal(ctx, id)
	check(t, err)
	if e := entries[1]; e.Key != key || e.Actor != text || e.From != "start" || e.To != want {
		t.Errorf("the entry is %+v", e)
	}
}

// TestNUL: no database stores it alike, so nothing is sent.
func TestNUL(t *testing.T) {
	onEach(t, kinds(), func(s *site) {
		t := s.t
		s.create(t, s.m, engine.Row{"id": "a"})
		for _, bad := range []string{"\x00", "a\x00b", "bad \xff UTF-8"} {
			s.refuse(t, engine.ErrInvalidArgs, s.m, "put", "a", engine.Args{"text": bad}, engine.WithKey("k"))
			s.refuse(t, engine.ErrInvalidArgs, s.m, "put", "a", engine.Args{"text": "x"}, engine.WithKey(bad))
			s.refuse(t, engine.ErrInvalidArgs, s.m, "put", bad, engine.Args{"text": "x"}, engine.WithKey("k"))
			_, err := s.m.Create(t.Context(), engine.Row{"id": "b", "text": bad})
			wantError(t, err, engine.ErrInvalidArgs)
		}
		s.wantRow(t, s.m, "a", "start", 1, 1, nil)
	}, load(t, "odd_names"))
}
