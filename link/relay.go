package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/link/sites"
)

// ErrNoAnswer means that a site took a command but did not answer in time. The command may have
// been done.
var ErrNoAnswer = errors.New("the site has not answered in time; it may have done it")

// ErrNotReachable means that a command did not reach its site. Nothing was done.
type ErrNotReachable struct { //nolint:errname // it is branched on as a sentinel would be, and tells when
	Site     string
	LastSeen time.Time // zero: never
}

func (e *ErrNotReachable) Error() string {
	if e.LastSeen.IsZero() {
		return fmt.Sprintf("site %s is not reachable: never seen", e.Site)
	}
	return fmt.Sprintf("site %s is not reachable: last seen %s", e.Site, e.LastSeen.UTC().Format(time.RFC3339))
}

// Trouble says why a site, or the way to it, cannot do what it was asked while central itself is
// well.
type Trouble string

// The troubles. All but Busy come from the site itself.
const (
	Busy        Trouble = "busy"             // too many commands wait for the site; nothing was done
	Unavailable Trouble = problemUnavailable // its store is unavailable now
	DiskFull    Trouble = problemDiskFull    // its disk is full; nothing was done
	TooLarge    Trouble = problemTooLarge    // the answer is larger than the link carries
	Unknown     Trouble = problemUnknown     // its program does not know the command
	Failed      Trouble = problemFailed      // anything else; the site's log says more
)

// ErrSite means that a site cannot do what it was asked, for a reason of its own.
type ErrSite struct { //nolint:errname // it is branched on as a sentinel would be, and tells which site
	Site    string
	Trouble Trouble
	Text    string // the site's own words; may be empty
}

func (e *ErrSite) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("site %s: %s", e.Site, e.Trouble)
	}
	return fmt.Sprintf("site %s: %s: %s", e.Site, e.Trouble, e.Text)
}

const (
	// backSoon is how long a site may be away between two polls.
	backSoon = 3 * time.Second
	// askFor limits an Ask whose context has no deadline.
	askFor = 15 * time.Second
)

// Ask relays a command to the site, which must poll this Central, and returns its answer. It waits
// until ctx ends, at most 15 s. *ErrNotReachable means that the command did not arrive and will not
// be done. ErrNoAnswer means that it is unknown whether the command was done. A refusal by the site
// wraps holdfast.ErrNotFound, ErrState or ErrInvalid; any trouble of the site is an *ErrSite.
func (c *Central) Ask(ctx context.Context, site string, command Command) (json.RawMessage, error) {
	body, err := c.ask(ctx, site, command)
	if err != nil {
		return nil, fmt.Errorf("ask site %s to %s: %w", clip(site), command.Verb, err)
	}
	return body, nil
}

func (c *Central) ask(ctx context.Context, site string, command Command) (json.RawMessage, error) {
	info, err := c.info(ctx, site)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	b := c.state(site)
	command.ID = string(holdfast.NewID())
	o := &relayedCommand{command: command, answer: make(chan Answer, 1)}
	if there, room := b.put(o); !room {
		return nil, &ErrSite{Site: info.Name, Trouble: Busy, Text: fmt.Sprintf("%d commands already wait for it", maxOrders)}
	} else if !there {
		return nil, b.away(info)
	}
	var a Answer
	select {
	case a = <-o.answer:
		return a.result(info.Name)
	case <-ctx.Done():
	}
	switch handed := b.drop(o); {
	case len(o.answer) > 0:
		a = <-o.answer // it came at the last moment
		return a.result(info.Name)
	case handed:
		return nil, ErrNoAnswer
	}
	return nil, b.away(info)
}

// put queues a command for a site that polls now or did a moment ago. It reports whether the site
// is there, and whether its queue had room.
func (b *siteState) put(o *relayedCommand) (there, room bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.poll == nil && time.Since(b.seen) > backSoon:
		return false, true
	case len(b.orders) >= maxOrders:
		return true, false
	}
	b.orders = append(b.orders, o)
	if b.poll != nil {
		select {
		case b.poll.wake <- struct{}{}:
		default: // a wake-up is pending already
		}
	}
	return true, true
}

// away returns the error for a site that does not poll. It says when the site was last here, by the
// later of memory and store.
func (b *siteState) away(info sites.Info) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &ErrNotReachable{Site: info.Name, LastSeen: info.Seen}
	if b.seen.After(e.LastSeen) {
		e.LastSeen = b.seen
	}
	return e
}

// drop takes a command back and reports whether the site may have received it.
func (b *siteState) drop(o *relayedCommand) (handed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.orders {
		if b.orders[i] == o {
			b.orders = append(b.orders[:i:i], b.orders[i+1:]...)
			break
		}
	}
	return o.handed
}

func (a *Answer) result(site string) (json.RawMessage, error) {
	text := shown.Line(a.Text, 500)
	switch a.Problem {
	case "":
		return a.Body, nil
	case problemNotFound:
		return nil, fmt.Errorf("%w there: %s", holdfast.ErrNotFound, text)
	case problemState:
		return nil, fmt.Errorf("%w: %s", holdfast.ErrState, text)
	case problemInvalid:
		return nil, fmt.Errorf("%w: %s", holdfast.ErrInvalid, text)
	}
	e := &ErrSite{Site: site, Trouble: Failed, Text: text}
	switch t := Trouble(a.Problem); t {
	case Unavailable, DiskFull, TooLarge, Unknown:
		e.Trouble = t
	case Busy, Failed: // only central may say Busy
	}
	return nil, e
}
