//go:build !unix

package namedfile

// doNotWait is nothing where the name of a file cannot lead to a pipe that is
// still to be written.
const doNotWait = 0
