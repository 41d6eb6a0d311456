// Package waittest waits for other goroutines, processes and servers, however slow the machine is.
// Tests in virtual time do not need it.
package waittest

import (
	"testing"
	"time"
)

// patience allows for a busy machine: it should end no wait that would succeed, and a failing test
// may take long.
const patience = 2 * time.Minute

// Until checks ok again and again until it returns true, and fails the test if it never does. what
// says briefly what was waited for.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end, pause := time.Now().Add(patience), time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s it is still not so: %s", patience, what)
		}
		time.Sleep(pause)
	}
}
