package porttest

import "testing"

// Two tests that look at the same moment do not get one port, though neither server
// listens yet.
func TestAPortIsGivenOnce(t *testing.T) {
	port, err := Free()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := take(port); err == nil {
		t.Errorf("port %d was given again", again)
	}
}
