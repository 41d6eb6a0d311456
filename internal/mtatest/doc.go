// Package mtatest starts private mail servers for tests: Exim and Postfix, as independent judges.
// Every limit is as Debian or the server's makers set it. A server listens on a free port of the
// loopback interface and writes only into a folder that is removed with the test. It stops with the
// test binary, even if that is killed.
//
// The servers accept mail for x.test: for every name that does not begin with "dead", and for names
// that begin with "grey" only while they are not grey. They keep accepted mails, and list them by
// recipient. They start only as root; where they cannot, the test is skipped with the reason.
package mtatest
