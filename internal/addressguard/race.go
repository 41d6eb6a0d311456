package addressguard

import (
	"context"
	"net"
	"time"
)

// mostDialed is how many addresses of a name are tried: a name with thousands must not make us
// knock everywhere.
const mostDialed = 8

// stagger is how long an address has before the next one is tried too (RFC 8305).
const stagger = 300 * time.Millisecond

// race returns the first connection to one of the addresses, or the error of the first that failed.
func race(ctx context.Context, d *net.Dialer, network string, to []string) (net.Conn, error) {
	type end struct {
		conn net.Conn
		err  error
	}
	ctx, stop := context.WithCancel(ctx)
	ends := make(chan end, len(to))
	var begun, running int
	defer func() {
		stop()
		for range running {
			if e := <-ends; e.err == nil {
				_ = e.conn.Close() // it came too late
			}
		}
	}()
	var first error
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-next.C:
			if begun == len(to) {
				continue
			}
			address := to[begun]
			begun, running = begun+1, running+1
			go func() { // the deferred function waits for it
				conn, err := d.DialContext(ctx, network, address)
				ends <- end{conn, err}
			}()
			next.Reset(stagger)
		case e := <-ends:
			running--
			if e.err == nil {
				return e.conn, nil
			}
			if first == nil {
				first = e.err
			}
			if running == 0 && begun == len(to) {
				return nil, first
			}
			next.Reset(0)
		}
	}
}
