// Package porttest finds ports for servers that tests start in other processes.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

var (
	mu   sync.Mutex
	held []net.PacketConn // held as long as this process lives
)

// Free returns a port of the loopback that no TCP server uses. No other call on this machine
// returns it while this process lives. So nobody else takes it before the server starts, or while
// the server is down. The port is below the range that the system uses for outgoing connections.
// Otherwise a client that dials a stopped server could get that very port, and be connected to
// itself.
func Free() (int, error) {
	var errs error
	for range 50 {
		port, err := take(12000 + rand.IntN(18000))
		if err == nil {
			return port, nil
		}
		errs = errors.Join(errs, err)
	}
	return 0, fmt.Errorf("find a free port: %w", errs)
}

// take binds the UDP port of the same number, which no server under test uses, to mark the number
// as taken.
func take(port int) (int, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	sign, err := net.ListenPacket("udp", address)
	if err != nil {
		return 0, err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return 0, errors.Join(err, sign.Close())
	}
	if err := l.Close(); err != nil {
		return 0, errors.Join(err, sign.Close())
	}
	mu.Lock()
	defer mu.Unlock()
	held = append(held, sign)
	return port, nil
}
