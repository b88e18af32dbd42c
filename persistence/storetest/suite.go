package storetest

import (
	"flag"
	"testing"
)

// rounds is how often a hammering test repeats: many times where the test binary was
// given -long, a flag that the store's own test package defines.
func rounds(few, many int) int {
	if f := flag.Lookup("long"); f != nil && f.Value.String() == "true" {
		return many
	}
	return few
}

// check is one test of the contract.
type check struct {
	name string
	run  func(e *env)
	// pending names the known fault for which the test is skipped, aloud.
	pending string
}

// topic is a group of checks under one heading.
type topic struct {
	name   string
	checks []check
}

// topics is the contract.
func topics() []topic {
	return []topic{
		{"Create", createChecks()},
		{"Fire", fireChecks()},
		{"Types", typeChecks()},
		{"Duplicates", duplicateChecks()},
		{"Keys", keyChecks()},
		{"Versions", versionChecks()},
		{"Strangers", strangerChecks()},
		{"Bare", bareChecks()},
		{"Reads", readChecks()},
		{"Conditions", conditionChecks()},
		{"InCallersTx", inTxChecks()},
		{"Transact", transactChecks()},
		{"Rivals", rivalChecks()},
		{"Unique", uniqueChecks()},
		{"Code", codeChecks()},
		{"Misses", missChecks()},
		{"LostAnswers", lostChecks()},
		{"Concurrency", concurrencyChecks()},
		{"Cancellation", cancelChecks()},
	}
}

// Run holds a store to the contract, each test on a fresh store of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	for _, topic := range topics() {
		t.Run(topic.name, func(t *testing.T) {
			for _, c := range topic.checks {
				t.Run(c.name, func(t *testing.T) {
					if c.pending != "" {
						t.Skip("known fault: " + c.pending)
					}
					c.run(&env{T: t, h: h})
				})
			}
		})
	}
}
