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

func (a *adapters) take(c Channel) (*made, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.made[c.Name]
	if m != nil && m.kind == c.Kind && m.settings == string(c.Settings) {
		m.users++
		return m, nil
	}
	adapter, err := a.create(c)
	if err != nil {
		return nil, err
	}
	if m != nil {
		a.retire(m)
	}
	m = &made{kind: c.Kind, settings: string(c.Settings), adapter: adapter, users: 1}
	if a.made == nil {
		a.made = map[string]*made{}
	}
	a.made[c.Name] = m
	return m, nil
}

func (a *adapters) giveBack(m *made) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.users--; m.old && m.users == 0 {
		m.adapter.Close()
	}
}

// retire ends an adapter once nobody uses it. The caller holds the lock.
func (a *adapters) retire(m *made) {
	if m.old = true; m.users == 0 {
		m.adapter.Close()
	}
}

// forget ends the adapter of a channel, and with it what that has learned: the
// next one begins anew.
func (a *adapters) forget(channel string) {
	a.keep(func(name string) bool { return name != channel })
}

// keep ends those of channels that are not used any more.
func (a *adapters) keep(used func(channel string) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, m := range a.made {
		if !used(name) {
			delete(a.made, name)
			a.retire(m)
		}
	}
}

// close ends all of them.
func (a *adapters) close() { a.keep(func(string) bool { return false }) }

// same says whether two states of a channel have the same route.
func (c *Channel) same(o *Channel) bool {
	return c.Workers == o.Workers && reflect.DeepEqual(c.Retry, o.Retry)
}
