package node_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// The source's failure table (OI-12), row by row, in virtual time: a sender
// and a receiver with real files, joined by the real wire over a pipe. A crash
// is what kill -9 leaves behind: the files as they are at that moment, opened
// by another process. TestKill does the same with real processes at random.

// world is a sender, a receiver and the line between them.
type world struct {
	t        *testing.T
	sender   *sqlite.DB
	receiver *sqlite.DB
	faults   *transporttest.Faulty
	handler  holdfast.Handler[*sqlite.Tx]

	mu   sync.Mutex
	line *transporttest.PipeListener
	down bool
	stop []func()
}

func newWorld(t *testing.T, plan transporttest.Plan) *world {
	t.Helper()
	w := &world{t: t, faults: &transporttest.Faulty{Plan: plan}}
	w.sender, w.receiver = open(t, t.TempDir()), open(t, t.TempDir())
	if err := w.receiver.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, `CREATE TABLE effect (id TEXT NOT NULL)`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.handler = book
	return w
}

// book is the business effect: one row.
func book(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
	_, err := tx.ExecContext(ctx, `INSERT INTO effect (id) VALUES (?1)`, string(m.ID))
	return []byte(fmt.Sprintf(`{"booked": %q}`, m.ID)), err
}

func open(t *testing.T, dir string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "holdfast.db"), sqlite.Options{Source: "shop", SaneAfter: time.Unix(1, 0), Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// leave copies the files of a store as they are on disk now: what a process
// that is killed at this moment leaves behind.
func leave(t *testing.T, db *sqlite.DB) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(db.Path() + suffix)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err == nil {
			if err := os.WriteFile(filepath.Join(dir, "holdfast.db"+suffix), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// Receive is the receiver's process while it is up.
func (w *world) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	w.mu.Lock()
	db, handler := w.receiver, w.handler
	w.mu.Unlock()
	receipt, err := db.Inbox().Process(ctx, m, handler)
	return receipt, holdfast.ReceiveFailure(err)
}

// run starts the receiver's server and the sender's dispatcher.
func (w *world) run() {
	w.t.Helper()
	secret, err := wire.NewSecret([]byte("a secret between two tests"))
	if err != nil {
		w.t.Fatal(err)
	}
	handler, err := transport.NewServer(transport.ServerConfig{
		Receiver: w, Peer: func(string) (transport.Peer, bool) { return transport.Peer{Secrets: []*wire.Secret{secret}}, true },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.line = transporttest.NewPipeListener()
	server := &http.Server{Handler: handler}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(w.line)
	}()
	client, err := transport.NewClient(transport.ClientConfig{
		URL: "http://receiver.test", Source: "shop", Secrets: []*wire.Secret{secret}, Dial: w.line.Dial,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.faults.To = client
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan error, 1)
	d := &holdfast.Dispatcher{Store: w.sender, Routes: map[string]holdfast.Route{"receiver": {Deliverer: w, Timeout: 10 * time.Second}}}
	go func() { ended <- d.Run(ctx) }()
	w.stop = append(w.stop, func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
		client.Close()
		_ = server.Close()
		<-served
	})
}

// Deliver is the line: cut while the receiver is down.
func (w *world) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return holdfast.Receipt{}, &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused"}
	}
	return w.faults.Deliver(ctx, m)
}

func (w *world) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

func (w *world) end() {
	w.t.Helper()
	for _, f := range w.stop {
		f()
	}
	w.stop = nil
	for _, db := range []*sqlite.DB{w.sender, w.receiver} {
		if err := db.Close(); err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) send(m holdfast.Message) holdfast.ID {
	w.t.Helper()
	m.Destination, m.Endpoint, m.Payload = "receiver", "Book", []byte(`{"n":  1}`)
	receipts, err := w.sender.Enqueue(w.t.Context(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	return receipts[0].ID
}

// effects counts the receiver's rows of a message.
func effects(t *testing.T, db *sqlite.DB, id holdfast.ID) int {
	t.Helper()
	var n int
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		return tx.QueryRowContext(ctx, `SELECT count(*) FROM effect WHERE id = ?1`, string(id)).Scan(&n)
	}); err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) want(id holdfast.ID, state holdfast.State, times int) holdfast.Record {
	w.t.Helper()
	r, err := w.sender.Get(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	if r.State != state {
		w.t.Errorf("message is %s (%s), want %s", r.State, r.LastError, state)
	}
	if n := effects(w.t, w.receiver, id); n != times {
		w.t.Errorf("it took effect %d times, want %d", n, times)
	}
	return r
}

// crash replaces a store by what its killed process left behind.
func (w *world) crash(db **sqlite.DB, dir string) {
	w.t.Helper()
	old := *db
	next := open(w.t, dir)
	w.mu.Lock()
	*db = next
	w.mu.Unlock()
	if err := old.Close(); err != nil {
		w.t.Error(err)
	}
}

func TestOI12SenderCrashesBeforeOutboxWrite(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		var left string
		err := w.sender.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			if _, err := tx.ExecContext(ctx, `CREATE TABLE orders (id INTEGER)`); err != nil {
				return err
			}
			if _, err := tx.Enqueue(ctx, holdfast.Message{ID: "order-1", Destination: "receiver", Endpoint: "Book", Payload: []byte(`1`)}); err != nil {
				return err
			}
			left = leave(t, w.sender) // killed before the commit
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.crash(&w.sender, left)
		if _, err := w.sender.Get(t.Context(), "order-1"); err == nil {
			t.Error("the message exists although its transaction never committed")
		}
		if err := w.sender.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
			var n int
			return tx.QueryRowContext(ctx, `SELECT count(*) FROM orders`).Scan(&n)
		}); err == nil {
			t.Error("the business row's table exists although its transaction never committed")
		}
	})
}

func TestOI12SenderCrashesAfterOutboxWrite(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		id := w.send(holdfast.Message{})
		w.crash(&w.sender, leave(t, w.sender)) // killed before a dispatcher saw it
		w.run()
		time.Sleep(time.Minute)
		w.want(id, holdfast.Delivered, 1)
	})
}

func TestOI12NetworkFailureDuringSend(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script(transporttest.LoseRequest, transporttest.LoseRequest))
		defer w.end()
		id := w.send(holdfast.Message{})
		w.run()
		time.Sleep(time.Second)
		w.want(id, holdfast.Pending, 0)
		time.Sleep(time.Minute)
		if r := w.want(id, holdfast.Delivered, 1); r.Tries != 3 {
			t.Errorf("%d tries, want 3", r.Tries)
		}
	})
}

func TestOI12ReceiverCrashesBeforeProcessing(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		w.setDown(true)
		id := w.send(holdfast.Message{})
		w.run()
		time.Sleep(time.Hour)
		w.want(id, holdfast.Pending, 0)
		w.setDown(false)
		time.Sleep(6 * time.Minute)
		w.want(id, holdfast.Delivered, 1)
	})
}

func TestOI12ReceiverCrashesAfterProcessingBeforeInboxWrite(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script(transporttest.LoseAck))
		defer w.end()
		var left string
		w.handler = func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
			response, err := book(ctx, tx, m)
			if left == "" {
				left = leave(t, w.receiver) // killed with the effect written and nothing committed
			}
			return response, err
		}
		id := w.send(holdfast.Message{})
		w.run()
		time.Sleep(time.Second)
		synctest.Wait()
		w.crash(&w.receiver, left)
		if n := effects(t, w.receiver, id); n != 0 {
			t.Errorf("the effect outlived its transaction: %d rows", n)
		}
		time.Sleep(time.Minute)
		w.want(id, holdfast.Delivered, 1)
	})
}

func TestOI12AckLost(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script(transporttest.LoseAck))
		defer w.end()
		id := w.send(holdfast.Message{})
		w.run()
		time.Sleep(time.Second)
		w.want(id, holdfast.Pending, 1)
		time.Sleep(time.Minute)
		r := w.want(id, holdfast.Delivered, 1)
		if !r.History[1].Maybe {
			t.Errorf("history %+v, want the first attempt marked as maybe delivered", r.History)
		}
		if got := w.receiver.Counts(); got.Duplicates != 1 {
			t.Errorf("%d duplicates recognised, want 1", got.Duplicates)
		}
		// The duplicate got the response of the first time (OI-07).
		receipt, err := w.Receive(t.Context(), holdfast.Message{ID: id, Source: "shop", Kind: holdfast.Signal, Endpoint: "Book", Payload: []byte(`{"n":  1}`)})
		if want := fmt.Sprintf(`{"booked": %q}`, id); err != nil || !receipt.Duplicate || string(receipt.Response) != want {
			t.Errorf("got %+v, %v; want the stored response %s", receipt, err, want)
		}
	})
}

func TestOI12TimeOut(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		slow := true
		w.handler = func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
			if slow {
				slow = false
				time.Sleep(15 * time.Second) // the sender's patience ends at 10
			}
			return book(ctx, tx, m)
		}
		id := w.send(holdfast.Message{})
		w.run()
		time.Sleep(2 * time.Minute)
		r := w.want(id, holdfast.Delivered, 1)
		if r.Tries < 2 || r.History[1].Code != "timeout" {
			t.Errorf("%d tries, history %+v; want a time-out first", r.Tries, r.History)
		}
	})
}

func TestOI12MessageExpiresBeforeDelivery(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		w.setDown(true)
		id := w.send(holdfast.Message{TTL: time.Hour})
		w.run()
		time.Sleep(61 * time.Minute)
		w.setDown(false)
		time.Sleep(time.Hour)
		w.want(id, holdfast.Expired, 0)
		// An operator can still send it, with a new TTL (OI-06).
		if _, err := w.sender.Requeue(t.Context(), id, holdfast.Requeue{TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.want(id, holdfast.Delivered, 1)
	})
}

func TestOI12BothCrash(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, transporttest.Script())
		defer w.end()
		id := w.send(holdfast.Message{})
		w.crash(&w.sender, leave(t, w.sender))
		w.crash(&w.receiver, leave(t, w.receiver))
		w.run()
		time.Sleep(time.Minute)
		w.want(id, holdfast.Delivered, 1)
	})
}
