// Package mtatest starts private mail servers for tests, Exim and Postfix, as
// judges that are not ours: with every limit as Debian or its makers set it, on a
// free port of the loopback interface, with all that they write in a folder that is
// removed with the test, and ended with the test binary, also when that is
// killed. They take mail for x.test: for everybody whose name does not begin with
// "dead", and for whose name begins with "grey" only when they are not grey. What they
// have taken they keep, and tell it by recipient. They start as root only, and
// where they cannot, the test is skipped with the reason.
package mtatest
