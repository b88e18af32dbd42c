package definitions

import "testing"

// buildEverything makes every part of the format legal for the length of a test,
// so that the whole format is checked before the engine runs all of it.
func buildEverything(t testing.TB) {
	t.Helper()
	buildAllBut(t)
}

// buildAllBut makes every part of the format legal but those named.
func buildAllBut(t testing.TB, names ...string) {
	t.Helper()
	before := unbuilt
	unbuilt = map[string]bool{}
	for _, name := range names {
		unbuilt[name] = true
	}
	t.Cleanup(func() { unbuilt = before })
}
