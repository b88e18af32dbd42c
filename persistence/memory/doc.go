// Package memory is an [engine.Store] without a database, for unit tests of code that
// uses a machine.
//
//	eng, err := engine.New(memory.New())
//	orders, err := order.New(ctx, eng)
//
// It keeps the same contract as the SQL stores and passes the same suite: outcomes,
// errors, versions, keys, journal, and transactions. Conditions and assignments are
// evaluated by the engine's own rules. There is nothing to migrate, and nothing is
// kept when the process ends.
//
// Rows that the code under test expects to be there, as another program would have
// made them, are seeded with [Store.Put]; [Store.Delete] removes one and leaves its
// journal, as DELETE does.
//
// Writers take turns: an open transaction keeps every other writer waiting, for at
// most the time of [WithWait], and then they are told engine.ErrBusy. Reads outside
// of a transaction see what was committed, and never wait.
//
// [Store.Begin] opens a transaction of the caller's own for In(tx). It holds rows of
// machines only: its SQL methods return [ErrNoSQL].
package memory
