package workflowtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

// places numbers what this run makes on servers, so that runs side by side do not meet.
var places atomic.Int64

func placeName() string { return fmt.Sprintf("fsmgen_workflow_%d_%d", os.Getpid(), places.Add(1)) }

// setting is an environment variable, or what most machines have.
func setting(name, usual string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return usual
}

func postgresDSN() string {
	return setting("FSMGEN_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable")
}

func mariaDSN() string { return setting("FSMGEN_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/test") }

// missing skips a test whose server does not answer, or fails it where the server has
// to be there.
func missing(t testing.TB, what, how string, err error) {
	t.Helper()
	if os.Getenv("FSMGEN_REQUIRE_DATABASES") == "1" {
		t.Fatalf("no %s: %v", what, err)
	}
	t.Skipf("no %s: %s: %v", what, how, err)
}

// admin runs a statement on the server, beside any pool of a test.
func admin(driverName, dsn, text string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it goes away
	if err := db.PingContext(ctx); err != nil {
		return unreachable{err}
	}
	if _, err = db.ExecContext(ctx, text); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}

// unreachable is the error of a server that does not answer.
type unreachable struct{ error }

// postgresSchema makes a schema of the test's own and gives the DSN that looks there first.
func postgresSchema(t testing.TB) string {
	t.Helper()
	dsn := postgresDSN()
	name := placeName()
	ownPlace(t, "PostgreSQL", "start one on 127.0.0.1:5432 with a database test, or set FSMGEN_TEST_POSTGRES to a DSN",
		"pgx", dsn, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	u, err := url.Parse(dsn)
	check(t, err)
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// mariaDatabase makes a database of the test's own.
func mariaDatabase(t testing.TB) *driver.Config {
	t.Helper()
	cfg, err := driver.ParseDSN(mariaDSN())
	check(t, err)
	name := placeName()
	ownPlace(t, "MariaDB", "start one on 127.0.0.1:3306 with a database test and root without a password, or set FSMGEN_TEST_MYSQL to a DSN",
		"mysql", cfg.FormatDSN(), "CREATE DATABASE "+name, "DROP DATABASE "+name)
	own := cfg.Clone()
	own.DBName = name
	return own
}

func ownPlace(t testing.TB, what, how, driverName, dsn, create, drop string) {
	t.Helper()
	err := admin(driverName, dsn, create)
	if away, ok := err.(unreachable); ok { //nolint:errorlint // it is ours and never wrapped
		missing(t, what, how, away.error)
	}
	check(t, err)
	t.Cleanup(func() { check(t, admin(driverName, dsn, drop)) })
}
