// Package engine runs the transitions of a [definitions.Machine] against a store.
//
// Every transition is one compare-and-set on the status and version of the user's
// own row. A call that changed nothing is diagnosed and answered truthfully: a
// duplicate is success ([AlreadyReached], [AlreadyPassed], [Replayed]), everything
// else is one of the errors of this package, matched with errors.Is and carrying
// an [Error].
//
// The package holds the behaviour and the ports it needs ([Store], [Table]). It
// knows no SQL and no driver; the adapters live in package persistence.
package engine
