// Package servertest gives tests places of their own on the database servers they may use:
// those that FSMGEN_TEST_POSTGRES and FSMGEN_TEST_MYSQL name, else the ones most machines
// have. Where no server answers a test is skipped and says how to enable it, or fails if
// FSMGEN_REQUIRE_DATABASES is 1.
package servertest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
)

// server is one kind of database server.
type server struct {
	name, driver  string
	variable, dsn string
	how           string
}

var (
	postgres = server{
		"PostgreSQL", "pgx", "FSMGEN_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable",
		"start one on 127.0.0.1:5432 with a database test",
	}
	mariaDB = server{
		"MariaDB", "mysql", "FSMGEN_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/test",
		"start one on 127.0.0.1:3306 with a database test and root without a password",
	}
)

// ping gives the DSN of a server, and whether it answers.
func (s server) ping() (dsn string, err error) {
	dsn = cmp.Or(os.Getenv(s.variable), s.dsn)
	return dsn, s.do(dsn, func(ctx context.Context, db *sql.DB) error { return db.PingContext(ctx) })
}

// reach gives the DSN of a server that answers.
func (s server) reach(t testing.TB) string {
	t.Helper()
	dsn, err := s.ping()
	switch {
	case err == nil:
	case os.Getenv("FSMGEN_REQUIRE_DATABASES") == "1":
		t.Fatalf("no %s: %v", s.name, err)
	default:
		t.Skipf("no %s: %s, or set %s to a DSN: %v", s.name, s.how, s.variable, err)
	}
	return dsn
}

// do runs something beside any pool of a test.
func (s server) do(dsn string, fn func(ctx context.Context, db *sql.DB) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sql.Open(s.driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it goes away
	return fn(ctx, db)
}

// place makes something that is dropped at the end of the test.
func (s server) place(t testing.TB, dsn, kind, name, cascade string) {
	t.Helper()
	run := func(text string) {
		t.Helper()
		err := s.do(dsn, func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, text)
			return err
		})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	run("CREATE " + kind + " " + name)
	t.Cleanup(func() { run("DROP " + kind + " " + name + cascade) })
}

// placeName is made up: the number of a process says nothing where several containers use
// one server, or a run was killed and left its places behind.
func placeName() string { return fmt.Sprintf("fsmgen_%016x", rand.Uint64()) } //nolint:gosec // a name needs no secrecy

// Postgres gives the DSN of the server, in URL form.
func Postgres(t testing.TB) string {
	t.Helper()
	return postgres.reach(t)
}

// PostgresSchema makes a schema and gives a DSN that looks there first. Its sessions
// carry the schema's name as their application_name.
func PostgresSchema(t testing.TB) string {
	t.Helper()
	dsn, name := postgres.reach(t), placeName()
	postgres.place(t, dsn, "SCHEMA", name, " CASCADE")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%s: %v", postgres.variable, err)
	}
	q := u.Query()
	q.Set("search_path", name)
	q.Set("application_name", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// PostgresAnswers reports whether [Postgres] would find a server.
func PostgresAnswers() bool {
	_, err := postgres.ping()
	return err == nil
}

// MariaDB gives the settings of a connection to the server.
func MariaDB(t testing.TB) *mysql.Config {
	t.Helper()
	cfg, err := mysql.ParseDSN(mariaDB.reach(t))
	if err != nil {
		t.Fatalf("%s: %v", mariaDB.variable, err)
	}
	return cfg
}

// MariaDBAnswers reports whether [MariaDB] would find a server.
func MariaDBAnswers() bool {
	_, err := mariaDB.ping()
	return err == nil
}

// MariaDBDatabase makes a database and gives the settings of a connection to it.
func MariaDBDatabase(t testing.TB) *mysql.Config {
	t.Helper()
	cfg, name := MariaDB(t), placeName()
	mariaDB.place(t, cfg.FormatDSN(), "DATABASE", name, "")
	cfg.DBName = name
	return cfg
}
