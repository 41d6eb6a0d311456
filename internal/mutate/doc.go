// Program mutate makes small faults in packages and says which of them no test notices.
//
//	scripts/mutate                       all that it is for: an hour and more on two cores
//	scripts/mutate -v -n 30 ./sqlite     thirty faults in one package, each with the test that saw it
//	scripts/mutate -only lane.go .       those of the usual draw that a test was written for
//	scripts/mutate -seed 2 ./adapter/... other faults, drawn from these packages together
//
// A fault, or mutant, is one change of one place: a condition is negated, < becomes <=, == becomes
// !=, && becomes ||, + becomes -, a number becomes the next one, a call or an assignment to a field
// is left out, a break or continue is ignored, a function returns at once, an error is swallowed.
// Logging, texts of errors, panics and generated code are left alone. What does not compile is not
// drawn; SQL is text to the program, and is left as it is.
//
// All mutants of a package stand in one test binary, and a variable of the environment chooses one
// of them: the package is compiled once, by go test -overlay, and no file of the tree changes. Each
// test first runs alone and without a fault; which mutants it came by is noted meanwhile, also in
// the processes that it starts. A test that is too long is taken apart: each part that it runs by
// t.Run is a test of its own. Then each mutant meets the tests that came by it, the quickest
// first, until one of them fails, or takes far longer than before.
//
// The draw is decided by the file, function and text of a place, not by its line: a change elsewhere
// draws the same mutants again. A mutant that no test came by counts as one that lives. One that
// changes nothing that can be seen has a line in docs/testing.md that says why, and does not count.
// Fewer than 90 in a hundred dead, and the program ends with 1.
package main
