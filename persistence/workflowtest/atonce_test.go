package workflowtest

import (
	"errors"
	"sync"
	"testing"

	"github.com/fsmgen/fsmgen/engine"
)

// got is how a call ended.
type got struct {
	engine.Result
	err error
}

// atOnce makes n calls at once.
func atOnce(n int, call func(i int) (engine.Result, error)) []got {
	out := make([]got, n)
	gate := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-gate
			out[i].Result, out[i].err = call(i)
		})
	}
	close(gate)
	group.Wait()
	return out
}

// wantOneOf wants one call to be applied and all others to end with an error.
func wantOneOf(t testing.TB, calls []got, others error) {
	t.Helper()
	if n := count(t, calls, others)[engine.Applied]; n != 1 {
		t.Fatalf("%d of %d calls were applied, want 1", n, len(calls))
	}
}

// count counts outcomes; 0 stands for the error that is expected. Any other error
// fails the test.
func count(t testing.TB, calls []got, expected error) map[engine.Outcome]int {
	t.Helper()
	out := map[engine.Outcome]int{}
	for _, c := range calls {
		if c.err != nil && (expected == nil || !errors.Is(c.err, expected)) {
			t.Fatalf("unexpected: %v", c.err)
		}
		out[c.Outcome]++
	}
	return out
}
