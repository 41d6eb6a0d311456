package notify

import (
	"context"
	"errors"
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
	Poll     time.Duration   // the longest time between two looks of a channel for what is due (NO-15); zero: 1 s
	Grace    time.Duration   // for work in hand at a stop (SF-10); zero: 10 s
	Observer holdfast.Observer
	Answers  *Answers           // is told of attempts that must not be cut off; nil: nobody
	Progress *holdfast.Progress // the watch of all dispatchers of the store; nil: each channel has its own
	Logger   *slog.Logger       // nil: none

	once     sync.Once
	adapters adapters
	late     unwritten
	changed  chan struct{} // rings when follow has something to do before its time

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
		c.changed = make(chan struct{}, 1)
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
		case <-c.changed:
		case <-tick.C:
		}
	}
}

// follow starts and stops dispatchers so that they are those of the book. It
// waits for none: one that ends rings, and is replaced then.
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
	over, err := c.halt(want)
	for _, r := range over {
		err = errors.Join(err, c.replace(ctx, r))
	}
	for name, channel := range want {
		if c.run(name) == nil {
			c.start(ctx, channel)
		}
	}
	c.adapters.keep(func(name string) bool {
		_, wanted := want[name]
		return wanted || c.run(name) != nil
	})
	return err
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
