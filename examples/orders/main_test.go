package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	if err := run(t.Context(), &out, ""); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"100 calls, 100 successes: 1 Applied, 99 Replayed; the journal has 1 payment",
		"pay: AlreadyPassed, the order stays shipped at version 3",
		"won; the other was told:",
		"from which is allowed: refund, complete",
		"complete: Applied, shipped → completed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story lacks %q:\n%s", want, out.String())
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestKeptDatabaseCanBePlayedAgain(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "orders.db")
	for range 2 {
		if err := run(context.Background(), new(strings.Builder), db); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(db); err != nil {
		t.Error(err)
	}
}
