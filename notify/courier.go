package notify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// courier delivers the messages of channel lanes. It writes down what became
// of each recipient before it answers: a crash after that asks nobody again
// who has accepted.
type courier struct {
	store    Store
	books    *Books
	adapters *adapters
}

// round is one attempt of one copy.
type round struct {
	c    *courier
	m    *holdfast.Message
	n    Notification
	list List

	done    map[key]Target // of the attempts before
	targets []Target       // of this one
	fault   *holdfast.Failure
	wait    time.Duration // that the other sides ask for
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
	before, err := c.store.Targets(ctx, m.ID)
	if err != nil {
		return holdfast.Receipt{}, notAsked("recipients", err)
	}
	for _, t := range before {
		r.done[key{t.Channel, t.Address}] = t
	}
	asked := false
	for _, channel := range r.channels() {
		asked = true
		r.send(ctx, &book, channel)
	}
	if !asked {
		return holdfast.Receipt{}, r.nobody()
	}
	if len(r.targets) > 0 {
		// Not by ctx: what the other side has taken is to be known.
		if err := c.store.RecordTargets(context.WithoutCancel(ctx), m.ID, r.targets...); err != nil {
			return holdfast.Receipt{}, &holdfast.Failure{Code: "not_recorded", MaybeDelivered: r.accepted(r.targets), Err: fmt.Errorf("record what became of recipients: %w", err)}
		}
	}
	return r.verdict()
}

// open finds the list. Who retries may have mended it a moment ago, and gets
// what it is now.
func (r *round) open(ctx context.Context) (Book, error) {
	read := r.c.books.Book
	if a := r.m.Attempt; a.Cycle > 1 && a.Number <= 1 {
		read = r.c.books.Latest
	}
	book, err := read(ctx)
	if err != nil {
		return Book{}, notAsked("lists", err)
	}
	var found bool
	if r.list, found = book.Lists[r.n.List]; found {
		return book, nil
	}
	if book, err = r.c.books.Latest(ctx); err != nil {
		return Book{}, notAsked("lists", err)
	}
	if r.list, found = book.Lists[r.n.List]; found {
		return book, nil
	}
	return Book{}, &holdfast.Failure{
		Outcome: holdfast.Permanent, Code: "no_list",
		Err: fmt.Errorf("there is no list %q: make it, then retry the notification", r.n.List),
	}
}

// notAsked is the end of an attempt for which our own store could not be read:
// nobody was asked, and no budget pays for it.
func notAsked(what string, err error) error {
	return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: "store", Err: fmt.Errorf("read %s: %w", what, err)}
}

// channels are those that this copy reaches people by.
func (r *round) channels() (names []string) {
	for i := range r.list.Recipients {
		if p := &r.list.Recipients[i]; !p.Disabled && covers(r.m, p.Channel) {
			names = append(names, p.Channel)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// nobody says why there is no recipient to ask.
func (r *round) nobody() error {
	text := fmt.Sprintf("list %q has no recipients", r.n.List)
	own, _ := ChannelOf(r.m.Destination)
	switch {
	case len(r.list.Recipients) > 0 && own != "":
		text = fmt.Sprintf("list %q has nobody any more who is reached by channel %s and not disabled", r.n.List, own)
	case len(r.list.Recipients) > 0:
		text = fmt.Sprintf("all recipients of list %q are disabled", r.n.List)
	}
	return &holdfast.Failure{Outcome: holdfast.Permanent, Code: "no_recipients", Err: errors.New(text)}
}

// send asks the recipients of one channel who are still to be asked.
func (r *round) send(ctx context.Context, book *Book, channel string) {
	var to []Recipient
	for _, p := range r.list.Recipients {
		if p.Channel == channel && !p.Disabled && r.asks(p) {
			to = append(to, p)
		}
	}
	if len(to) == 0 {
		return
	}
	var report Report
	switch settings, ok := book.Channels[channel]; {
	case !ok:
		report.Fault = &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: "no_channel",
			Err: fmt.Errorf("list %q has recipients on channel %q, which does not exist", r.n.List, channel),
		}
	case settings.Disabled:
		report.Fault = &holdfast.Failure{Code: "channel_disabled", Err: fmt.Errorf("channel %s is disabled", channel)}
	default:
		report = r.c.adapters.send(ctx, settings, &r.n, to, r.m.Attempt.Number)
	}
	r.take(channel, to, &report)
}

// asks says whether a recipient is still to be asked: not who has accepted,
// nor who refused for good in this cycle. Retry by a person asks those again.
func (r *round) asks(p Recipient) bool {
	t, known := r.done[key{p.Channel, p.Address}]
	return !known || t.Result != Accepted && (t.Result != Refused || r.m.Attempt.Number <= 1)
}

// take turns a report into what is written down.
func (r *round) take(channel string, to []Recipient, report *Report) {
	own, _ := ChannelOf(r.m.Destination)
	if f := report.Fault; f != nil && channel == own {
		r.fault = f
	} else if f != nil && r.fault == nil {
		c := *f // another channel's fault is no reason to hold this lane, nor to charge the message
		if c.Outcome == holdfast.LaneFault || c.Outcome == holdfast.NotStarted {
			c.Outcome = holdfast.Unreachable
		}
		r.fault = &c
	}
	for i, p := range to {
		var d Delivery
		if i < len(report.To) {
			d = report.To[i]
		}
		if f := report.Fault; d.Outcome == Waiting && f != nil {
			if f.Outcome == holdfast.NotStarted {
				continue // as if never asked
			}
			d = Delivery{Outcome: Deferred, Code: f.Code, Text: clip(f.Error()), Maybe: f.MaybeDelivered, RetryAfter: f.RetryAfter}
			if f.Outcome == holdfast.Permanent {
				d.Outcome = Refused
			}
		}
		if d.Outcome == Waiting {
			d = Delivery{Outcome: Deferred, Code: "no_result", Text: "the channel did not say what became of it", Maybe: true}
		}
		r.wait = max(r.wait, d.RetryAfter)
		r.targets = append(r.targets, Target{
			Channel: channel, Address: p.Address, Name: p.Name, Result: d.Outcome, Code: d.Code, Text: clip(d.Text),
			Receipt: clip(d.Receipt), Maybe: d.Maybe, Attempts: r.done[key{channel, p.Address}].Attempts + 1,
			Server: report.Server, TLS: report.TLS, Truncated: report.Truncated,
		})
	}
}

func (r *round) accepted(list []Target) bool {
	return slices.ContainsFunc(list, func(t Target) bool { return t.Result == Accepted })
}

// clip bounds what the other side said.
func clip(s string) string {
	const most = 2 << 10
	if len(s) <= most {
		return s
	}
	return validPrefix(s, most) + "…"
}

func validPrefix(s string, n int) string {
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}
