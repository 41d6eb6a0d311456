// Package pgtest starts a private PostgreSQL for tests, from the binaries of the system.
//
// A server listens on a free port of the loopback interface, keeps its data in a folder of its
// own, and outlives neither the test nor the test binary: a small watchdog, a process apart, ends
// it and removes the folder when the binary is gone, also by a panic or by kill -9. As root, which
// PostgreSQL refuses to be, it runs as the user postgres, or nobody.
//
// Most tests want a database of their own on a server that the whole test binary shares:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, pgtest.Options{})) }
//
//	dsn := pgtest.Shared(t).Database(t)
//
// A test that stops, kills or pauses the server starts its own with Start. Where there is no
// PostgreSQL, the test fails and says what to install; nothing here skips.
package pgtest
