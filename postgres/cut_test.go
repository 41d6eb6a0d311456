package postgres_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

// wire stands between a store and its server, and cuts one connection where it
// is told to.
type wire struct {
	server string

	mu   sync.Mutex
	addr string // of the client whose connection is cut
	left int    // messages of it that still pass
	lost bool   // the last one passes, and its answer does not
	cut  bool
}

// through starts a wire and returns the address of the database by way of it.
func through(t testing.TB, dsn string) (*wire, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{server: u.Host}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go w.serve(c)
		}
	}()
	u.Host = l.Addr().String()
	q := u.Query()
	q.Set("sslmode", "disable")
	u.RawQuery = q.Encode()
	return w, u.String()
}

// arm cuts the connection of a client at its nth message from now on.
func (w *wire) arm(addr string, left int, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addr, w.left, w.lost, w.cut = addr, left, lost, false
}

// wasCut says whether it came to that.
func (w *wire) wasCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.addr = ""
	return w.cut
}

// passes is asked for each message of a client.
func (w *wire) passes(addr string) (pass, answer bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if addr != w.addr {
		return true, true
	}
	w.left--
	switch {
	case w.left > 0:
		return true, true
	case w.left == 0 && w.lost:
		w.cut = true
		return true, false
	}
	w.cut = true
	return false, false
}

func (w *wire) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	var answers sync.WaitGroup
	defer answers.Wait()
	defer server.Close()
	heard := make(chan struct{})
	answers.Go(func() {
		defer close(heard)
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if pass, _ := w.answers(client.RemoteAddr().String()); n > 0 && pass {
				_, _ = client.Write(buffer[:n])
			}
			if err != nil {
				_ = client.Close()
				return
			}
		}
	})
	for first := true; ; first = false {
		message, err := message(client, first)
		if err != nil {
			return
		}
		pass, answer := w.passes(client.RemoteAddr().String())
		if pass {
			if _, err := server.Write(message); err != nil {
				return
			}
		}
		if !answer {
			_ = client.Close() // the client sees the end; the server ends what it has
			if pass {
				_ = server.(*net.TCPConn).CloseWrite()
				<-heard
			}
			return
		}
	}
}

// answers says whether answers still reach a client.
func (w *wire) answers(addr string) (pass, armed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return addr != w.addr || !w.cut, addr == w.addr
}

// Outbox case 42, OI-07. The connection of a handler's transaction is lost
// before and after each message to the server in turn, the COMMIT among them:
// there is no effect without its id, and no id without its effect; an error
// says that neither is there; and a repeat has no second effect.
func TestHandlersConnectionIsLostAtEachPoint(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"the message is lost": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, postgres.Options{})
			c := &cutting{shop: s, lost: lost}
			c.wire, c.dsn = through(t, s.dsn)
			c.db = opened(t, c.dsn, postgres.Options{})
			stood, last := false, 0
			for n := 1; ; n++ {
				cut, stands := c.process(t, n)
				if stood = stood || stands; !cut {
					break
				}
				last = n
			}
			// The last message is the COMMIT. On a busy machine it may not have
			// been read when the store has its transaction ended.
			for range 5 {
				if lost && !stood {
					_, stood = c.process(t, last)
				}
			}
			if last < 10 || stood != lost {
				t.Errorf("cut %d times; a transaction stands whose connection was cut: %t", last, stood)
			}
		})
	}
}

type cutting struct {
	*shop
	wire *wire
	dsn  string
	db   *postgres.DB
	lost bool
	ids  int
}

// process processes a message, and cuts the connection at its nth message to
// the server. It tells whether it came to that, and whether the transaction
// stands all the same.
func (c *cutting) process(t *testing.T, n int) (cut, stands bool) {
	t.Helper()
	c.ids++
	id := c.ids
	armed := ""
	if err := c.db.Do(t.Context(), func(_ context.Context, tx *postgres.Tx) error {
		armed = local(tx) // the connection that is used next
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	c.wire.arm(armed, n, c.lost)
	m := received(holdfast.ID(fmt.Sprint(id)))
	on := ""
	handler := func(ctx context.Context, tx *postgres.Tx, _ holdfast.Message) ([]byte, error) {
		on = local(tx)
		if _, err := tx.Exec(ctx, "INSERT INTO orders VALUES ($1)", id); err != nil {
			return nil, err
		}
		_, err := tx.Enqueue(ctx, order(m.ID))
		return []byte("booked"), err
	}
	r, err := c.db.Inbox().Process(t.Context(), m, handler)
	cut = c.wire.wasCut()
	effects := c.number(t, "SELECT count(*) FROM orders WHERE id = $1", id)
	if ids := c.shop.ids(t); ids != c.orders(t) || c.messages(t) != ids {
		t.Errorf("cut at %d: %d ids, %d orders, %d messages", n, ids, c.orders(t), c.messages(t))
	}
	if (err == nil) != (effects == 1) || r.Duplicate {
		t.Errorf("cut at %d: %d effects, %+v, %v", n, effects, r, err)
	}
	stands = cut && effects == 1 && on == armed
	again, err := c.db.Inbox().Process(t.Context(), m, handler)
	if err != nil || again.Duplicate != (effects == 1) || string(again.Response) != "booked" {
		t.Errorf("cut at %d: a repeat: %+v, %v", n, again, err)
	}
	c.stand(t, int64(id), int64(id), int64(id))
	if got := c.db.Counts(); got.Inbox != int64(id) || got.Pending != int64(id) {
		t.Errorf("cut at %d: counts %+v", n, got)
	}
	return cut, stands
}

func local(tx *postgres.Tx) string { return tx.Conn().PgConn().Conn().LocalAddr().String() }
