package link_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/link"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
)

// address is one that a credential may go to without TLS; the test's own dialler
// leads wherever the test wants.
const address = "http://127.0.0.1"

// world is a central with real store and inbox, in virtual time, and a net that
// can be cut.
type world struct {
	t       *testing.T
	db      *sqlite.DB
	store   *store
	inbox   *inbox
	central *link.Central

	url  string     // of central
	tls  link.Files // of its sites
	mu   sync.Mutex
	here *transporttest.PipeListener // nil: central is away
	stop func()
	dial func(ctx context.Context, network, address string) (net.Conn, error) // nil: to central
}

// store lets a test say that central's history is another one.
type store struct {
	sites.Store
	mu          sync.Mutex
	incarnation string
	requests    int
}

func (s *store) FindSite(ctx context.Context, credential [32]byte) (string, error) {
	s.mu.Lock()
	s.requests++
	s.mu.Unlock()
	return s.Store.FindSite(ctx, credential)
}

func (s *store) Incarnation(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.incarnation != "" {
		return s.incarnation, nil
	}
	return s.Store.Incarnation(ctx)
}

func (s *store) restored(as string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.incarnation = as
}

// inbox is central's receiver: a real one, that a test can make slow or break.
type inbox struct {
	holdfast.BatchReceiver
	takes time.Duration // per batch

	mu      sync.Mutex
	atWork  int
	most    int
	batches int
	answer  func(m *holdfast.Message) error // nil: the real one answers
}

func (i *inbox) ReceiveBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	i.mu.Lock()
	i.atWork++
	i.batches++
	i.most = max(i.most, i.atWork)
	answer := i.answer
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		i.atWork--
		i.mu.Unlock()
	}()
	if i.takes > 0 {
		time.Sleep(i.takes)
	}
	if answer == nil {
		return i.BatchReceiver.ReceiveBatch(ctx, ms)
	}
	results := make([]holdfast.Result, len(ms))
	for n := range ms {
		if results[n].Err = answer(&ms[n]); results[n].Err == nil {
			results[n] = i.BatchReceiver.ReceiveBatch(ctx, ms[n:n+1])[0]
		}
	}
	return results
}

func (i *inbox) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	r := i.ReceiveBatch(ctx, []holdfast.Message{m})[0]
	return r.Receipt, r.Err
}

func open(t testing.TB, name string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), name+".db"), sqlite.Options{Source: name, SaneAfter: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close %s: %v", name, err)
		}
	})
	return db
}

// within runs a test in virtual time.
func within(t *testing.T, test func(w *world), edit ...func(c *link.CentralConfig)) {
	t.Helper()
	racetest.Bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{t: t, db: open(t, "central"), url: address}
		w.store = &store{Store: nodestore.New(w.db, nil).Sites}
		w.inbox = &inbox{BatchReceiver: &holdfast.Endpoints{Log: w.db, Other: &holdfast.Endpoint{Keep: true}}}
		conf := link.CentralConfig{Store: w.store, Receiver: w.inbox, Destination: "central"}
		for _, e := range edit {
			e(&conf)
		}
		central, err := link.NewCentral(conf)
		if err != nil {
			t.Fatal(err)
		}
		w.central = central
		w.start()
		defer time.Sleep(time.Second) // net/http closes connections with a delay
		defer w.away()
		test(w)
	})
}

// start makes central listen.
func (w *world) start() { w.listen((*http.Server).Serve) }

// proxy puts one before central that answers some requests itself; zero: not.
func (w *world) proxy(answers func(r *http.Request) (status int)) {
	w.away()
	central := w.central.Handler()
	w.serve((*http.Server).Serve, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if status := answers(r); status != 0 {
			http.Error(rw, "the proxy's own page", status)
			return
		}
		central.ServeHTTP(rw, r)
	}))
}

func (w *world) listen(serve func(*http.Server, net.Listener) error) {
	w.serve(serve, w.central.Handler())
}

func (w *world) serve(serve func(*http.Server, net.Listener) error, handler http.Handler) {
	l := transporttest.NewPipeListener()
	var conns sync.WaitGroup // all are counted before serve returns, each is done after its last request
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ConnState: func(_ net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				conns.Add(1)
			case http.StateClosed:
				conns.Done()
			case http.StateActive, http.StateIdle, http.StateHijacked:
			}
		},
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serve(srv, l)
	}()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.here, w.stop = l, func() {
		_ = srv.Close()
		<-ended
		conns.Wait()
	}
}

// away makes central gone, with all its connections and requests.
func (w *world) away() {
	w.mu.Lock()
	stop := w.stop
	w.here, w.stop = nil, nil
	w.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (w *world) connect(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	l, dial := w.here, w.dial
	w.mu.Unlock()
	switch {
	case dial != nil:
		return dial(ctx, network, address)
	case l == nil:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: errors.New("nobody listens")}
	}
	return l.Dial(ctx, network, address)
}

// via has connections made in another way; nil: as usual.
func (w *world) via(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dial = dial
}

func (w *world) direct(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	l := w.here
	w.mu.Unlock()
	return l.Dial(ctx, network, address)
}

// plant is a site: outbox, dispatcher and link.
type plant struct {
	*link.Site
	w    *world
	db   *sqlite.DB
	name string
	conf link.SiteConfig
	most time.Duration // the longest wait of a retry
	stop func()
}

// enroll makes the site known and leaves its credential in a file.
func (w *world) enroll(name string) (file string) {
	w.t.Helper()
	token, err := w.central.Add(w.t.Context(), name, "")
	if err != nil {
		w.t.Fatal(err)
	}
	file = filepath.Join(w.t.TempDir(), "credential")
	id, err := link.Enroll(w.t.Context(), link.EnrollConfig{URL: w.url, Token: token, File: file, TLS: w.tls, Dial: w.connect})
	if err != nil || id.Site != name {
		w.t.Fatalf("got %+v, %v", id, err)
	}
	// Of a time that a bubble's clock has seen: what was written in its future is read anew for each request.
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(file, past, past); err != nil {
		w.t.Fatal(err)
	}
	return file
}

// site makes a site that is enrolled and does nothing yet.
func (w *world) site(name string, edit ...func(c *link.SiteConfig)) *plant {
	w.t.Helper()
	p := &plant{w: w, db: open(w.t, name), name: name, most: 30 * time.Second, stop: func() {}}
	p.conf = link.SiteConfig{URL: w.url, TLS: w.tls, File: w.enroll(name), Outbox: p.db, Version: "1.2.3", Dial: w.connect}
	if err := p.db.ConfigureLane(w.t.Context(), link.Lane, holdfast.LaneSettings{LiveFirst: true}); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range edit {
		e(&p.conf)
	}
	p.renew()
	return p
}

// renew is what a restart of the process does to the link.
func (p *plant) renew() {
	p.w.t.Helper()
	s, err := link.NewSite(p.conf)
	if err != nil {
		p.w.t.Fatal(err)
	}
	p.Site = s
}

// met waits until the first contact with central is over: it sends again what was delivered meanwhile.
func (p *plant) met() {
	p.w.t.Helper()
	p.w.eventually(time.Minute, "first contact", func() bool { return p.Status().Connected })
	<-time.After(time.Second)
}

// run starts the link, and the dispatcher if there is one to be.
func (p *plant) run(dispatch bool) {
	ctx, cancel := context.WithCancel(p.w.t.Context())
	var all sync.WaitGroup
	site := p.Site
	all.Go(func() { _ = site.Run(ctx) })
	if dispatch {
		d := &holdfast.Dispatcher{Store: p.db, Lanes: p.db, Poll: time.Hour, Routes: map[string]holdfast.Route{link.Lane: {
			Deliverer: site, Limit: link.AtOnce, Timeout: link.RouteTimeout(30*time.Second, 1<<20),
			Retry: holdfast.RetryPolicy{First: time.Second, Max: p.most, Attempts: holdfast.Unlimited},
		}}}
		all.Go(func() {
			if err := d.Run(ctx); err != nil {
				p.w.t.Errorf("dispatch: %v", err)
			}
		})
	}
	p.stop = func() {
		cancel()
		all.Wait()
		site.Close()
		p.stop = func() {}
	}
}

func message(n int) holdfast.Message {
	return holdfast.Message{
		ID: holdfast.ID(fmt.Sprintf("m-%d", n)), Destination: link.Lane, Endpoint: "notification", Payload: fmt.Appendf(nil, `{"n":%d}`, n),
	}
}

// put enqueues messages from, up to but not including, to.
func (p *plant) put(from, to int) {
	p.w.t.Helper()
	var ms []holdfast.Message
	for n := from; n < to; n++ {
		ms = append(ms, message(n))
	}
	if _, err := p.db.Enqueue(p.w.t.Context(), ms...); err != nil {
		p.w.t.Fatal(err)
	}
}

// eventually waits, in virtual time, until ok says so.
func (w *world) eventually(within time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(500 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("after %s: not %s", within, what)
		}
	}
}

func (p *plant) is(id holdfast.ID, want holdfast.State) holdfast.Record {
	p.w.t.Helper()
	r, err := p.db.Get(p.w.t.Context(), id)
	if err != nil || r.State != want {
		p.w.t.Fatalf("message %s is %s, %v; want %s (%s)", id, r.State, err, want, r.LastError)
	}
	return r
}

// delivered waits until nothing is left at the site.
func (p *plant) delivered(within time.Duration) {
	p.w.t.Helper()
	p.w.eventually(within, "all delivered", func() bool { return p.db.Counts().Pending == 0 })
}

// kept counts what central has, by source.
func (w *world) kept() (list []holdfast.KeptMessage) {
	w.t.Helper()
	for q := (holdfast.KeptQuery{Limit: 500}); ; {
		p, err := w.db.Kept(w.t.Context(), q)
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, p.Messages...)
		if q.After = p.Next; q.After == 0 {
			return list
		}
	}
}
