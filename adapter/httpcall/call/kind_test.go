package call_test

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/httpcall/call"
)

// A probe goes where the call may go, and nowhere else.
func TestAProbeGoesToAllowedAddresses(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for allowed, code := range map[string]string{"127.0.0.1": "", "public": "forbidden_address"} {
		c := call.Settings{URL: "http://" + l.Addr().String(), Addresses: []string{allowed}}
		_, err := c.Probe(t.Context(), 10*time.Second)
		if err == nil && code != "" || err != nil && holdfast.AsFailure(err).Code != code {
			t.Errorf("%s: got %v, want %q", allowed, err, code)
		}
	}
}
