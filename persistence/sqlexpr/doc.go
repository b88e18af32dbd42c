// Package sqlexpr compiles the expressions of definitions to SQL, so that a condition
// can stand in the WHERE of an UPDATE and a right-hand side in its SET.
//
// Every expression becomes two texts. The value is what it says. The check is true
// where evaluating it in Go is not rejected, never NULL, and often empty: most
// expressions cannot be rejected. A statement that tests both matches no row where Go
// would reject:
//
//	UPDATE t SET c = value … WHERE id = ? AND status = ? AND check(when) AND value(when) AND check(set)
//
// No text may raise an error, whatever the row and the arguments hold, and not
// because something beside it guards it: databases evaluate conditions in any order
// and constants while they plan. Every operator is therefore written so that it is
// total by itself. Rejection is not NULL either, or `(a + b) ?? 0` would swallow an
// overflow. Only names of columns and our own constants are text; everything else is
// bound.
//
// A [Builder] collects the texts of one statement, which the caller puts together
// with its own in any order, and [Builder.Build] numbers the parameters. That happens
// once per transition; a call only binds its values with [Statement.Bind].
package sqlexpr
