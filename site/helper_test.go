package site_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/site"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/track"
)

// target is a foreign system that answers as it is told, and remembers what it
// was called with.
type target struct {
	mu     sync.Mutex
	answer func(m holdfast.Message) ([]byte, error)
	calls  []holdfast.Message
	at     []time.Time
}

func (t *target) Deliver(_ context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls, t.at = append(t.calls, m), append(t.at, time.Now())
	if t.answer == nil {
		return holdfast.Receipt{ID: m.ID}, nil
	}
	response, err := t.answer(m)
	return holdfast.Receipt{ID: m.ID, Response: response}, err
}

func (t *target) become(answer func(m holdfast.Message) ([]byte, error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answer = answer
}

// made returns the calls so far, and when each was made.
func (t *target) made() ([]holdfast.Message, []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.calls), slices.Clone(t.at)
}

func (t *target) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.calls)
}

func says(err error) func(holdfast.Message) ([]byte, error) {
	return func(holdfast.Message) ([]byte, error) { return nil, err }
}

var (
	errBusy    = &holdfast.Failure{Code: "http_503", Err: errors.New("the endpoint answered 503")}
	errNobody  = &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused", Err: errors.New("connection refused")}
	errRefused = &holdfast.Failure{Outcome: holdfast.Permanent, Code: "http_422", Err: errors.New("the endpoint answered 422: no such plant")}
)

// plant is a site over a file, as one start of a program has it.
type plant struct {
	*site.Site
	db   *sqlite.DB
	stop func()
}

// open opens the file of a site; a second one in the same folder is a restart.
// It is called inside of a bubble, and ended there.
func open(tb testing.TB, folder string, edit func(c *site.Config)) *plant {
	tb.Helper()
	db, err := sqlite.Open(tb.Context(), filepath.Join(folder, "site.db"), sqlite.Options{SaneAfter: time.Unix(1, 0), Adopt: true})
	if err != nil {
		tb.Fatal(err)
	}
	conf := site.Config{Store: db, Name: "plant-7"}
	edit(&conf)
	s, err := site.New(conf)
	if err != nil {
		tb.Fatal(err)
	}
	return &plant{Site: s, db: db, stop: func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close store: %v", err)
		}
	}}
}

// run is open with a dispatcher at work.
func run(tb testing.TB, folder string, edit func(c *site.Config)) *plant {
	tb.Helper()
	p := open(tb, folder, edit)
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	closeStore := p.stop
	p.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("run: %v", err)
		}
		closeStore()
	}
	return p
}

// erp is a site with one foreign system.
func erp(to holdfast.Deliverer) func(c *site.Config) {
	return func(c *site.Config) {
		c.Destinations = map[string]site.Destination{"erp": {Category: holdfast.CategoryExternalSystem, Route: holdfast.Route{Deliverer: to}}}
	}
}

func (p *plant) call(tb testing.TB, c site.Call) site.Answer {
	tb.Helper()
	c.Destination, c.Endpoint = "erp", "Book"
	a, err := p.CachedCall(tb.Context(), c)
	if err != nil {
		tb.Fatalf("call %s: %v", c.ID, err)
	}
	return a
}

func (p *plant) wantStatus(tb testing.TB, id holdfast.ID, want track.Status) track.Operation {
	tb.Helper()
	o, err := p.Status(tb.Context(), id)
	if err != nil {
		tb.Fatal(err)
	}
	if o.Status != want {
		tb.Errorf("operation %s is %s (%s), want %s", id, o.Status, o.LastError, want)
	}
	return o
}

// book is a log that can be read while it is written.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Count(b.text.Bytes(), []byte(text))
}

func (b *book) logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
