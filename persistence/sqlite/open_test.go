package sqlite_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
	"github.com/fsmgen/fsmgen/persistence/sqlite"
)

// Whatever ran on a store, closing it closes every file: SQLite then folds the WAL
// back and deletes it. A statement that outlives its connection would prevent that.
func TestCloseLeavesOneFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	store, err := sqlite.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	m := machineOn(t, store, orderText)
	mustCreate(t, m, "o")
	mustFire(t, m, "pay", "o", engine.Args{"payment_ref": "r"})
	mustFire(t, m, "pay", "o", engine.Args{"payment_ref": "r"})
	closeIdle(t, store)
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 1 {
		t.Errorf("after Close the directory holds %v, want the database alone", files)
	}
}
