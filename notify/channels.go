package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Channels delivers notifications: one dispatcher per channel, each with its
// own slots, so that a channel that is away, or whose settings are being
// changed, costs the others nothing. It follows the book: a channel that is
// made, changed or ended is served so within about a second, without a restart.
type Channels struct {
	Store    Store
	Books    *Books
	Messages holdfast.Store
	Lanes    holdfast.Lanes  // keeps why a channel is held over restarts; nil: it is not kept
	Kinds    map[string]Kind // by the name that channels have as Kind
	Grace    time.Duration   // for work in hand at a stop (SF-10); zero: 10 s
	Observer holdfast.Observer
	Logger   *slog.Logger // nil: none

	once     sync.Once
	adapters adapters

	changes sync.Mutex // held by who starts and stops dispatchers

	mu     sync.Mutex // guards what follows
	runs   map[string]*channelRun
	failed error // why a dispatcher ended by itself
}

// What channels use unless they say otherwise.
const (
	// DefaultWorkers is how many deliveries a channel makes at once.
	DefaultWorkers = 4
	// An adapter bounds each step of its own; this one is for those that hang.
	sendTimeout = time.Hour
	// What was sent may still be answered when a stop cuts off the rest: to go
	// without that answer is to send it twice.
	lastAnswer = 30 * time.Second
)

// channelRun is the dispatcher of one channel.
type channelRun struct {
	channel    Channel
	dispatcher *holdfast.Dispatcher
	stop       context.CancelFunc
	ended      chan struct{}
}

func (c *Channels) init() {
	c.once.Do(func() {
		if c.Logger == nil {
			c.Logger = slog.New(slog.DiscardHandler)
		}
		c.adapters = adapters{kinds: c.Kinds}
		c.runs = map[string]*channelRun{}
	})
}

// Run serves the channels until ctx ends, then stops as a dispatcher does. It
// returns an error when the store has stopped.
func (c *Channels) Run(ctx context.Context) error {
	c.init()
	defer c.adapters.close()
	tick := time.NewTicker(freshFor)
	defer tick.Stop()
	for {
		if err := c.follow(ctx); err != nil && ctx.Err() == nil {
			if errors.Is(err, holdfast.ErrClosed) {
				return errors.Join(err, c.end())
			}
			c.Logger.ErrorContext(ctx, "channels not read", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return c.end()
		case <-tick.C:
		}
	}
}

// follow starts and stops dispatchers so that they are those of the book.
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
	c.changes.Lock()
	defer c.changes.Unlock()
	c.halt(func(r *channelRun) bool {
		w, ok := want[r.channel.Name]
		return !ok || !w.same(&r.channel)
	})
	for name, channel := range want {
		if c.run(name) == nil {
			c.start(ctx, channel)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// halt stops the dispatchers that are picked, and returns when they have ended:
// of one lane there is one at a time. The caller holds changes.
func (c *Channels) halt(pick func(r *channelRun) bool) {
	c.mu.Lock()
	var stopped []*channelRun
	for name, r := range c.runs {
		if pick(r) {
			stopped = append(stopped, r)
			delete(c.runs, name)
		}
	}
	c.mu.Unlock()
	for _, r := range stopped {
		r.stop()
	}
	for _, r := range stopped {
		<-r.ended
	}
}

// forget takes out a dispatcher that ended by itself, as where the store could
// not be read when it began: follow starts another.
func (c *Channels) forget(r *channelRun) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs[r.channel.Name] == r {
		delete(c.runs, r.channel.Name)
	}
}

func (c *Channels) run(name string) *channelRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[name]
}

// start runs the dispatcher of a channel. The caller holds changes.
func (c *Channels) start(ctx context.Context, channel Channel) {
	workers := channel.Workers
	if workers <= 0 {
		workers = DefaultWorkers
	}
	r := &channelRun{channel: channel, ended: make(chan struct{})}
	r.dispatcher = &holdfast.Dispatcher{
		Store: c.Messages, Lanes: c.Lanes, Grace: c.Grace, Last: lastAnswer, Observer: c.Observer, Logger: c.Logger,
		Routes: map[string]holdfast.Route{Lane(channel.Name): {
			Deliverer: &courier{store: c.Store, books: c.Books, adapters: &c.adapters, log: c.Logger}, Retry: c.policy(ctx, &channel), Timeout: sendTimeout, Limit: workers,
		}},
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Lock()
	c.runs[channel.Name] = r
	c.mu.Unlock()
	go func() {
		defer close(r.ended)
		if err := r.dispatcher.Run(ctx); err != nil {
			if channel.Name != "" {
				err = fmt.Errorf("channel %s: %w", channel.Name, err)
			}
			c.Logger.ErrorContext(ctx, "channel stopped", slog.Any("error", err))
			if errors.Is(err, holdfast.ErrClosed) {
				c.mu.Lock()
				c.failed = errors.Join(c.failed, err)
				c.mu.Unlock()
			}
		}
		if ctx.Err() == nil {
			c.forget(r)
		}
	}()
}

// policy is how often a channel tries. What is not above zero is taken for the
// default, and said so (NO-10).
func (c *Channels) policy(ctx context.Context, channel *Channel) holdfast.RetryPolicy {
	usual := DefaultRetry()
	p := holdfast.RetryPolicy{Attempts: channel.Retry.Attempts, First: channel.Retry.Interval, Factor: 1, Jitter: -1}
	clamped := func(setting string, value any, use any) {
		c.Logger.WarnContext(ctx, "setting is not above zero: the default is used", slog.String("channel", channel.Name),
			slog.String("setting", setting), slog.Any("value", value), slog.Any("used", use))
	}
	if p.Attempts <= 0 {
		clamped("retry.attempts", p.Attempts, usual.Attempts)
		p.Attempts = usual.Attempts
	}
	switch {
	case len(channel.Retry.Waits) > 0:
		p.First, p.List = 0, channel.Retry.Waits
	case p.First <= 0:
		clamped("retry.interval", p.First.String(), usual.Interval.String())
		p.First = usual.Interval
	}
	p.Max = p.First
	return p
}

// end stops all dispatchers at once.
func (c *Channels) end() error {
	c.changes.Lock()
	defer c.changes.Unlock()
	c.halt(func(*channelRun) bool { return true })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
