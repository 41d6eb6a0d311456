// Package waittest waits for what other goroutines, processes and servers do,
// however slow the machine is. What runs in virtual time needs none of it.
package waittest

import (
	"testing"
	"time"
)

// patience is for a machine that has much else to do: it ends no wait that would
// come to something, and a test that fails may take long.
const patience = 2 * time.Minute

// Until waits until ok holds, looking again and again, and fails the test if it
// never does. What says in a few words what was waited for.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end, pause := time.Now().Add(patience), time.Millisecond; !ok(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %s it is still not so: %s", patience, what)
		}
		time.Sleep(pause)
	}
}
