package hooktest

import (
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	driver "github.com/go-sql-driver/mysql"
)

// places numbers what this run makes on servers.
var places atomic.Int64

func placeName() string { return fmt.Sprintf("fsmgen_hooks_%d_%d", os.Getpid(), places.Add(1)) }

func setting(name, usual string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return usual
}

// postgresSchema makes a schema of the test's own and gives the DSN that looks there first.
func postgresSchema(t *testing.T) string {
	t.Helper()
	dsn := setting("FSMGEN_TEST_POSTGRES", "postgres://postgres@127.0.0.1:5432/test?sslmode=disable")
	name := placeName()
	ownPlace(t, "PostgreSQL", "start one on 127.0.0.1:5432 with a database test, or set FSMGEN_TEST_POSTGRES to a DSN",
		"pgx", dsn, "CREATE SCHEMA "+name, "DROP SCHEMA "+name+" CASCADE")
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

// mariaDatabase makes a database of the test's own and gives its DSN.
func mariaDatabase(t *testing.T) string {
	t.Helper()
	dsn := setting("FSMGEN_TEST_MYSQL", "root@tcp(127.0.0.1:3306)/test")
	name := placeName()
	ownPlace(t, "MariaDB", "start one on 127.0.0.1:3306 with a database test and root without a password, or set FSMGEN_TEST_MYSQL to a DSN",
		"mysql", dsn, "CREATE DATABASE "+name, "DROP DATABASE "+name)
	config, err := driver.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.DBName = name
	return config.FormatDSN()
}

func ownPlace(t *testing.T, what, how, driver, dsn, create, drop string) {
	t.Helper()
	reached, err := admin(driver, dsn, create)
	if !reached {
		missing(t, what, how, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin(driver, dsn, drop); err != nil {
			t.Error(err)
		}
	})
}
