//go:build unix

package exchange

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// silent reports that nothing waits to be read on a connection, not even its end: an answer before
// its request is none. Another goroutine may be reading from it.
func silent(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		err := error(unix.EINTR)
		for errors.Is(err, unix.EINTR) {
			_, _, err = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		}
		quiet = errors.Is(err, unix.EAGAIN)
	})
	return err == nil && quiet
}
