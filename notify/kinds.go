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

// Kind is one kind of channel: how its adapters are made and what its
// addresses look like.
type Kind struct {
	// New makes an adapter, or says everything that is wrong with the settings.
	New func(c Channel) (Adapter, error)
	// CheckAddress says what is wrong with a recipient's address; nil: any is
	// taken.
	CheckAddress func(address string) error
}

// adapters are those in use, by channel. One is made when it is needed first,
// and again when its channel was changed, and ends with its channel.
type adapters struct {
	kinds   map[string]Kind
	answers *Answers // nil: nobody asks

	mu   sync.Mutex
	made map[string]*made
}

type made struct {
	kind     string
	settings string
	adapter  Adapter
	users    int
	old      bool // another has taken its place: the last user closes it
}

// create makes an adapter of a channel.
func (a *adapters) create(c Channel) (Adapter, error) {
	k, ok := a.kinds[c.Kind]
	if !ok {
		return nil, &holdfast.FieldError{
			Field: "kind", Value: clip(c.Kind), Problem: "is no kind of channel; there are " + strings.Join(slices.Sorted(maps.Keys(a.kinds)), ", "),
		}
	}
	return k.New(c)
}

// send makes one attempt over a channel. Settings that do not work hold the
// channel and charge no notification (NO-09).
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

// take is the adapter of a channel for one attempt, which gives it back. One that it
// replaces ends outside the lock, as all do: it may say goodbye over the network.
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

// retire marks an adapter as one of before, and returns it if nobody uses it: then it
// is to be ended; else its last user does so. The caller holds the lock.
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

// keep forgets the adapters of channels that are not used any more, and with them what
// they have learned: the next one begins anew. The caller ends those that it returns.
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

// end ends adapters that keep has returned.
func end(idle []*made) {
	for _, m := range idle {
		m.end()
	}
}

// same says whether two states of a channel have the same route.
func (c *Channel) same(o *Channel) bool {
	return c.Workers == o.Workers && reflect.DeepEqual(c.Retry, o.Retry)
}
