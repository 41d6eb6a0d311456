package notify

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/holdfast-mq/holdfast"
)

// Kind is one kind of channel: how to make its adapters, and which addresses are valid.
type Kind struct {
	// New makes an adapter, or returns all faults of the settings.
	New func(c Channel) (Adapter, error)
	// CheckAddress returns an error if a recipient's address is not valid. Nil: every address is.
	CheckAddress func(address string) error
}

// adapters holds the adapters in use, by channel. An adapter is made at first use and again after
// its channel was changed. It is closed when its channel is removed.
type adapters struct {
	kinds   map[string]Kind
	answers *Answers // may be nil

	mu   sync.Mutex
	made map[string]*made
}

type made struct {
	kind     string
	settings string
	adapter  Adapter
	users    int
	old      bool // another has replaced it; its last user closes it
}

// create makes an adapter for a channel.
func (a *adapters) create(c Channel) (Adapter, error) {
	k, ok := a.kinds[c.Kind]
	if !ok {
		return nil, &holdfast.FieldError{
			Field: "kind", Value: clip(c.Kind), Problem: "is not a kind of channel; the kinds are " + strings.Join(slices.Sorted(maps.Keys(a.kinds)), ", "),
		}
	}
	return k.New(c)
}

// send makes one attempt over a channel. Invalid settings hold the channel and charge no
// notification (NO-09).
func (a *adapters) send(ctx context.Context, c Channel, n *Notification, to []Recipient, known func(Part) bool) (r Report) {
	if _, ok := a.kinds[c.Kind]; !ok {
		return Report{Fault: &holdfast.Failure{ // NO-07
			Outcome: holdfast.Permanent, Code: "no_adapter", Err: fmt.Errorf("channel %s is of kind %q, for which there is no adapter", c.Name, clip(c.Kind)),
		}}
	}
	m, err := a.take(c)
	if err != nil {
		return Report{Fault: &holdfast.Failure{Outcome: holdfast.LaneFault, Code: "settings", Err: fmt.Errorf("settings of channel %s: %w", c.Name, err)}}
	}
	defer a.giveBack(m)
	return m.adapter.Send(a.answers.With(ctx), n, to, known)
}

// take returns the adapter of a channel for one attempt; the caller gives it back. An adapter that
// it replaces is closed outside the lock, like all adapters: closing may use the network.
func (a *adapters) take(c Channel) (*made, error) {
	m, before, err := a.find(c)
	before.end()
	return m, err
}

func (a *adapters) find(c Channel) (m, before *made, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m = a.made[c.Name]
	if m != nil && m.kind == c.Kind && m.settings == string(c.Settings) {
		m.users++
		return m, nil, nil
	}
	adapter, err := a.create(c)
	if err != nil {
		return nil, nil, err
	}
	before = m.retire()
	m = &made{kind: c.Kind, settings: string(c.Settings), adapter: adapter, users: 1}
	if a.made == nil {
		a.made = map[string]*made{}
	}
	a.made[c.Name] = m
	return m, before, nil
}

func (a *adapters) giveBack(m *made) {
	a.mu.Lock()
	m.users--
	last := m.old && m.users == 0
	a.mu.Unlock()
	if last {
		m.end()
	}
}

// retire marks an adapter as replaced. If nothing uses it, retire returns it, and the caller closes
// it. Otherwise its last user does. The caller holds the lock.
func (m *made) retire() *made {
	if m == nil {
		return nil
	}
	if m.old = true; m.users > 0 {
		return nil
	}
	return m
}

func (m *made) end() {
	if m != nil {
		m.adapter.Close()
	}
}

// keep forgets the adapters of channels that are no longer used, and with them what they have
// learned. The caller closes the adapters that it returns.
func (a *adapters) keep(used func(channel string) bool) (idle []*made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, m := range a.made {
		if !used(name) {
			delete(a.made, name)
			idle = append(idle, m.retire())
		}
	}
	return idle
}

// end closes adapters that keep has returned.
func end(idle []*made) {
	for _, m := range idle {
		m.end()
	}
}

// same reports whether two versions of a channel have the same route.
func (c *Channel) same(o *Channel) bool {
	return c.Workers == o.Workers && reflect.DeepEqual(c.Retry, o.Retry)
}
