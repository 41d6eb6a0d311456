package node

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/adapter/httpcall/call"
	"github.com/holdfast-mq/holdfast/adapter/sqlwrite/write"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/setting"
)

// DestinationKinds returns the kinds of destinations that are not peers.
func DestinationKinds() []adapter.Kind {
	return []adapter.Kind{call.Kind(), write.Kind()}
}

// shownOfRefusal is how much of a target's refusal people see, in bytes.
const shownOfRefusal = 300

// foreignWait is how long a request waits by default for the outcome at a destination that is not a peer
// (SF-03: answer at once what can be answered at once).
const foreignWait = 10 * time.Second

// foreign makes the deliverer of a destination that is not a peer.
func foreign(all renewals, name string, d config.Destination, c *config.Config) (adapter.Deliverer, error) {
	create := func(d config.Destination) (adapter.Deliverer, error) { return open(d, c) }
	if d.Foreign.Kind().Renewed {
		return renewable(all, name, d, create)
	}
	return create(d)
}

func open(d config.Destination, c *config.Config) (adapter.Deliverer, error) {
	o := adapter.Options{Own: database(c.Data), Connections: d.Concurrency, Excerpt: shownOfRefusal}
	if c.Audit.Content == config.ContentSummary && !c.Audit.Off {
		o.Answer = audit.MaxErrorSummary
	}
	return d.Foreign.Open(o)
}

// checkForeign checks destinations as a start would make them, without connecting. A fault names the key that
// the kind blames.
func checkForeign(c *config.Config) (faults []config.Fault) {
	for _, name := range slices.Sorted(maps.Keys(c.Destinations)) {
		d := c.Destinations[name]
		if d.Foreign == nil || d.Foreign.Kind().Blamed == "" {
			continue
		}
		to, err := open(d, c)
		if err == nil {
			to.Close()
			continue
		}
		k := d.Foreign.Kind()
		fault := config.Fault{Path: setting.Join("destinations", name) + "." + k.Key.Name + "." + k.Blamed, Problem: err.Error(), Err: err}
		if field, ok := errors.AsType[*holdfast.FieldError](err); ok {
			fault.Problem = field.Problem
		}
		faults = append(faults, fault)
	}
	return faults
}
