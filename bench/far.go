package main

import (
	"fmt"
	"net"
	"sync"
	"time"
)

// farAway forwards to an address. It delays each byte in both directions, and does not limit the
// rate.
type farAway struct {
	listener net.Listener
	oneWay   time.Duration
	to       string

	mu    sync.Mutex
	conns []net.Conn
}

func openFar(to string, oneWay time.Duration) (*farAway, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	f := &farAway{listener: l, oneWay: oneWay, to: to}
	go f.run()
	return f, nil
}

func (f *farAway) address() string { return f.listener.Addr().String() }

func (f *farAway) run() {
	for {
		near, err := f.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", f.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, near, far)
		f.mu.Unlock()
		go f.carry(near, far)
		go f.carry(far, near)
	}
}

// carry closes both connections when one ends.
func (f *farAway) carry(from, to net.Conn) {
	type piece struct {
		bytes []byte
		due   time.Time
	}
	under := make(chan piece, 4096) // way
	go func() {
		defer to.Close()
		for p := range under {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
			}
		}
	}()
	defer close(under)
	for {
		b := make([]byte, 64<<10)
		n, err := from.Read(b)
		if n > 0 {
			under <- piece{b[:n], time.Now().Add(f.oneWay)}
		}
		if err != nil {
			return
		}
	}
}

// Close ends the listener and all connections.
func (f *farAway) Close() error {
	err := f.listener.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		_ = c.Close()
	}
	return err
}
