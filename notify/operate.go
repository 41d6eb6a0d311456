package notify

import (
	"context"
	"fmt"
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

// Status is how the channels fare in this process, by name: none before Run. A
// channel that is disabled, or is about to be served otherwise, has no entry. The empty name stands for
// notifications whose list led nowhere.
func (c *Channels) Status() map[string]holdfast.LaneStatus {
	c.init()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]holdfast.LaneStatus, len(c.runs))
	for name, r := range c.runs {
		if r.stopping {
			continue
		}
		for _, s := range r.dispatcher.Status() {
			if s.Destination == Lane(name) {
				all[name] = s
			}
		}
	}
	return all
}

// Resume lets a held channel go on at once, instead of at its next probe: when
// the deliveries that it has in hand have ended. It waits a second for that, not
// longer: it is noted. On a store with several nodes the others find out by their
// probes.
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
	r := c.again(name)
	if r == nil {
		return nil // follow starts it
	}
	t := time.NewTimer(resumeWait)
	defer t.Stop()
	select {
	case <-r.replaced:
	case <-t.C:
	case <-ctx.Done():
	}
	return nil
}

// resumeWait is how long Resume waits for what it asked for.
const resumeWait = time.Second

// again notes that the dispatcher of a channel is to begin anew, not held.
func (c *Channels) again(name string) *channelRun {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[name]
	if r != nil {
		r.resume, r.stopping = true, true
		r.stop()
	}
	return r
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
