//go:build !unix

package namedfile

// doNotWait is zero on systems where a file name cannot lead to a pipe without a writer.
const doNotWait = 0
