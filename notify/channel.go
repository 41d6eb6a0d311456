package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast"
)

// channelRun is the dispatcher of one channel. Of one lane there is one at a
// time: it stays among the runs until it has ended.
type channelRun struct {
	channel    Channel
	dispatcher *holdfast.Dispatcher
	stop       context.CancelFunc
	ended      chan struct{}
	replaced   chan struct{} // closed when what it stood in the way of is done

	// Guarded by Channels.
	stopping bool
	resume   bool // it ends so that a held channel goes on
}

func (r *channelRun) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// halt tells the dispatchers that are not, or not as they are, among those
// wanted to stop. It returns those that have ended, and the fault of the store
// that ended one.
func (c *Channels) halt(want map[string]Channel) (over []*channelRun, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.runs {
		w, ok := want[r.channel.Name]
		if !r.stopping && (!ok || !w.same(&r.channel)) {
			r.stopping = true
			r.stop()
		}
		if r.over() {
			over = append(over, r)
		}
	}
	return over, c.failed
}

// replace makes room for the next dispatcher of a channel. Why the channel was
// held is forgotten only now, where a person asked for that: its last attempts
// could still say so.
func (c *Channels) replace(ctx context.Context, r *channelRun) error {
	c.mu.Lock()
	resume := r.resume
	c.mu.Unlock()
	if resume {
		c.adapters.forget(r.channel.Name) // whatever it knew about refused credentials
	}
	if resume && c.Lanes != nil {
		if err := c.Lanes.SetLaneFault(ctx, Lane(r.channel.Name), ""); err != nil {
			return fmt.Errorf("resume channel %s: %w", r.channel.Name, err) // and once more at the next look
		}
	}
	c.mu.Lock()
	delete(c.runs, r.channel.Name)
	c.mu.Unlock()
	close(r.replaced)
	if resume {
		c.Logger.InfoContext(ctx, "channel resumed", slog.String("channel", r.channel.Name))
	}
	return nil
}

func (c *Channels) run(name string) *channelRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[name]
}

// start runs the dispatcher of a channel.
func (c *Channels) start(ctx context.Context, channel Channel) {
	workers := channel.Workers
	if workers <= 0 {
		workers = DefaultWorkers
	}
	r := &channelRun{channel: channel, ended: make(chan struct{}), replaced: make(chan struct{})}
	r.dispatcher = &holdfast.Dispatcher{
		Store: c.Messages, Beside: true, Lanes: c.Lanes, Poll: c.Poll, Grace: c.Grace, Last: lastWords, Observer: c.Observer, Progress: c.Progress, Logger: c.Logger,
		Routes: map[string]holdfast.Route{Lane(channel.Name): {
			Deliverer: &courier{store: c.Store, books: c.Books, adapters: &c.adapters, log: c.Logger, late: &c.late}, Retry: c.policy(ctx, &channel), Timeout: sendTimeout, Limit: workers,
		}},
	}
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.mu.Lock()
	c.runs[channel.Name] = r
	c.mu.Unlock()
	go func() {
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
		close(r.ended)
		if ctx.Err() != nil { // one that ended by itself is followed at the next tick, not at once for ever
			c.ring()
		}
	}()
}

// ring has follow look at once.
func (c *Channels) ring() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// end stops all dispatchers at once, and returns when they have ended.
func (c *Channels) end() error {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.runs))
	clear(c.runs)
	c.mu.Unlock()
	for _, r := range all {
		r.stop()
	}
	for _, r := range all {
		<-r.ended
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}
