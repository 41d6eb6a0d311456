package notify

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Check returns all faults of a channel: of its name, its kind, and its settings as its adapter
// reads them.
func (c *Channels) Check(channel Channel) error {
	c.init()
	if err := channel.Validate(); err != nil {
		return err
	}
	a, err := c.adapters.create(channel)
	if err != nil {
		return err
	}
	a.Close()
	return nil
}

// CheckRecipient returns an error if an address is not valid on a channel.
func (c *Channels) CheckRecipient(channel Channel, address string) error {
	if k, ok := c.Kinds[channel.Kind]; ok && k.CheckAddress != nil {
		return k.CheckAddress(address)
	}
	return nil
}

// Status returns the status of the channels in this process, by name. It is empty before the
// dispatcher runs. A disabled channel has no entry. The empty name stands for notifications whose
// list has no channel.
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

// Resume makes a held channel continue at once instead of at its next probe. The channel gets a new
// adapter, which remembers no refused credentials. Resume waits at most a second for deliveries in
// hand; they may go on for the dispatcher's Grace before they are cut off. If several nodes use the
// store, the others continue at their next probes.
func (c *Channels) Resume(ctx context.Context, name string) error {
	c.init()
	book, err := c.Directory.Latest(ctx)
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
	if lanes := c.Dispatcher.Lanes; lanes != nil { // recorded even if the channel is not served yet
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

// resumeWait is how long Resume waits for its effect.
const resumeWait = time.Second

// again serves a channel as if it were new, with its next adapter. So it forgets why the channel
// was held. The marks are closed when that takes effect, and when no earlier delivery is in hand.
// The caller closes the adapters. A channel that is not served yet is left to follow.
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

// Test sends a test notification over a channel, once, and stores nothing.
func (c *Channels) Test(ctx context.Context, name, address string) (Report, error) {
	c.init()
	book, err := c.Directory.Latest(ctx)
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
