// Package transporttest holds the suite that every transport must pass, and
// faults to put between the two ends: Faulty around any Deliverer, Cutter
// around connections. It is for tests only.
package transporttest
