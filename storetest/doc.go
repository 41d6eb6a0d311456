// Package storetest is the suite that every store must pass: a part for each
// contract of the library, with the cases that the contract promises. A package
// with a store calls Run from its tests, which leaves no part out: it is for stores
// that hold all that a node keeps, notifications and sites too.
//
// The suite never waits for real time: Maker.Pass says how time goes by, in a
// bubble of virtual time for a file, by ageing rows for a database server.
// After every case the counters in memory are compared with a recount, before
// and after the store was opened again.
package storetest
