package sqlite_test

import (
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// A pool over ":memory:" has as many databases as connections (CASES 30): New says so,
// unless there is one connection, or one cache.
func TestNewOverMemory(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dsn   string
		conns int
		fine  bool
	}{
		{":memory:", 0, false},
		{":memory:", 4, false},
		{":memory:", 1, true},
		{"file:shared?mode=memory&cache=shared", 4, true},
	} {
		db, err := sqlx.Open("sqlite3", c.dsn)
		if err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(c.conns)
		_, err = sqlite.New(db)
		if (err == nil) != c.fine || (err != nil && !strings.Contains(err.Error(), "SetMaxOpenConns(1)")) {
			t.Errorf("%s with %d connections: %v", c.dsn, c.conns, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
