// Package storetest is the contract of an [engine.Store] as an executable suite.
//
// A store's own test calls [Run] with a [Harness] that opens fresh, empty stores
// and reaches their tables from beside the engine ([Backend]); [SQL] is a Backend
// for any store over database/sql. What a store cannot do is said in [Features],
// and every test that needs it is skipped aloud.
//
// After every test the suite reads the raw rows and the raw journal and holds them
// against each other and against the definition: as many journal entries as the
// row's version says, from and to without a gap and legal, the row where its last
// entry left it, no key twice, no connection in use. Rows that a test made or bent
// from outside are exempted by that test alone.
package storetest
