package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Listen takes an address: "tcp", or the path of a socket ("unix"). Its error says who may have the address.
func Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if network == "unix" {
		return listenSocket(ctx, address)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, network, address)
	if isInUse(err) {
		return nil, errors.New("another program uses this address; stop it, or choose another with --listen")
	}
	return l, err //nolint:wrapcheck // it names the address; the caller says what was wanted
}

// socketMode lets the node's user and group in. Whoever may connect may do everything; on the loopback, that
// is everybody on the machine.
const socketMode = 0o660

// listenSocket makes a Unix socket, which is removed when the listener is closed. It replaces a socket that a
// dead process has left behind.
func listenSocket(ctx context.Context, path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	unlock, err := lockFolder(ctx, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("folder %s does not exist; make it, for those who may connect", dir)
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeStale(ctx, path); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the path; the caller says what was wanted
	}
	// Until here the umask decides; as a rule, it lets nobody else connect.
	if err := os.Chmod(path, socketMode); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// removeStale removes a socket file that nobody listens on, and nothing else.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSocket == 0:
		return fmt.Errorf("%s exists and is not a socket; choose another path, or move it away", path)
	}
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
		return errors.New("another program listens there; stop it, or choose another path with --listen")
	case !isRefused(err):
		return fmt.Errorf("cannot tell whether another program listens there: %w", err)
	}
	return os.Remove(path)
}
