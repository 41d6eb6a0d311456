package webhook_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// conduct is what a subscriber does with one request. Each but refuse reads it first.
type conduct int

const (
	takes   conduct = iota // 204
	refuses                // there is no connection
	fails                  // 503
	gone                   // 410
	busy                   // 429, with a Retry-After of 90 s
	moved                  // 302
	hangs                  // no answer
	slow                   // the head of an answer, a byte a second, without end
	tears                  // closes the connection without an answer
	drips                  // 200, and a body a byte a second, without end
	lies                   // 200, and less than it says
)

// world is a store with what publishes and delivers, and subscribers to whom memory leads, in virtual time.
type world struct {
	t     *testing.T
	path  string
	began time.Time
	does  func(host string, since time.Duration) conduct

	mu   sync.Mutex
	hits map[string]map[int][]time.Duration // by host and event: when each request came
	ids  map[string]map[int]string          // its webhook-id

	db    *sqlite.DB
	hub   *admin.Hub
	d     *holdfast.Dispatcher
	stops []func()
}

func newWorld(t *testing.T, does func(host string, since time.Duration) conduct) *world {
	t.Helper()
	w := &world{t: t, path: filepath.Join(t.TempDir(), "holdfast.db"), began: time.Now(), does: does, hits: map[string]map[int][]time.Duration{}, ids: map[string]map[int]string{}}
	w.open()
	if _, err := w.hub.Book.Store().PutTopic(t.Context(), fanout.Topic{Name: "orders"}, "anna"); err != nil {
		t.Fatal(err)
	}
	return w
}

// open opens the store and begins to deliver.
func (w *world) open() {
	w.t.Helper()
	var err error
	if w.db, err = sqlite.Open(w.t.Context(), w.path, sqlite.Options{Source: "test", SaneAfter: time.Unix(1, 0), Normal: true, Adopt: true}); err != nil {
		w.t.Fatal(err)
	}
	book := fanout.NewBook(nodestore.New(w.db, nil).Fanout, nil)
	w.hub = &admin.Hub{Publisher: &fanout.Publisher{Bundles: w.db, Book: book, Source: "test"}, Book: book, Schedule: fanout.DefaultSchedule()}
	w.d = &holdfast.Dispatcher{Store: w.db, Lanes: w.db, Poll: time.Hour}
	sender := webhook.NewOver(w.dial)
	routes := &fanout.Routes{
		Book: book, Dispatcher: w.d, Schedule: w.hub.Schedule, Timeout: webhook.DefaultTimeout,
		Gone: func(err error) bool { return errors.Is(err, webhook.ErrGone) },
		Deliverer: func(ask func(ctx context.Context) (fanout.Subscription, error)) holdfast.Deliverer {
			return sender.Deliverer(func(ctx context.Context) (webhook.Target, error) {
				s, err := ask(ctx)
				return webhook.Target{URL: s.URL}, err
			})
		},
	}
	run := func(f func(ctx context.Context) error) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- f(ctx) }()
		w.stops = append(w.stops, func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Error(err)
			}
		})
	}
	run(w.d.Run)
	run(routes.Run)
	w.stops = append(w.stops, sender.Close)
}

func (w *world) close() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
	if err := w.db.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) subscribe(host, filter string) {
	w.t.Helper()
	s := fanout.Subscription{ID: host, Topics: []string{"*"}, Filter: []byte(filter), Settings: fanout.Settings{URL: "http://" + host + "/hook"}}
	if _, err := w.hub.Book.Store().PutSubscription(w.t.Context(), s, "anna"); err != nil {
		w.t.Fatal(err)
	}
}

// publish publishes event n, of a type.
func (w *world) publish(n int, kind string) {
	w.t.Helper()
	e := fanout.Event{ID: eventID(n), Topic: "orders", Type: kind, Data: fmt.Append(nil, n)}
	if _, err := w.hub.Publisher.Publish(w.t.Context(), e); err != nil {
		w.t.Fatal(err)
	}
}

func eventID(n int) holdfast.ID { return holdfast.ID(fmt.Sprint("event-", n)) }

// explain returns what is said about event n, by subscription.
func (w *world) explain(n int) map[string]api.ExplainedSubscription {
	w.t.Helper()
	nobody := func() []admin.Destination { return nil }
	s := admin.Events{Service: &admin.Service{Outbox: w.db, Hub: w.hub, Lane: w.d.Lane, Destinations: nobody, Name: "test", Source: "test"}}
	x, err := s.Explain(w.t.Context(), "", string(eventID(n)), "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]api.ExplainedSubscription{}
	for _, one := range x.Subscriptions {
		all[one.ID] = one
	}
	return all
}

func (w *world) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if w.does(host, time.Since(w.began)) == refuses {
		w.hit(host, -1, "")
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	go w.serve(host, far)
	return near, nil
}

// hit notes a request. One that was refused is of no event.
func (w *world) hit(host string, event int, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hits[host] == nil {
		w.hits[host], w.ids[host] = map[int][]time.Duration{}, map[int]string{}
	}
	w.hits[host][event] = append(w.hits[host][event], time.Since(w.began))
	if known := w.ids[host][event]; known != "" && known != id {
		w.t.Errorf("event %d came to %s as %s and as %s", event, host, known, id)
	}
	w.ids[host][event] = id
}

// hitsOf returns when an event was tried.
func (w *world) hitsOf(host string, event int) []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.hits[host][event])
}

// serve answers the requests of one connection.
func (w *world) serve(host string, c net.Conn) {
	defer c.Close()
	for in := bufio.NewReader(c); ; {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var event int
		if err := json.Unmarshal(body, &event); err != nil {
			w.t.Errorf("%s got %q: %v", host, body, err)
		}
		w.hit(host, event, req.Header.Get("Webhook-Id"))
		if !reply(c, w.does(host, time.Since(w.began))) {
			return
		}
	}
}

// reply answers one request, and reports whether the connection stays open.
func reply(c net.Conn, how conduct) bool {
	head := map[conduct]string{
		takes: "204 No Content\r\n\r\n", fails: "503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", gone: "410 Gone\r\nContent-Length: 0\r\n\r\n",
		busy: "429 Too Many Requests\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n", moved: "302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
		drips: "200 OK\r\n\r\n", lies: "200 OK\r\nContent-Length: 1000\r\n\r\nfew", slow: "200 OK\r\nX-Slow: ",
	}[how]
	var err error
	if head != "" {
		_, err = io.WriteString(c, "HTTP/1.1 "+head)
	}
	switch how {
	case slow, drips:
		for err == nil {
			time.Sleep(time.Second)
			_, err = io.WriteString(c, "x")
		}
	case hangs:
		_, err = c.Read(make([]byte, 1)) // until the other side has enough
	case tears, lies, refuses:
		return false
	case takes, fails, gone, busy, moved:
	}
	return err == nil
}
