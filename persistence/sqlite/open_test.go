package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// Whatever ran on a store, closing it closes every file: SQLite then folds the WAL
// back and deletes it. A statement that outlives its connection would prevent that.
func TestCloseLeavesOneFile(t *testing.T) {
	for _, ours := range []bool{true, false} {
		dir := t.TempDir()
		path := filepath.Join(dir, "test.db")
		store, err := sqlite.Open(context.Background(), path)
		var pool *sqlx.DB
		if !ours {
			closeIdle(t, store)
			pool = sqlx.MustOpen("sqlite3", path+"?_journal_mode=WAL")
			store, err = sqlite.New(pool)
		}
		if err != nil {
			t.Fatal(err)
		}
		m := machineOn(t, store, orderText)
		mustCreate(t, m, "o")
		for range 3 {
			mustFire(t, m, "pay", "o", engine.Args{"payment_ref": "r"})
		}
		closeIdle(t, store)
		if pool != nil {
			if err := pool.Ping(); err != nil {
				t.Errorf("a pool given to New must stay open: %v", err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
		if files := names(t, dir); len(files) != 1 {
			t.Errorf("after Close the directory holds %v, want the database alone", files)
		}
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Commits are durable, there is one writer, and the readers cannot write.
func TestOpenSettings(t *testing.T) {
	store := open(t)
	for pragma, want := range map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "busy_timeout": "0"} {
		var got string
		if err := store.DB().Get(&got, "PRAGMA "+pragma); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %q", pragma, got, err, want)
		}
	}
	if n := store.DB().Stats().MaxOpenConnections; n != 1 {
		t.Errorf("%d writers, want one", n)
	}
	if _, err := store.Reader().Exec("CREATE TABLE x (y)"); err == nil {
		t.Error("a reader can write")
	}
}

// Any path that the file system takes is taken, and made a file of that name.
func TestOpenOddPaths(t *testing.T) {
	for _, name := range []string{"plain.db", "a b.db", "what?.db", "no#1.db", "100%.db", "%20.db", "%zz", "a&b=c.db", "ünï-数据.db", "a:b.db", "'quoted'.db", `back\slash`, "[x].db", "mode=memory"} {
		dir := t.TempDir()
		store := openAt(t, filepath.Join(dir, name))
		m := machineOn(t, store, lampText)
		mustCreate(t, m, "l")
		if files := names(t, dir); files[0] != name {
			t.Errorf("opening %q made %q", name, files)
		}
		if e, err := m.Get(context.Background(), "l"); err != nil || e.State != "off" {
			t.Errorf("%q: the readers see %+v, %v", name, e, err)
		}
	}
}

func TestOpenRelativePath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"x.db", "./y.db", ":x", "//" + filepath.Join(t.TempDir(), "z.db")} {
		machineOn(t, openAt(t, path), lampText)
	}
	if files := names(t, "."); !strings.Contains(strings.Join(files, " "), "x.db") {
		t.Errorf("the directory holds %v", files)
	}
}

// What cannot be opened says why, and what to do.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	garbage := write("garbage.db", strings.Repeat("this is no database. ", 100), 0o600)
	for name, c := range map[string]struct {
		path string
		says string
	}{
		"no directory":        {filepath.Join(dir, "missing", "x.db"), "the directory must exist"},
		"a directory":         {dir, "directory"},
		"no database":         {garbage, "the file is damaged or no SQLite database"},
		"an empty path":       {"", "give the path"},
		"a NUL in the path":   {"a\x00b", "give the path"},
		"a file as directory": {filepath.Join(garbage, "x.db"), "the directory must exist"},
	} {
		store, err := sqlite.Open(context.Background(), c.path)
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = store.Close()
			continue
		}
		if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "sqlite: open") {
			t.Errorf("%s: %v, want it to say %q", name, err, c.says)
		}
	}
	if b, _ := os.ReadFile(garbage); !strings.HasPrefix(string(b), "this is no database. ") || len(b) != 2100 {
		t.Error("a file that is no database was changed")
	}
	for _, opt := range []sqlite.Option{nil, sqlite.WithWait(0), sqlite.WithWait(-time.Second)} {
		if _, err := sqlite.Open(context.Background(), filepath.Join(dir, "x.db"), opt); err == nil {
			t.Error("a bad option must be an error")
		}
	}
	if _, err := sqlite.New(nil); err == nil {
		t.Error("New(nil) must be an error")
	}
}

// A database damaged in the middle is found when the damaged page is read.
func TestCorruptFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	store := openAt(t, path)
	m := machineOn(t, store, lampText)
	mustCreate(t, m, "l")
	closeIdle(t, store)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte(strings.Repeat("\xff", int(info.Size())-4096)), 4096); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	damaged, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return // found at once
	}
	defer damaged.Close() //nolint:errcheck // it is damaged
	eng, err := engine.New(damaged)
	if err != nil {
		t.Fatal(err)
	}
	m, err = eng.Machine(context.Background(), define(t, lampText))
	if err == nil {
		_, err = m.Fire(context.Background(), "switch_on", "l", nil)
	}
	if err == nil || errors.Is(err, engine.ErrNotFound) || errors.Is(err, engine.ErrBusy) {
		t.Errorf("error %v, want one that says the file is damaged", err)
	} else if !strings.Contains(err.Error(), "malformed") {
		t.Errorf("error %v, want SQLite's own words in it", err)
	}
}

// What savepoints may take back is kept in memory: else each call of a batch makes a
// buffer for a file.
func TestSavepointsStayInMemory(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	var place int
	if err := store.DB().GetContext(t.Context(), &place, "PRAGMA temp_store"); err != nil || place != 2 {
		t.Errorf("temp_store = %d, %v; want 2", place, err)
	}
}
