package exchange

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// ADR 0050: what a subscriber reads names neither proxy nor resolver, and is of the same kind as before.
func TestAFailureTellsNothingOfOurNetwork(t *testing.T) {
	t.Parallel()
	ours := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 9), Port: 3128}
	refused := os.NewSyscallError("connect", syscall.ECONNREFUSED)
	reset := os.NewSyscallError("read", syscall.ECONNRESET)
	for want, err := range map[string]error{
		"shop.example:443: connect: connection refused":        &net.OpError{Op: "proxyconnect", Net: "tcp", Err: &net.OpError{Op: "dial", Net: "tcp", Addr: ours, Err: refused}},
		"shop.example:443: read: connection reset by peer":     &net.OpError{Op: "read", Net: "tcp", Source: ours, Addr: ours, Err: reset},
		"shop.example:443: the name cannot be looked up":       &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "dial udp 10.0.0.9:53: refused", Name: "shop.example", Server: "10.0.0.9:53"}},
		"shop.example:443: there is no such name":              &net.DNSError{Err: "no such host", Name: "shop.example", Server: "10.0.0.9:53", IsNotFound: true},
		"shop.example:443: the name was not looked up in time": &net.DNSError{Err: "read udp 10.0.0.9:53: i/o timeout", Server: "10.0.0.9:53", IsTimeout: true},
		"malformed HTTP response":                              errors.New("malformed HTTP response"),
		"shop.example:443: i/o timeout":                        &net.OpError{Op: "dial", Net: "tcp", Addr: ours, Err: os.ErrDeadlineExceeded},
	} {
		f := Outward(Failure(context.Background(), err, false), "shop.example:443")
		if got := f.Err.Error(); got != want || strings.Contains(f.Error(), "10.0.0.9") {
			t.Errorf("got %s, want %s", got, want)
		}
		if !errors.Is(f, err) {
			t.Errorf("%s does not wrap what it was", f)
		}
	}
}
