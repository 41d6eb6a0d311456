package postgres_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a store and its server and loses what it is told to.
type proxy struct {
	to       string
	listener net.Listener
	fault    atomic.Int32 // for the next commit
	lost     atomic.Int32 // commits that met their fault
	every    atomic.Int32 // 0: the next commit only; n: of n commits one
	commits  atomic.Int32
	rewrite  atomic.Pointer[[2]string] // in the client's simple statements: what, by what
	deaf     atomic.Bool               // requests to cancel are not answered
	unheard  atomic.Int32              // of which so many wait

	mu    sync.Mutex
	conns []net.Conn
}

// leadTo is the address moving to another server: connections stay where they are.
func (p *proxy) leadTo(t testing.TB, dsn string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = u.Host
}

func (p *proxy) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to
}

// What becomes of a commit.
const (
	noFault  int32 = iota
	noAnswer       // the server has done it, the answer is lost
	notSent        // the connection ends before it gets there
	halfOpen       // it gets lost and the server hears no more of its client
)

func newProxy(t testing.TB, dsn string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: u.Host}
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := p.listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = p.listener.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			_ = c.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	u.Host = p.listener.Addr().String()
	return p, u.String()
}

// take says what becomes of this commit.
func (p *proxy) take() int32 {
	if n := p.every.Load(); n > 0 {
		if p.commits.Add(1)%n != 0 {
			return noFault
		}
		p.lost.Add(1)
		return p.fault.Load()
	}
	f := p.fault.Swap(noFault)
	if f != noFault {
		p.lost.Add(1)
	}
	return f
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.target())
	p.mu.Lock()
	p.conns = append(p.conns, client)
	if err == nil {
		p.conns = append(p.conns, server)
	}
	p.mu.Unlock()
	if err != nil {
		_ = client.Close()
		return
	}
	l := &link{proxy: p, client: client, server: server, names: map[string]bool{}}
	var both sync.WaitGroup
	both.Go(func() {
		if errors.Is(l.up(), errHalfOpen) {
			_ = client.Close()
			return // the server's side stays until the test ends
		}
		_ = client.Close()
		_ = server.Close()
	})
	both.Go(func() {
		_ = l.down()
		_ = client.Close()
		_ = server.Close()
	})
	both.Wait()
}

// link is one connection.
type link struct {
	proxy          *proxy
	client, server net.Conn
	names          map[string]bool // prepared statements that commit, true: by themselves
	whole          atomic.Bool     // the commit on its way is of a statement by itself
	fault          atomic.Int32    // of the commit that is on its way
}

var errHalfOpen = errors.New("half open")

// up carries the client's messages, and knows a COMMIT when it sees one.
func (l *link) up() error {
	first := true
	for {
		m, err := message(l.client, first)
		if err != nil {
			return err
		}
		if first && l.proxy.deaf.Load() && isCancel(m) {
			l.proxy.unheard.Add(1)
			_, err = io.Copy(io.Discard, l.client)
			l.proxy.unheard.Add(-1)
			return err
		}
		first = false
		if r := l.proxy.rewrite.Load(); r != nil && m[0] == 'Q' {
			m = append(m[:5:5], bytes.ReplaceAll(m[5:], []byte(r[0]), []byte(r[1]))...)
			binary.BigEndian.PutUint32(m[1:], uint32(len(m)-1))
		}
		if l.commits(m) {
			f := l.proxy.take()
			switch f {
			case notSent:
				return io.ErrClosedPipe
			case halfOpen:
				return errHalfOpen
			}
			l.fault.Store(f)
		}
		if _, err := l.server.Write(m); err != nil {
			return err
		}
	}
}

// isCancel says whether a client's first message asks to cancel what another connection does.
func isCancel(m []byte) bool { return len(m) >= 8 && binary.BigEndian.Uint32(m[4:]) == 80877102 }

func (l *link) commits(m []byte) bool {
	body := m[5:]
	switch m[0] {
	case 'P': // a statement: name, text
		name, rest, _ := bytes.Cut(body, []byte{0})
		text, _, _ := bytes.Cut(rest, []byte{0})
		delete(l.names, string(name))
		if atOnce := bytes.Contains(text, []byte("tally AS (INSERT")); atOnce || bytes.EqualFold(text, []byte("commit")) {
			l.names[string(name)] = atOnce
		}
	case 'B': // its parameters: portal, name
		_, rest, _ := bytes.Cut(body, []byte{0})
		name, _, _ := bytes.Cut(rest, []byte{0})
		atOnce, commits := l.names[string(name)]
		l.whole.Store(atOnce)
		return commits
	case 'Q':
		return bytes.EqualFold(bytes.TrimRight(body, "; \x00"), []byte("commit"))
	}
	return false
}

// down carries the answers, but for the one that is to be lost.
func (l *link) down() error {
	for {
		m, err := message(l.server, false)
		if err != nil {
			return err
		}
		if l.whole.Load() && l.fault.Load() == noAnswer {
			if m[0] == 'Z' { // only now it is committed
				return io.ErrClosedPipe
			}
			continue
		}
		if m[0] == 'C' && string(m[5:]) == "COMMIT\x00" && l.fault.Swap(noFault) == noAnswer {
			return io.ErrClosedPipe
		}
		if _, err := l.client.Write(m); err != nil {
			return err
		}
	}
}

// message reads one message of the protocol. The client's first has no letter;
// it is given back as it came.
func message(from io.Reader, first bool) ([]byte, error) {
	head := make([]byte, 5)
	if first {
		head = head[:4]
	}
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head[len(head)-4:]))
	body := make([]byte, n-4)
	_, err := io.ReadFull(from, body)
	return append(head, body...), err
}
