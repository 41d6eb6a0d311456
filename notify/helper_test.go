package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// office is a node's part that brings notifications to people, on a real file.
type office struct {
	path     string
	db       *sqlite.DB
	channels *notify.Channels
	ingester *notify.Ingester
	mail     *script // channels of kind "mail"
	chat     *script // of kind "chat"
	log      *logged
}

func open(tb testing.TB) *office {
	tb.Helper()
	o := &office{path: filepath.Join(tb.TempDir(), "holdfast.db"), mail: &script{}, chat: &script{}, log: &logged{}}
	o.open(tb)
	o.attach(o.db)
	return o
}

func (o *office) open(tb testing.TB) {
	tb.Helper()
	var err error
	if o.db, err = sqlite.Open(tb.Context(), o.path, sqlite.Options{Source: "central", SaneAfter: time.Unix(1, 0), Adopt: true}); err != nil {
		tb.Fatal(err)
	}
}

// reopen is a node that died and starts again.
func (o *office) reopen(tb testing.TB) {
	tb.Helper()
	o.close(tb)
	o.open(tb)
}

// attach makes the parts, as a node does at its start.
func (o *office) attach(messages holdfast.Store) {
	books := notify.NewDirectoryCache(nodestore.New(o.db, nil).Directory)
	o.ingester = &notify.Ingester{Store: o.db, Directory: books, Logger: slog.New(o.log)}
	o.channels = &notify.Channels{
		Store: o.db, Directory: books, Logger: slog.New(o.log), Dispatcher: &holdfast.Dispatcher{Store: messages, Lanes: o.db, Logger: slog.New(o.log)},
		Kinds: map[string]notify.Kind{"mail": {New: o.mail.open, CheckAddress: mailLike}, "chat": {New: o.chat.open}},
	}
}

func mailLike(address string) error {
	if !strings.Contains(address, "@") {
		return errors.New("no address")
	}
	return nil
}

func (o *office) close(tb testing.TB) {
	tb.Helper()
	if err := o.db.Close(); err != nil {
		tb.Errorf("close store: %v", err)
	}
}

// run serves the channels until the returned function is called.
func (o *office) run(tb testing.TB) (stop func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- runBoth(ctx, o.channels) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("run: %v", err)
		}
	}
}

// runBoth runs channels and their dispatcher.
func runBoth(ctx context.Context, c *notify.Channels) error {
	return run.All(ctx, run.Part{Name: "channels", Run: c.Run}, run.Part{Name: "dispatcher", Run: c.Dispatcher.Run})
}

func (o *office) channel(tb testing.TB, c notify.Channel) {
	tb.Helper()
	if c.Retry.Attempts == 0 {
		c.Retry = notify.Retry{Attempts: 10, Interval: time.Minute}
	}
	if c.Settings == nil {
		c.Settings = json.RawMessage(`{}`)
	}
	c.Version = o.book(tb).Channels[c.Name].Version
	if err := nodestore.New(o.db, nil).Directory.PutChannel(tb.Context(), c, ""); err != nil {
		tb.Fatal(err)
	}
}

func (o *office) book(tb testing.TB) notify.Directory {
	tb.Helper()
	b, err := nodestore.New(o.db, nil).Directory.Directory(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func (o *office) list(tb testing.TB, name string, recipients ...notify.Recipient) {
	tb.Helper()
	if err := nodestore.New(o.db, nil).Directory.PutList(tb.Context(), notify.List{Name: name, Recipients: recipients, Version: o.book(tb).Lists[name].Version}, ""); err != nil {
		tb.Fatal(err)
	}
}

// send ingests a notification as a site's forward brings it.
func (o *office) send(tb testing.TB, id holdfast.ID, list string) (holdfast.Receipt, error) {
	tb.Helper()
	payload, err := notify.Encode(notify.Notification{List: list, Subject: "Press 4 stopped", Body: "Oil."})
	if err != nil {
		tb.Fatal(err)
	}
	return o.ingester.Receive(tb.Context(), holdfast.Message{ID: id, Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload})
}

func (o *office) sent(tb testing.TB, list string, ids ...holdfast.ID) {
	tb.Helper()
	for _, id := range ids {
		if _, err := o.send(tb, id, list); err != nil {
			tb.Fatal(err)
		}
	}
}

// one returns the only copy of a notification.
func (o *office) one(tb testing.TB, id holdfast.ID) notify.Record {
	tb.Helper()
	copies := o.copies(tb, id)
	if len(copies) != 1 {
		tb.Fatalf("%s has %d copies, want 1", id, len(copies))
	}
	return copies[0]
}

func (o *office) copies(tb testing.TB, id holdfast.ID) []notify.Record {
	tb.Helper()
	return o.copiesOf(tb, "plant-7", id)
}

func (o *office) copiesOf(tb testing.TB, site string, id holdfast.ID) []notify.Record {
	tb.Helper()
	copies, err := o.db.Notification(tb.Context(), site, id)
	if err != nil {
		tb.Fatal(err)
	}
	return copies
}

// first is the id of the message of a notification's first copy.
func first(id holdfast.ID) holdfast.ID { return notify.MessageID("plant-7", id, "") }

// results are a copy's recipients, by address.
func results(r notify.Record) map[string]notify.Result {
	all := map[string]notify.Result{}
	for _, t := range r.Targets {
		all[t.Address] = t.Result
	}
	return all
}

func mailTo(addresses ...string) (list []notify.Recipient) {
	for _, a := range addresses {
		list = append(list, notify.Recipient{Channel: "mail", Address: a})
	}
	return list
}

// script is an adapter that answers as it is told, and remembers whom it was
// asked for.
type script struct {
	mu      sync.Mutex
	invalid error // of the settings
	answer  func(ctx context.Context, to []notify.Recipient) notify.Report
	parts   func(ctx context.Context, to []notify.Recipient, known func(notify.Part) bool) notify.Report // instead of answer
	rounds  [][]string
	ids     []holdfast.ID
	made    int
	closed  int
	closes  time.Duration // for so long
}

func (s *script) open(notify.Channel) (notify.Adapter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.invalid != nil {
		return nil, s.invalid
	}
	s.made++
	return s, nil
}

func (s *script) Close() {
	s.mu.Lock()
	s.closed++
	wait := s.closes
	s.mu.Unlock()
	<-time.After(wait)
}

func (s *script) Send(ctx context.Context, n *notify.Notification, to []notify.Recipient, known func(notify.Part) bool) notify.Report {
	s.mu.Lock()
	var asked []string
	for _, r := range to {
		asked = append(asked, r.Address)
	}
	s.rounds, s.ids = append(s.rounds, asked), append(s.ids, n.ID)
	answer, parts := s.answer, s.parts
	s.mu.Unlock()
	if parts != nil {
		return parts(ctx, to, known)
	}
	if answer == nil {
		return accept(to)
	}
	return answer(ctx, to)
}

func (s *script) become(answer func(ctx context.Context, to []notify.Recipient) notify.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *script) asked() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.rounds)
}

func accept(to []notify.Recipient) (r notify.Report) {
	r.Served = true
	for range to {
		r.To = append(r.To, notify.Delivery{Outcome: notify.Accepted, Receipt: "queued as 1"})
	}
	return r
}

// by is a server that works, and answers each recipient by its own rule.
func by(rule map[string]notify.Delivery) func(context.Context, []notify.Recipient) notify.Report {
	return func(_ context.Context, to []notify.Recipient) (r notify.Report) {
		r.Served = true
		for _, p := range to {
			d, ok := rule[p.Address]
			if !ok {
				d.Outcome = notify.Accepted
			}
			r.To = append(r.To, d)
		}
		return r
	}
}

func fault(f *holdfast.Failure) func(context.Context, []notify.Recipient) notify.Report {
	return func(context.Context, []notify.Recipient) notify.Report { return notify.Report{Fault: f} }
}

var (
	greylisted  = notify.Delivery{Outcome: notify.Deferred, Code: "450 4.7.1", Text: "<grey@x>: greylisted"}
	unknown     = notify.Delivery{Outcome: notify.Refused, Code: "550 5.1.1", Text: "no such user"}
	errPassword = &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "auth", Err: errors.New("535 5.7.8 credentials refused")}
	errAway     = &holdfast.Failure{Outcome: holdfast.Unreachable, Code: "connection_refused", Err: errors.New("connection refused")}
)

// logged keeps the lines of a log.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}

func (l *logged) has(part string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.lines, func(s string) bool { return strings.Contains(s, part) })
}

// of are the lines that have a part.
func (l *logged) of(part string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.lines {
		if strings.Contains(s, part) {
			list = append(list, s)
		}
	}
	return list
}
