package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
)

// courier delivers the messages of channel lanes. It records the outcome of each recipient before
// it returns. So after a crash nobody who has accepted is asked again.
type courier struct {
	store    Store
	books    *DirectoryCache
	adapters *adapters
	log      *slog.Logger
	late     unwritten
}

// unwritten holds outcomes of recipients that are not on disk yet, by message.
type unwritten struct {
	mu   sync.Mutex
	list map[holdfast.ID][]Target
}

// round is one attempt of one copy.
type round struct {
	c    *courier
	m    *holdfast.Message
	n    Notification
	list List

	done  map[key]Target // from earlier attempts
	fault *holdfast.Failure
	// The message's own channel works. A fault of another channel does not concern its lane.
	served bool
	heir   bool   // also sends to recipients on channels without a copy of their own
	before string // the channel of the copy that does so, while that one is under way; otherwise empty

	mu      sync.Mutex    // guards the fields below until the adapter has returned
	targets []Target      // of this attempt
	wait    time.Duration // the longest wait that the other sides ask for
	lost    error         // why something of this attempt is not on disk
}

type key struct{ channel, address string }

// Deliver implements holdfast.Deliverer.
func (c *courier) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	n, err := Decode(m)
	if err != nil {
		return holdfast.Receipt{}, undecodable(err)
	}
	n.ID = notificationID(&m)
	r := &round{c: c, m: &m, n: n, done: map[key]Target{}}
	book, err := r.open(ctx)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	if err := c.catchUp(ctx, m.ID); err != nil {
		return holdfast.Receipt{}, unrecorded(err, true)
	}
	before, err := c.store.Targets(ctx, m.ID)
	if err != nil {
		return holdfast.Receipt{}, notAsked("recipients", err)
	}
	r.remember(before)
	if err := r.inherit(ctx); err != nil {
		return holdfast.Receipt{}, notAsked("copies", err)
	}
	return r.deliver(ctx, book)
}

// deliver sends until the list has no new recipients left.
func (r *round) deliver(ctx context.Context, book Directory) (holdfast.Receipt, error) {
	for {
		if err := r.ask(ctx, &book); err != nil {
			return holdfast.Receipt{}, err
		}
		receipt, end := r.verdict()
		if end != nil && holdfast.AsFailure(end).Outcome != holdfast.Permanent {
			return receipt, end // the next attempt reads the list anyway
		}
		var err error
		if book, err = r.lookAgain(ctx); err != nil {
			return holdfast.Receipt{}, err
		}
		if !r.lacks() {
			return receipt, end
		}
	}
}

// ask sends to all recipients that are still open.
func (r *round) ask(ctx context.Context, book *Directory) error {
	channels := r.channels()
	if len(channels) == 0 {
		return r.nobody()
	}
	for _, channel := range channels {
		if r.send(ctx, book, channel); r.lost != nil {
			return unrecorded(r.lost, accepted(r.targets))
		}
	}
	return nil
}

// remember notes outcomes of recipients.
func (r *round) remember(list []Target) {
	for _, t := range list {
		r.done[key{t.Channel, t.Address}] = t
	}
}

// open reads the list. A person who retries may have changed it a moment ago, so open reads its
// latest version then.
func (r *round) open(ctx context.Context) (Directory, error) {
	read := r.c.books.Get
	if a := r.m.Attempt; a.Cycle > 1 && a.Number <= 1 {
		read = r.c.books.Latest
	}
	book, err := read(ctx)
	if err != nil {
		return Directory{}, notAsked("lists", err)
	}
	var found bool
	if r.list, found = book.Lists[r.n.List]; found {
		return book, nil
	}
	if book, err = r.c.books.Latest(ctx); err != nil {
		return Directory{}, notAsked("lists", err)
	}
	if r.list, found = book.Lists[r.n.List]; found {
		return book, nil
	}
	return Directory{}, &holdfast.Failure{
		Outcome: holdfast.Permanent, Code: "no_list",
		Err: fmt.Errorf("there is no list %q: make it, then retry the notification", r.n.List),
	}
}

// notAsked is the outcome of an attempt for which our own store could not be read. Nobody was
// asked, and no budget is charged.
func notAsked(what string, err error) error {
	return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "store", Err: fmt.Errorf("read %s: %w", what, err)}
}

// channels returns the channels by which this copy reaches people.
func (r *round) channels() (names []string) {
	for i := range r.list.Recipients {
		if p := &r.list.Recipients[i]; !p.Disabled && r.covers(p.Channel) {
			names = append(names, p.Channel)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nobody says why there is no recipient.
func (r *round) nobody() error {
	text := fmt.Sprintf("list %q has no recipients", r.n.List)
	own, _ := ChannelOf(r.m.Destination)
	switch {
	case len(r.list.Recipients) > 0 && own != "":
		text = fmt.Sprintf("list %q has no enabled recipient on channel %s any more", r.n.List, own)
	case len(r.list.Recipients) > 0:
		text = fmt.Sprintf("all recipients of list %q are disabled", r.n.List)
	}
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_recipients", Err: errors.New(text)}
}

// send sends to the open recipients of one channel.
func (r *round) send(ctx context.Context, book *Directory, channel string) {
	s := &sending{round: r, ctx: ctx, channel: channel}
	for _, p := range r.list.Recipients {
		if p.Channel == channel && !p.Disabled && r.asks(p) {
			s.to = append(s.to, p)
		}
	}
	if len(s.to) == 0 {
		return
	}
	s.written = make([]bool, len(s.to))
	var report Report
	switch settings, ok := book.Channels[channel]; {
	case !ok:
		report.Fault = &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "no_channel",
			Err: fmt.Errorf("list %q has recipients on channel %q, which does not exist", r.n.List, channel),
		}
	case settings.Disabled: // its route is about to be removed
		report.Fault = &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "channel_disabled", Err: fmt.Errorf("channel %s is disabled", channel)}
	default:
		report = r.c.adapters.send(ctx, settings, &r.n, s.to, s.known)
	}
	s.take(&report)
}

// asks reports whether a recipient is still open: it has neither accepted nor refused permanently
// in this cycle. Retry by a person begins a new cycle, which asks those who refused again, however
// many of its attempts a crash has ended.
func (r *round) asks(p Recipient) bool {
	t, known := r.done[key{p.Channel, p.Address}]
	return !known || !r.over(t)
}

// over reports that a recipient is not asked again in this cycle.
func (r *round) over(t Target) bool {
	return t.Result == Accepted || t.Result == Refused && t.Cycle == r.m.Attempt.Cycle
}

// clip bounds a text of the other side.
func clip(s string) string { return shown.Clip(s, 2<<10) }
