//go:build !race

package engine

// raceDetector slows everything down.
const raceDetector = false
