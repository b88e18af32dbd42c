package engine

import "time"

// wallClock is the engine's clock unless WithClock replaces it.
func wallClock() time.Time { return time.Now() }
