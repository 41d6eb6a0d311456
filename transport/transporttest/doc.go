// Package transporttest holds the suite that every transport must pass, and faults to put between
// the two ends: Faulty around any Deliverer, Cutter around connections. Only tests use it.
package transporttest
