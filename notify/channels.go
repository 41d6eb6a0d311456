package notify

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channels gives a dispatcher a route for each channel, with its own slots, so a channel that is
// down does not hold up the others. It follows the directory: a channel that is added, changed or
// removed takes effect within about a second, without a restart. Deliveries in hand may then go on
// for the dispatcher's Grace before they are cut off.
type Channels struct {
	Store      Store
	Directory  *DirectoryCache
	Dispatcher *holdfast.Dispatcher // the dispatcher of the store; its maker runs it
	Kinds      map[string]Kind      // by Channel.Kind
	Poll       time.Duration        // longest time between two checks of a channel for due messages (NO-15); zero: the dispatcher's
	Answers    *Answers             // counts attempts that must not be cut off; may be nil
	Logger     *slog.Logger         // nil: nothing is logged

	once     sync.Once
	adapters adapters
	courier  *courier

	mu     sync.Mutex // guards the fields below
	served map[string]Channel
}

// Defaults of channels.
const (
	// DefaultWorkers is how many concurrent deliveries a channel makes.
	DefaultWorkers = 4
	// An adapter limits each of its steps. This limit is for an adapter that hangs.
	sendTimeout = time.Hour
	// When a stop cuts off the rest, the answer to a sent notification may still come. This is
	// longer than an adapter waits: it must return, and its report must be recorded.
	lastWords = LastAnswer + 10*time.Second
)

func (c *Channels) init() {
	c.once.Do(func() {
		if c.Logger == nil {
			c.Logger = slog.New(slog.DiscardHandler)
		}
		c.adapters = adapters{kinds: c.Kinds, answers: c.Answers}
		c.courier = &courier{store: c.Store, books: c.Directory, adapters: &c.adapters, log: c.Logger}
		c.served = map[string]Channel{}
	})
}

// Run follows the directory until ctx ends, and then closes the adapters. Stop the dispatcher first: it
// keeps its routes. Run returns an error when the store has stopped.
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

// follow updates the routes to those of the directory. It closes an adapter once nothing uses it.
func (c *Channels) follow(ctx context.Context) error {
	book, err := c.Directory.Get(ctx)
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

// serve sets the route of a channel. If the channel had none, taken is closed once the route takes
// effect. The caller holds the lock.
func (c *Channels) serve(ctx context.Context, channel *Channel) (taken <-chan struct{}) {
	workers := channel.Workers
	if workers <= 0 {
		workers = DefaultWorkers
	}
	c.served[channel.Name] = *channel
	taken, err := c.Dispatcher.SetRoute(Lane(channel.Name), holdfast.Route{
		Deliverer: c.courier, Retry: c.policy(ctx, channel), Timeout: sendTimeout, Limit: workers, Poll: c.Poll, Last: lastWords, CutOff: true,
	})
	if err != nil { // only a program that bypasses all checks can store this
		c.Logger.ErrorContext(ctx, "channel not served", slog.String("channel", channel.Name), slog.Any("error", err))
		return c.Dispatcher.RemoveRoute(Lane(channel.Name))
	}
	return taken
}

// policy returns the retry policy of a channel. Unset fields get the default. So do negative ones,
// which only a program can have stored; policy logs them (NO-10).
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
