package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/transport"
)

// renewed is a deliverer that a reload replaces by one with other secrets. Attempts in hand end with the
// secrets that they began with.
type renewed[D adapter.Deliverer] struct{ now atomic.Pointer[D] }

func (r *renewed[D]) Deliver(ctx context.Context, m holdfast.Message) (holdfast.Receipt, error) {
	return (*r.now.Load()).Deliver(ctx, m)
}

func (r *renewed[D]) Close() { (*r.now.Load()).Close() }

// renewedPeer also takes batches.
type renewedPeer struct {
	*renewed[*transport.Client]
}

var _ holdfast.BatchDeliverer = renewedPeer{}

func (r renewedPeer) BatchSize() int { return (*r.now.Load()).BatchSize() }

func (r renewedPeer) DeliverBatch(ctx context.Context, ms []holdfast.Message) []holdfast.Result {
	return (*r.now.Load()).DeliverBatch(ctx, ms)
}

// renewals holds, by destination name, the functions that take over new secrets.
type renewals map[string]func(config.Destination) error

// renewable makes the deliverer of a destination, and registers how to replace it.
func renewable[D adapter.Deliverer](all renewals, name string, d config.Destination, create func(config.Destination) (D, error)) (*renewed[D], error) {
	first, err := create(d)
	if err != nil {
		return nil, err
	}
	r := &renewed[D]{}
	r.now.Store(&first)
	all[name] = func(d config.Destination) error {
		next, err := create(d)
		if err == nil {
			(*r.now.Swap(&next)).Close()
		}
		return err
	}
	return r, nil
}

// renew takes over the secrets of destinations in which nothing else differs. A destination that is held
// because of its secrets goes on with its next probe.
func (all renewals) renew(ctx context.Context, now, c *config.Config, log *slog.Logger) {
	renewed := now.Renewed(c)
	for _, name := range slices.Sorted(maps.Keys(renewed)) {
		setting := renewed[name]
		renewal, ok := all[name]
		if !ok {
			continue // its kind cannot take new secrets
		}
		if err := renewal(c.Destinations[name]); err != nil {
			log.ErrorContext(ctx, "not reloaded", slog.String("setting", setting), slog.Any("error", err))
			continue
		}
		now.Destinations = maps.Clone(now.Destinations) // others read the node's own map
		now.Destinations[name] = c.Destinations[name]
		log.InfoContext(ctx, "reloaded", slog.String("setting", setting))
	}
}
