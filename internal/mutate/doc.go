// Program mutate makes small faults in packages and reports those that no test notices.
//
//	scripts/mutate                       everything: an hour and more on two cores
//	scripts/mutate -v -n 30 ./sqlite     thirty faults in one package, each with the test that found it
//	scripts/mutate -only lane.go .       of the usual draw, those in lane.go
//	scripts/mutate -seed 2 ./adapter/... other faults, drawn from these packages together
//
// A fault, or mutant, is one change in one place. A condition is negated, < becomes <=, == becomes
// !=, && becomes ||, + becomes -, a number becomes the next one, a call or an assignment to a field
// is left out, a break or continue is ignored, a function returns at once, or an error is swallowed.
// Logging, error texts, panics and generated code are left alone. A mutant that does not compile is
// not drawn. SQL is only text to the program, and is not changed.
//
// All mutants of a package are in one test binary, and an environment variable chooses one of them.
// So the package is compiled once, by go test -overlay, and no file of the tree changes. Each test
// first runs alone without a fault. During that run the program records which mutants the test
// reaches, also in processes that it starts. A test that takes too long is split: each part that it
// runs by t.Run is a test of its own. Then the tests that reach a mutant run against it, the
// quickest first, until one fails or takes far longer than before.
//
// The draw depends on the file, function and text of a place, not on its line: after a change
// elsewhere the same mutants are drawn. A mutant that no test reaches counts as alive. A mutant
// without any visible effect has a line in docs/testing.md that gives the reason, and does not
// count. If fewer than 90 percent die, the exit code is 1.
package main
