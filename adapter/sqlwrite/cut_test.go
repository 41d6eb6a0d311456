package sqlwrite_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite"
)

// What a proxy does when the word that it waits for comes by.
type trouble int

const (
	none         trouble = iota
	cutBefore            // nobody sees the word
	cutBehind            // the server does, and its answer is lost
	silentBehind         // the same, and the connection stays
)

// proxy stands between a writer and a server.
type proxy struct {
	listener net.Listener
	sent     atomic.Int64 // bytes of clients

	mu      sync.Mutex
	server  string
	word    []byte
	trouble trouble
}

func newProxy(t testing.TB, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(ctx, c) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		all.Wait()
	})
	return p
}

// lead has the connections to come end elsewhere.
func (p *proxy) lead(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

func (p *proxy) leads() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server
}

// arm has the next word in a client's bytes make trouble, once.
func (p *proxy) arm(word string, what trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.trouble = []byte(word), what
}

func (p *proxy) sees(b []byte) trouble {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := p.trouble
	if what == none || !bytes.Contains(bytes.ToLower(b), p.word) {
		return none
	}
	p.trouble = none
	return what
}

func (p *proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.leads())
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })()
	lost := make(chan struct{}) // closed: the server's answers are kept back
	var back sync.WaitGroup
	defer back.Wait()
	back.Go(func() {
		b := make([]byte, 64<<10)
		for {
			n, err := server.Read(b)
			select {
			case <-lost:
				if err == nil {
					continue
				}
			default:
			}
			if err != nil {
				_ = client.Close()
				return
			}
			if _, err := client.Write(b[:n]); err != nil {
				_ = server.Close()
				return
			}
		}
	})
	b := make([]byte, 64<<10)
	for {
		n, err := client.Read(b)
		if err != nil {
			_ = server.Close()
			return
		}
		p.sent.Add(int64(n))
		what := p.sees(b[:n])
		if what == cutBefore {
			_ = server.Close()
			return
		}
		if what != none {
			close(lost)
		}
		if _, err := server.Write(b[:n]); err != nil {
			return
		}
		if what == cutBehind {
			time.Sleep(300 * time.Millisecond) // the server has done it by then
			_ = server.Close()
			return
		}
	}
}

// SF-35: a commit whose answer is lost may have been done, and says so; the
// repeat meets its own row. What is lost before has not happened, where the
// database can promise that.
func TestALostAnswerMayHaveBeenDelivered(t *testing.T) {
	t.Parallel()
	servers(t, func(t testing.TB, p *place) {
		p.exec(t, "create table orders (id varchar(80) primary key)")
		between := newProxy(t, p.address(t))
		w := p.writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"}, func(c *sqlwrite.Config) {
			c.DSN, c.Duplicate = p.at(t, between.listener.Addr().String(), ""), true
		})
		deliver(t, w, message("Book", `{}`)) // so that there is a connection
		unsure := p.driver == "mysql"        // a table without transactions, perhaps
		const id = "its id"                  // which stands among the values
		for name, c := range map[string]struct {
			word  string
			what  trouble
			code  string
			maybe bool
			rows  string // that the message has behind it
		}{
			"before the statement": {"insert", cutBefore, "connection_lost", false, "0"},
			"behind the statement": {"insert", cutBehind, "connection_lost", false, "0"},
			"no answer to it":      {"insert", silentBehind, "timeout", false, "0"},
			"before the values":    {id, cutBefore, "connection_lost", unsure, "0"},
			"behind the values":    {id, cutBehind, "connection_lost", unsure, "0"},
			"no answer to them":    {id, silentBehind, "timeout", unsure, "0"},
			"before the commit":    {"commit", cutBefore, "connection_lost", true, "0"},
			"behind the commit":    {"commit", cutBehind, "connection_lost", true, "1"},
			"no answer to that":    {"commit", silentBehind, "timeout", true, "1"},
		} {
			m := message("Book", `{}`)
			between.arm(strings.Replace(c.word, id, strings.ToLower(string(m.ID)), 1), c.what)
			begun := time.Now()
			err := second(w.Deliver(soon(t, time.Second), m))
			if took := time.Since(begun); took > 10*time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			if err == nil {
				t.Errorf("%s: got no error", name)
				continue
			}
			f := holdfast.AsFailure(err)
			if f.Outcome != holdfast.Transient || f.Code != c.code || f.MaybeDelivered != c.maybe {
				t.Errorf("%s: got %v %s, maybe delivered %v: %v", name, f.Outcome, f.Code, f.MaybeDelivered, err)
			}
			if c.what != silentBehind || c.word == "commit" { // the server may see its client's end late
				count := "select count(*) from orders where id = '" + string(m.ID) + "'"
				if got := p.one(t, count); got != c.rows {
					t.Errorf("%s: got %s rows, want %s", name, got, c.rows)
				}
			}
			if r := deliver(t, w, m); r.Duplicate != (c.rows == "1") {
				t.Errorf("%s: the repeat is %+v", name, r)
			}
		}
		if got := p.one(t, "select count(*) from orders"); got != "10" {
			t.Errorf("got %s rows, want 10", got)
		}
	})
}

// A peer that is no database, or a hostile one: it costs no more than the
// attempt's time, and its words are no secret's way out.
func TestAPeerThatIsNoDatabase(t *testing.T) {
	t.Parallel()
	dsns := map[string]func(address string) string{
		"postgres":  func(a string) string { return "postgres://holdfast:hunter2@" + a + "/mes?sslmode=disable" },
		"mysql":     func(a string) string { return "holdfast:hunter2@tcp(" + a + ")/mes" },
		"sqlserver": func(a string) string { return "sqlserver://holdfast:hunter2@" + a + "?database=mes&encrypt=disable" },
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := l.Addr().String()
	_ = l.Close()
	answers := map[string]string{
		"silent": "", "HTTP": "HTTP/1.1 400 Bad Request\r\n\r\nhunter2", "zeros": string(make([]byte, 4096)), "ones": string(bytes.Repeat([]byte{0xff}, 4096)),
		"a long length": "E\x7f\xff\xff\xffSFATAL\x00C28P01\x00Mhunter2", "one byte": "S", "nothing": "close",
	}
	for driver, dsn := range dsns {
		for name, answer := range answers {
			t.Run(driver+" "+name, func(t *testing.T) {
				t.Parallel()
				w := (&place{driver: driver, dsn: dsn(speaking(t, answer))}).writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
				begun := time.Now()
				err := second(w.Deliver(soon(t, 300*time.Millisecond), message("Book", `{}`)))
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it took %v", took)
				}
				f := holdfast.AsFailure(err)
				if err == nil || f.Outcome != holdfast.Unreachable && f.Outcome != holdfast.LaneFault || f.MaybeDelivered {
					t.Errorf("got %v %s: %v", f.Outcome, f.Code, err)
				}
				if err != nil && (bytes.Contains([]byte(err.Error()), []byte("hunter2")) || len(err.Error()) > 400) {
					t.Errorf("got %q", err)
				}
			})
		}
		w := (&place{driver: driver, dsn: dsn(refusing)}).writer(t, map[string]string{"Book": "insert into orders (id) values (:_id)"})
		fails(t, second(w.Deliver(t.Context(), message("Book", `{}`))), holdfast.Unreachable, "connection_refused", false)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		fails(t, second(w.Deliver(ctx, message("Book", `{}`))), holdfast.NotStarted, "canceled", false)
	}
}

// speaking is the address of a peer that says something to whoever comes, and
// listens until the other side has enough.
func speaking(t testing.TB, what string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if what == "close" {
					return
				}
				_, _ = c.Write([]byte(what))
				b := make([]byte, 4096)
				for {
					if _, err := c.Read(b); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}
