package sqlite_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

var (
	long   = flag.Bool("long", false, "run the tests with several processes and the kill tests in full length")
	ratios = flag.Bool("ratios", false, "measure the figures of the benchmarks as ratios to a hand-written UPDATE")
)

// childEnv names the part that a copy of this test binary plays instead of testing.
const childEnv = "FSMGEN_TEST_CHILD"

// children are those parts: they get the database's path, and say on stdout what
// the parent waits for.
var children = map[string]func(path string) error{}

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		if err := children[part](os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, part+":", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}
