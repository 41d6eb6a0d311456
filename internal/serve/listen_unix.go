//go:build unix

package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func isInUse(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// lockFolder keeps other nodes out while a stale socket is replaced. If two nodes start at once, the second
// must not remove the first one's new socket.
func lockFolder(ctx context.Context, dir string) (unlock func(), err error) {
	f, err := os.Open(dir) //nolint:gosec // whoever starts the node names its socket
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) { // a file system without locks works, too
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			_ = f.Close() // it was only read
			return nil, fmt.Errorf("lock folder %s: another program holds the lock: %w", dir, ctx.Err())
		}
	}
	return func() {
		// Unlock explicitly: a child process between fork and exec still holds the file.
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
		_ = f.Close()
	}, nil
}
