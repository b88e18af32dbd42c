package mysql

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

// long is also what package storetest looks for.
var long = flag.Bool("long", false, "run what repeats, and the kill tests, in full length")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rounds is how often something repeats.
func rounds(short, full int) int {
	if *long {
		return full
	}
	return short
}
