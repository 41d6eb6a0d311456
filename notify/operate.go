package notify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Check reports everything that is wrong with a channel: its name, its kind,
// and what its adapter says of the settings.
func (c *Channels) Check(channel Channel) error {
	c.init()
	if err := CheckName("name", channel.Name); err != nil {
		return err
	}
	a, err := c.adapters.create(channel)
	if err != nil {
		return err
	}
	a.Close()
	return nil
}

// CheckRecipient reports what is wrong with an address on a channel.
func (c *Channels) CheckRecipient(channel Channel, address string) error {
	if k, ok := c.Kinds[channel.Kind]; ok && k.CheckAddress != nil {
		return k.CheckAddress(address)
	}
	return nil
}

// Status is how the channels fare in this process, by name: none before the dispatcher
// runs. A channel that is disabled has no entry. The empty name stands for notifications
// whose list led nowhere.
func (c *Channels) Status() map[string]holdfast.LaneStatus {
	c.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]holdfast.LaneStatus, len(c.served))
	for name := range c.served {
		if s, _ := c.Dispatcher.Lane(Lane(name)); s.Destination != "" {
			all[name] = s
		}
	}
	return all
}

// Resume lets a held channel go on at once, instead of at its next probe, and with a new
// adapter: whatever this one knew about refused credentials. It waits a second for what
// is in hand, not longer: that may end for the dispatcher's Grace, and is cut off. On a
// store with several nodes the others find out by their probes.
func (c *Channels) Resume(ctx context.Context, name string) error {
	c.init()
	book, err := c.Books.Latest(ctx)
	if err != nil {
		return err
	}
	channel, ok := book.Channels[name]
	switch {
	case !ok:
		return fmt.Errorf("channel %q: %w", name, holdfast.ErrNotFound)
	case channel.Disabled:
		return fmt.Errorf("channel %s is disabled: %w", name, holdfast.ErrState)
	}
	if lanes := c.Dispatcher.Lanes; lanes != nil { // kept, also where the channel is not served yet
		if err := lanes.SetLaneFault(ctx, Lane(name), ""); err != nil {
			return fmt.Errorf("resume channel %s: %w", name, err)
		}
	}
	t := time.NewTimer(resumeWait)
	defer t.Stop()
	marks, idle := c.again(ctx, &channel)
	end(idle)
	for _, done := range marks {
		select {
		case <-done:
		case <-t.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// resumeWait is how long Resume waits for what it asked for.
const resumeWait = time.Second

// again serves a channel as if it came now, which forgets why it was held, with its next
// adapter. The marks are closed when that holds, and when nothing of before is in hand;
// the caller ends the adapters. One that is not served yet is left to follow.
func (c *Channels) again(ctx context.Context, channel *Channel) (marks []<-chan struct{}, idle []*made) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, served := c.served[channel.Name]; !served {
		return nil, nil
	}
	former := c.Dispatcher.RemoveRoute(Lane(channel.Name))
	idle = c.adapters.keep(func(name string) bool { return name != channel.Name })
	c.Logger.InfoContext(ctx, "channel resumed", slog.String("channel", channel.Name))
	return []<-chan struct{}{c.serve(ctx, channel), former}, idle
}

// Test sends a notification of its own over a channel, once, and keeps nothing
// of it.
func (c *Channels) Test(ctx context.Context, name, address string) (Report, error) {
	c.init()
	book, err := c.Books.Latest(ctx)
	if err != nil {
		return Report{}, err
	}
	channel, ok := book.Channels[name]
	if !ok {
		return Report{}, fmt.Errorf("channel %q: %w", name, holdfast.ErrNotFound)
	}
	if err := c.CheckRecipient(channel, address); err != nil {
		return Report{}, fmt.Errorf("%w: %w", holdfast.ErrInvalid, err)
	}
	n := Notification{
		ID: holdfast.NewID(), Type: "test", List: "test", Subject: "Test of channel " + name,
		Body: "This is a test of a notification channel. Nothing is wrong.\n",
	}
	return c.adapters.send(ctx, channel, &n, []Recipient{{Channel: name, Address: address}}, nil), nil
}
