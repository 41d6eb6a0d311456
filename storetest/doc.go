// Package storetest is the suite that every store must pass. It has a part for each contract of the
// library, with the cases that the contract promises. The package of a store calls Run from its
// tests; Run leaves no part out. It is for stores that hold everything that a node keeps, including
// notifications and sites.
//
// The suite never waits in real time. Maker.Pass lets time pass: in a bubble of virtual time for a
// file, by ageing rows for a database server. After every case the counters in memory are compared
// with a recount, before and after the store was opened again.
package storetest
