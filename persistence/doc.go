// Package persistence is the SQL adapter of the engine: one [Store] over sqlx,
// and a small [Dialect] per database that says how its SQL reads, what it can do,
// and what its errors mean.
//
// Nothing here is built from data: identifiers are quoted by the dialect, values
// are always bound.
package persistence
