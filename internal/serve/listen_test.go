//go:build unix

package serve_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/serve"
)

// socketPath is short enough for every system.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// Of many that start at once over a stale socket, one listens, and stays
// reachable.
func TestOneOfManyGetsTheSocket(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	const many = 8
	listeners := make(chan net.Listener, many)
	for range many {
		go func() {
			l, _ := serve.Listen(t.Context(), "unix", path)
			listeners <- l
		}()
	}
	won := 0
	for range many {
		if l := <-listeners; l != nil {
			won++
			defer l.Close()
		}
	}
	if conn, err := net.Dial("unix", path); err != nil || won != 1 {
		t.Errorf("%d listeners, %v; want one, and that it is reached", won, err)
	} else {
		conn.Close()
	}
}
