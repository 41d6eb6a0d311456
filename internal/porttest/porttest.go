// Package porttest finds ports for the servers that tests start in other
// processes.
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
	held []net.PacketConn // for as long as this process lives
)

// Free returns a port of the loopback that no TCP server uses, and that no other
// call on this machine returns while this process lives: between the look and the
// server's start, and while a server is down, nobody else takes it. It is below those
// that the system gives to connections that go out; else a client that dials a server
// which is down could be given that port, and be connected to itself.
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

// take holds the UDP port of the same number, which no server under test uses, as the
// sign that the number is taken.
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
