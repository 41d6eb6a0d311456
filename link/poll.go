package link

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// relayedCommand is a command on its way to a site.
type relayedCommand struct {
	command Command
	handed  bool        // the site may have it
	answer  chan Answer // gets one
}

// siteState is what central has of a site in memory: commands for it, and how it
// fares.
type siteState struct {
	mu      sync.Mutex
	orders  []*relayedCommand // in the order in which they were asked
	poll    *poll             // the one that waits; nil: none does
	seen    time.Time
	noted   time.Time // when the store was told of seen
	version string    // that the store was told
	health  Health
}

// poll is one request that waits for commands.
type poll struct {
	wake chan struct{} // holds a value when there may be some
	over chan struct{} // closed when a newer poll has come, or none is wanted any more
}

func (c *Central) state(site string) *siteState {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.boxes[site]
	if !ok {
		b = &siteState{}
		c.boxes[site] = b
	}
	return b
}

func (c *Central) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// begin makes a poll the newest of its site.
func (b *siteState) begin(h Health) *poll {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.poll != nil {
		close(b.poll.over)
	}
	b.poll = &poll{wake: make(chan struct{}, 1), over: make(chan struct{})}
	b.seen, b.health = time.Now(), h
	return b.poll
}

// leave ends a poll. The site is expected back at once.
func (b *siteState) leave(p *poll) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = time.Now()
	if b.poll == p {
		b.poll = nil
	}
}

// end sends whoever waits away. The store knows nothing of a site that gets
// the name again.
func (b *siteState) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted = time.Time{}
	if b.poll != nil {
		close(b.poll.over)
		b.poll = nil
	}
}

// take hands all commands over that have no answer yet: also those of the poll
// before, whose answer may have been lost. The site does each once.
func (b *siteState) take() []Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []Command
	for _, o := range b.orders {
		o.handed = true
		list = append(list, o.command)
	}
	return list
}

// wait returns when there are commands, or the poll has waited long enough;
// replaced if it is not the newest any more.
func (b *siteState) wait(ctx context.Context, p *poll, most time.Duration) (replaced bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		b.mu.Lock()
		some := len(b.orders) > 0
		b.mu.Unlock()
		if some {
			return false
		}
		select {
		case <-p.wake:
		case <-p.over:
			return true
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// servePoll answers at once if there are commands, else when there are.
func (c *Central) servePoll(w http.ResponseWriter, r *http.Request, site string) {
	var in polling
	if !read(w, r, maxPoll, &in) {
		return
	}
	in.Health = in.clean()
	b := c.state(site)
	if c.isClosed() {
		unavailable(w)
		return
	}
	begun, ok := pass(r.Context(), c.gate.polls)
	if !ok {
		tooBusy(w)
		return
	}
	p := b.begin(in.Health)
	defer b.leave(p)
	c.note(r.Context(), site, b, in.Version)
	// Read before the wait: what changes meanwhile the next poll brings.
	incarnation, err := c.conf.Store.Incarnation(r.Context())
	begun()
	if err != nil {
		c.log.LogAttrs(r.Context(), slog.LevelError, "incarnation not read", slog.Any("error", err))
		unavailable(w)
		return
	}
	out := polled{Incarnation: incarnation}
	out.Replaced = b.wait(r.Context(), p, min(max(time.Duration(in.WaitMs)*time.Millisecond, 0), longestPoll))
	if !out.Replaced && c.still(r, site) {
		out.Commands = b.take()
	}
	write(w, out)
}

// still looks the credential up again: it may have been revoked while the poll
// waited.
func (c *Central) still(r *http.Request, site string) bool {
	name, err := c.identify(r.WithContext(context.WithoutCancel(context.WithValue(r.Context(), siteKey{}, nil))))
	return err == nil && name == site
}

// notedEvery is how exact the store knows when a site was here: a write per
// poll of each site would cost more than the knowledge is worth.
const notedEvery = time.Minute

func (c *Central) note(ctx context.Context, site string, b *siteState, version string) {
	b.mu.Lock()
	due := time.Since(b.noted) >= notedEvery || b.version != version
	if due {
		b.noted, b.version = time.Now(), version
	}
	b.mu.Unlock()
	if !due {
		return
	}
	if err := c.conf.Store.SiteSeen(ctx, site, version); err != nil { // no reason to send it away
		c.log.LogAttrs(ctx, slog.LevelWarn, "visit of a site not noted", slog.String("site", site), slog.Any("error", err))
	}
}

// serveAnswers takes what became of commands. A site answers its own only.
func (c *Central) serveAnswers(w http.ResponseWriter, r *http.Request, site string) {
	leave, ok := c.answers.Hold(r.Context(), r.ContentLength, maxAnswers)
	if !ok {
		tooBusy(w)
		return
	}
	defer leave()
	var in answers
	if !read(w, r, maxAnswers, &in) {
		return
	}
	b := c.state(site)
	b.mu.Lock()
	b.seen = time.Now()
	for _, a := range in.Answers {
		b.answer(a)
	}
	b.mu.Unlock()
	write(w, struct{}{})
}

// answer ends an order; whoever asked may be gone.
func (b *siteState) answer(a Answer) {
	for i, o := range b.orders {
		if o.command.ID == a.ID {
			b.orders = append(b.orders[:i:i], b.orders[i+1:]...)
			o.answer <- a // has room for one
			return
		}
	}
}
