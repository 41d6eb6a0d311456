// Package pgtest starts a private PostgreSQL for tests, from the binaries of the system.
//
// A server listens on a free port of the loopback interface and keeps its data in its own folder.
// It outlives neither the test nor the test binary: a small watchdog process stops it and removes
// the folder when the binary is gone, even after a panic or kill -9. PostgreSQL refuses to run as
// root, so root runs it as the user postgres, or nobody.
//
// Most tests want a database of their own on a server that the whole test binary shares:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, pgtest.Options{})) }
//
//	dsn := pgtest.Shared(t).Database(t)
//
// A test that stops, kills or pauses the server starts its own with Start. If there is no
// PostgreSQL, the test fails and says what to install; no test is skipped.
package pgtest
