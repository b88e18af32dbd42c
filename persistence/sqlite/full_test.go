package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// A full disk: a clear error, nothing half-written, and once there is room it goes on.
func TestFullDisk(t *testing.T) {
	t.Run("limit of pages", func(t *testing.T) {
		store := open(t)
		m := machineOn(t, store, orderText)
		mustCreate(t, m, "o")
		var pages int
		if err := store.DB().Get(&pages, "PRAGMA page_count"); err != nil {
			t.Fatal(err)
		}
		mustExec(t, store.DB(), "PRAGMA max_page_count = "+fmtInt(pages+1))
		fillUp(t, store, m)
		mustExec(t, store.DB(), "PRAGMA max_page_count = 1000000")
		mustCreate(t, m, "room again")
	})
	t.Run("a small file system", func(t *testing.T) {
		dir := t.TempDir()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
			t.Skipf("mounting a tmpfs: %v", err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(dir, 0); err != nil {
				t.Error(err)
			}
		})
		store, err := sqlite.Open(context.Background(), filepath.Join(dir, "x.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close() //nolint:errcheck // the disk is full
		m := machineOn(t, store, orderText)
		mustCreate(t, m, "o")
		fillUp(t, store, m)
	})
}

// fillUp creates rows until the disk is full, and checks that the last was all or nothing.
func fillUp(t *testing.T, store *persistence.Store, m *engine.Machine) {
	t.Helper()
	ctx := context.Background()
	var full error
	made := 0
	for ; full == nil && made < 5000; made++ {
		_, full = m.Create(ctx, engine.Row{"id": "fill-" + fmtInt(made), "payment_ref": strings.Repeat("x", 500)})
	}
	if full == nil {
		t.Fatal("the disk never got full")
	}
	if !strings.Contains(full.Error(), "full") || errors.Is(full, engine.ErrBusy) || errors.Is(full, engine.ErrUnknownOutcome) {
		t.Errorf("error %v, want one that says the disk is full", full)
	}
	var rows, entries int
	if err := store.Reader().Get(&rows, "SELECT count(*) FROM orders"); err != nil {
		t.Fatal(err)
	}
	if err := store.Reader().Get(&entries, "SELECT count(*) FROM fsm_journal"); err != nil {
		t.Fatal(err)
	}
	if rows != entries || rows != made { // "o" and all but the one that failed
		t.Errorf("%d rows and %d entries after %d creations of which one failed", rows, entries, made)
	}
	if e, err := m.Get(ctx, "o"); err != nil || e.State != "pending" {
		t.Errorf("reading on a full disk: %+v, %v", e, err)
	}
}

// A store on a read-only file or directory cannot write, and says so. The tests may
// run as root, who writes everywhere; the child then gives up being it.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // the child must get in
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "x.db")
	store := openAt(t, path)
	machineOn(t, store, lampText)
	closeIdle(t, store)
	if err := os.Chmod(path, 0o444); err != nil { //nolint:gosec // nobody reads it
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil { //nolint:gosec // nobody reads it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) //nolint:gosec // for its removal
	out := runChild(t, "read-only", path)
	for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
		what, err, _ := strings.Cut(line, ": ")
		if !strings.Contains(err, "be writable") {
			t.Errorf("%s: %q, want it to say what must be writable", what, err)
		}
	}
	if !strings.Contains(out, "the file") || !strings.Contains(out, "a new file") {
		t.Errorf("the child said %q", out)
	}
}

func init() {
	children["read-only"] = func(path string) error {
		if os.Getuid() == 0 {
			if err := syscall.Setuid(65534); err != nil {
				return err
			}
		}
		for what, path := range map[string]string{"the file": path, "a new file": path + ".new"} {
			store, err := sqlite.Open(context.Background(), path)
			if err == nil {
				_, err = store.DB().Exec("CREATE TABLE x (y)")
				_ = store.Close()
			}
			say("%s: %v", what, err)
		}
		return nil
	}
}
