package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channels gives a dispatcher a route for each channel, with slots of its own, so that
// one that is away costs the others nothing. It follows the book: a channel that is
// made, changed or ended is served so within about a second, without a restart. What
// it has in hand then may end for the dispatcher's Grace, and is cut off.
type Channels struct {
	Store      Store
	Books      *Books
	Dispatcher *holdfast.Dispatcher // that of the store; whoever made it runs it
	Kinds      map[string]Kind      // by the name that channels have as Kind
	Poll       time.Duration        // the longest time between two looks of a channel for what is due (NO-15); zero: as often as the dispatcher polls
	Answers    *Answers             // is told of attempts that must not be cut off; nil: nobody
	Logger     *slog.Logger         // nil: none

	once     sync.Once
	adapters adapters
	courier  *courier

	mu     sync.Mutex // guards what follows
	served map[string]Channel
}

// What channels use unless they say otherwise.
const (
	// DefaultWorkers is how many deliveries a channel makes at once.
	DefaultWorkers = 4
	// An adapter bounds each step of its own; this one is for those that hang.
	sendTimeout = time.Hour
	// What was sent may still be answered when a stop cuts off the rest. More than
	// an adapter waits: it has to return, and what it says has to be recorded.
	lastWords = LastAnswer + 10*time.Second
)

func (c *Channels) init() {
	c.once.Do(func() {
		if c.Logger == nil {
			c.Logger = slog.New(slog.DiscardHandler)
		}
		c.adapters = adapters{kinds: c.Kinds, answers: c.Answers}
		c.courier = &courier{store: c.Store, books: c.Books, adapters: &c.adapters, log: c.Logger}
		c.served = map[string]Channel{}
	})
}

// Run follows the book until ctx ends, and then closes the adapters: let the dispatcher
// end before it, which keeps the routes that it has. It returns an error when the store
// has stopped.
func (c *Channels) Run(ctx context.Context) error {
	c.init()
	defer func() { end(c.adapters.keep(func(string) bool { return false })) }()
	tick := time.NewTicker(freshFor)
	defer tick.Stop()
	for {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil {
			if errors.Is(err, holdfast.ErrClosed) {
				return err
			}
			c.Logger.ErrorContext(ctx, "channels not read", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// follow makes the routes those of the book. An adapter ends once nothing uses it.
func (c *Channels) follow(ctx context.Context) error {
	book, err := c.Books.Book(ctx)
	if err != nil {
		return err
	}
	want := map[string]Channel{"": {Retry: DefaultRetry()}}
	for name, channel := range book.Channels {
		if !channel.Disabled {
			want[name] = channel
		}
	}
	c.reroute(ctx, want)
	end(c.adapters.keep(func(name string) bool { _, wanted := want[name]; return wanted }))
	return nil
}

func (c *Channels) reroute(ctx context.Context, want map[string]Channel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.served {
		if _, wanted := want[name]; !wanted {
			c.Dispatcher.RemoveRoute(Lane(name))
			delete(c.served, name)
		}
	}
	for name, channel := range want {
		if before, served := c.served[name]; !served || !before.same(&channel) {
			c.serve(ctx, &channel)
		}
	}
}

// serve sets the route of a channel. taken is closed once it holds, where there was
// none before. The caller holds the lock.
func (c *Channels) serve(ctx context.Context, channel *Channel) (taken <-chan struct{}) {
	workers := channel.Workers
	if workers <= 0 {
		workers = DefaultWorkers
	}
	c.served[channel.Name] = *channel
	taken, err := c.Dispatcher.SetRoute(Lane(channel.Name), holdfast.Route{
		Deliverer: c.courier, Retry: c.policy(ctx, channel), Timeout: sendTimeout, Limit: workers, Poll: c.Poll, Last: lastWords, CutOff: true,
	})
	if err != nil { // only what a program has put into the store past all checks
		c.Logger.ErrorContext(ctx, "channel not served", slog.String("channel", channel.Name), slog.Any("error", err))
		return c.Dispatcher.RemoveRoute(Lane(channel.Name))
	}
	return taken
}

// policy is how often a channel tries. What it does not say is the default. Nor
// is what is below zero taken, which only a program can have stored: that is said
// (NO-10).
func (c *Channels) policy(ctx context.Context, channel *Channel) holdfast.RetryPolicy {
	usual := DefaultRetry()
	p := holdfast.RetryPolicy{Attempts: channel.Retry.Attempts, First: channel.Retry.Interval, Factor: 1, Jitter: -1}
	clamped := func(setting string, value any, use any) {
		c.Logger.WarnContext(ctx, "setting is not above zero: the default is used", slog.String("channel", channel.Name),
			slog.String("setting", setting), slog.Any("value", value), slog.Any("used", use))
	}
	if p.Attempts < 0 {
		clamped("retry.attempts", p.Attempts, usual.Attempts)
	}
	if p.Attempts <= 0 {
		p.Attempts = usual.Attempts
	}
	if p.First < 0 && len(channel.Retry.Waits) == 0 {
		clamped("retry.interval", p.First.String(), usual.Interval.String())
	}
	switch {
	case len(channel.Retry.Waits) > 0:
		p.First, p.List = 0, channel.Retry.Waits
	case p.First <= 0:
		p.First = usual.Interval
	}
	p.Max = p.First
	return p
}
