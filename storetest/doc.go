// Package storetest is the suite that every store must pass: one exported
// function per contract of the library, each with the cases that the contract
// promises. A package with a store calls them from its tests.
//
// The suite never waits for real time: Maker.Pass says how time goes by, in a
// bubble of virtual time for a file, by ageing rows for a database server.
// After every case the counters in memory are compared with a recount, before
// and after the store was opened again.
package storetest
