package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// story plays the example on a database and returns what it says.
func played(t *testing.T, db string) string {
	t.Helper()
	var out strings.Builder
	if err := run(context.Background(), &out, db); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	return out.String()
}

func TestStory(t *testing.T) {
	said := played(t, filepath.Join(t.TempDir(), "payments.db"))
	at := 0
	for _, want := range []string{ // in this order
		"settle: Applied", "settle: Replayed", "payment is settled, the ledger has 1 postings of it, 9900 cents",
		"over the limit of the risk department", "payment is authorized, the ledger has 0 postings",
		"closed for the night", "payment is authorized, the ledger has 0 postings", "payment is settled, the ledger has 1 postings of it, 700 cents",
		"nobody is told before COMMIT", "-d is settled)", "-d is refunded)", "payment is refunded, the ledger has 2 postings of it, 0 cents",
	} {
		i := strings.Index(said[at:], want)
		if i < 0 {
			t.Fatalf("the story lacks %q after %d:\n%s", want, at, said)
		}
		at += i + len(want)
	}
	if n := strings.Count(said, "mail to ann"); n != 4 {
		t.Errorf("%d mails, want one per transition that committed:\n%s", n, said)
	}
}

func TestStoryOnServers(t *testing.T) {
	for variable, prefix := range map[string]string{"FSMGEN_TEST_POSTGRES": "", "FSMGEN_TEST_MYSQL": "mysql://"} {
		t.Run(variable, func(t *testing.T) {
			dsn := os.Getenv(variable)
			if dsn == "" {
				t.Skipf("set %s to play the story there too", variable)
			}
			played(t, prefix+dsn)
		})
	}
}
