package link

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast/link/sites"
)

// relayedCommand is a command on its way to a site.
type relayedCommand struct {
	command Command
	handed  bool        // the site may have it
	answer  chan Answer // receives one answer
}

// siteState is what central keeps of a site in memory: the commands for it, and its health.
type siteState struct {
	mu        sync.Mutex
	orders    []*relayedCommand // oldest first
	poll      *poll             // the poll that waits; nil: none
	seen      time.Time
	noted     map[string]time.Time // when the store last took a report, by node
	health    Health               // as last reported
	reported  time.Time            // when; zero: it has reported nothing here
	telemetry Telemetry
	backlog   map[string]int64  // by log
	refused   map[string]string // why the last batch of a log was not taken
}

// poll is one request that waits for commands.
type poll struct {
	wake chan struct{} // holds a value when there may be commands
	over chan struct{} // closed when a newer poll has come, or when polls must end
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
	b.seen, b.reported, b.health = time.Now(), time.Now(), h
	return b.poll
}

// leave ends a poll. The site should poll again at once.
func (b *siteState) leave(p *poll) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen = time.Now()
	if b.poll == p {
		b.poll = nil
	}
}

// end sends the waiting poll away. It also forgets when the site was noted: the store knows nothing
// of a later site of the same name.
func (b *siteState) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted, b.seen, b.reported = nil, time.Time{}, time.Time{}
	if b.poll != nil {
		close(b.poll.over)
		b.poll = nil
	}
}

// take returns all commands that have no answer yet. That includes those of the previous poll,
// whose response may have been lost. The site does each command once.
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

// wait returns when there are commands, or after at most the given time. It reports true if a newer
// poll has replaced this one.
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

// servePoll answers as soon as there are commands.
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
	c.note(r.Context(), site, b, &in.Health)
	// Read before the wait: the next poll brings a change that happens meanwhile.
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

// still looks the credential up again: it may have been revoked while the poll waited.
func (c *Central) still(r *http.Request, site string) bool {
	name, err := c.identify(r.WithContext(context.WithoutCancel(context.WithValue(r.Context(), siteKey{}, nil))))
	return err == nil && name == site
}

// mostNodes is how many nodes of a site report to one central node at one time.
const mostNodes = 4

// due reports whether the store should take a report of a node of the site now.
func (b *siteState) due(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.noted, func(_ string, at time.Time) bool { return time.Since(at) >= reportEvery })
	if _, fresh := b.noted[node]; fresh || len(b.noted) >= mostNodes {
		return false
	}
	if b.noted == nil {
		b.noted = map[string]time.Time{}
	}
	b.noted[node] = time.Now()
	return true
}

func (c *Central) note(ctx context.Context, site string, b *siteState, h *Health) {
	if !b.due(h.Node) {
		return
	}
	if err := c.conf.Store.SiteSeen(ctx, site, h.Version, sites.Report{Node: h.Node, Text: h.text()}); err != nil { // no reason to refuse the site
		c.log.LogAttrs(ctx, slog.LevelWarn, "report of a site not noted", slog.String("site", site), slog.Any("error", err))
	}
}

// serveAnswers takes the answers to commands. A site can answer only its own.
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

// answer ends a command. The caller of Ask may have left.
func (b *siteState) answer(a Answer) {
	for i, o := range b.orders {
		if o.command.ID == a.ID {
			b.orders = append(b.orders[:i:i], b.orders[i+1:]...)
			o.answer <- a // has room for one
			return
		}
	}
}
