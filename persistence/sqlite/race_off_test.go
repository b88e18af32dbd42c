//go:build !race

package sqlite_test

// raceDetector allocates too.
const raceDetector = false
