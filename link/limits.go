package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/transport"
)

// Limits bound what one site may send, since its credential may be stolen. The zero value sets no
// limit.
type Limits struct {
	Lists []string // lists that its notifications may name; empty: any
	Rate  int      // messages per second, with burst times as many at once; 0: no limit
	Daily int64    // bytes of payload per UTC day; 0: no limit
}

const (
	// burst is how many seconds' worth of messages may come at once.
	burst = 10
	// toldEvery is how often the log mentions a site that exceeds a limit.
	toldEvery = time.Minute
)

// Codes of messages that a limit refuses.
const (
	codeList  = "list_not_allowed"
	codeRate  = "too_many"
	codeDaily = "too_much_today"
)

// limited passes on the messages that are within the limits of their site.
type limited struct {
	to      holdfast.Receiver
	of      func(site string) Limits
	log     *slog.Logger
	refused func(transport.Refused) // may be nil

	mu    sync.Mutex
	sites map[string]*spent
}

// spent is what a site has used of its limits.
type spent struct {
	free  float64 // messages that may come now
	at    time.Time
	day   int64
	bytes int64
	told  time.Time
}

var _ holdfast.BatchReceiver = (*limited)(nil)

func (l *limited) Receive(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	if err := l.admit(ctx, &m); err != nil {
		return holdfast.Receipt{}, err
	}
	return l.taken(&m)(l.to.Receive(ctx, m))
}

// taken returns a function that gives back a message's share of the limits if the message was
// refused or was a duplicate. So a failing store or a lost answer does not use up a site's day.
func (l *limited) taken(m *holdfast.Message) func(r holdfast.Receipt, err error) (holdfast.Receipt, error) {
	return func(r holdfast.Receipt, err error) (holdfast.Receipt, error) {
		if err != nil || r.Duplicate {
			l.mu.Lock()
			s := l.site(m.Source)
			s.bytes, s.free = max(s.bytes-int64(len(m.Payload)), 0), s.free+1
			l.mu.Unlock()
		}
		return r, err
	}
}

func (l *limited) ReceiveBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	out := make([]holdfast.Result, len(ms))
	var pass []holdfast.Message
	var at []int
	for i := range ms {
		if err := l.admit(ctx, &ms[i]); err != nil {
			out[i].Err = err
			continue
		}
		pass, at = append(pass, ms[i]), append(at, i)
	}
	if len(pass) == 0 {
		return out
	}
	batch, ok := l.to.(holdfast.BatchReceiver)
	if !ok {
		for n, i := range at {
			out[i].Receipt, out[i].Err = l.taken(&pass[n])(l.to.Receive(ctx, pass[n]))
		}
		return out
	}
	for n, r := range batch.ReceiveBatch(ctx, pass) {
		out[at[n]].Receipt, out[at[n]].Err = l.taken(&pass[n])(r.Receipt, r.Err)
	}
	return out
}

// admit returns an error if a message may not pass now, or may never pass.
func (l *limited) admit(ctx context.Context, m *holdfast.Message) error {
	most := l.of(m.Source)
	if len(most.Lists) > 0 {
		// The receiver refuses content that cannot be decoded.
		if n, err := notify.Decode(*m); err == nil && !slices.Contains(most.Lists, n.List) {
			l.tell(ctx, m.Source, codeList)
			return &holdfast.Failure{
				Outcome: holdfast.Permanent, Code: codeList, Reason: holdfast.ReasonPermanent,
				Err: fmt.Errorf("site %s may not notify list %s: central's configuration names the allowed lists", m.Source, clip(n.List)),
			}
		}
	}
	if most.Daily > 0 && int64(len(m.Payload)) > most.Daily {
		l.tell(ctx, m.Source, codeDaily)
		return &holdfast.Failure{
			Outcome: holdfast.Permanent, Code: codeDaily, Reason: holdfast.ReasonTooLarge,
			Err: fmt.Errorf("the payload has %d bytes; central allows site %s %d a day", len(m.Payload), m.Source, most.Daily),
		}
	}
	code, wait := l.spend(m, &most, time.Now())
	if code == "" {
		return nil
	}
	l.tell(ctx, m.Source, code)
	text := fmt.Sprintf("site %s sends more than the %d messages a second that central allows", m.Source, most.Rate)
	if code == codeDaily {
		text = fmt.Sprintf("site %s has sent the %d bytes that central allows today", m.Source, most.Daily)
	}
	return &holdfast.Failure{Outcome: holdfast.NotStarted, Code: code, RetryAfter: wait, Err: errors.New(text)}
}

// spend counts a message. If it is over a limit, spend returns the limit's code and how long to
// wait.
func (l *limited) spend(m *holdfast.Message, most *Limits, now time.Time) (code string, wait time.Duration) {
	const day = 24 * time.Hour
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.site(m.Source)
	today := now.Unix() / int64(day/time.Second)
	if s.day != today {
		s.day, s.bytes = today, 0
	}
	if most.Daily > 0 && s.bytes+int64(len(m.Payload)) > most.Daily {
		return codeDaily, time.Until(time.Unix((today+1)*int64(day/time.Second), 0))
	}
	if rate := float64(most.Rate); rate > 0 {
		// A new site has the zero time, long enough ago for a full burst.
		s.free, s.at = min(rate*burst, s.free+rate*now.Sub(s.at).Seconds()), now
		if s.free < 1 {
			return codeRate, time.Second // by then a request is worthwhile
		}
		s.free--
	}
	s.bytes += int64(len(m.Payload))
	return "", 0
}

// tell counts each excess over a limit, and logs it now and then.
func (l *limited) tell(ctx context.Context, site, code string) {
	l.mu.Lock()
	s := l.site(site)
	again := time.Since(s.told) < toldEvery
	if !again {
		s.told = time.Now()
	}
	l.mu.Unlock()
	if l.refused != nil {
		l.refused(transport.Refused{Source: site, Code: code, Suppressed: again})
	}
	if !again {
		l.log.LogAttrs(ctx, slog.LevelWarn, "site over its limits", slog.String("site", site), slog.String("code", code))
	}
}

// site returns the entry of a site. The caller holds the lock.
func (l *limited) site(name string) *spent {
	s := l.sites[name]
	if s == nil {
		s = &spent{}
		l.sites[name] = s
	}
	return s
}
