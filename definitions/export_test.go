package definitions

import "testing"

// buildEverything makes every part of the format legal for the length of a test,
// so that the whole format is checked before the engine runs all of it.
func buildEverything(t testing.TB) {
	t.Helper()
	before := unbuilt
	unbuilt = nil
	t.Cleanup(func() { unbuilt = before })
}
