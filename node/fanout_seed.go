package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
)

// sowHub makes the topics and subscriptions of the seed that do not exist yet. What people have changed
// since stays as it is. A fault of the seed refuses the start.
func (n *Node) sowHub(ctx context.Context, hub *admin.Hub) error {
	if n.cfg.Webhooks.Seed == "" {
		return nil
	}
	seed, err := config.LoadWebhookSeed(n.cfg.Webhooks.Seed, config.Process(nil))
	if err != nil {
		return err
	}
	ctx = admin.As(ctx, "seed", api.Everything())
	service := &admin.Service{Outbox: n.store, Hub: hub, Name: n.cfg.Node.ID, Source: n.cfg.Source(), Logger: n.log}
	absent := admin.Conditions{IfNoneMatch: "*"}
	var faults []config.Fault
	for _, name := range slices.Sorted(maps.Keys(seed.Topics)) {
		spec, err := sown[api.TopicSpec](seed.Topics[name])
		if err == nil {
			_, err = admin.Topics{Service: service}.Put(ctx, name, &spec, absent)
		}
		faults = append(faults, sowFaults(seed, "topics."+name, err)...)
	}
	for _, id := range slices.Sorted(maps.Keys(seed.Subscriptions)) {
		spec, err := sown[api.SubscriptionSpec](seed.Subscriptions[id])
		if err == nil {
			_, err = admin.Subscriptions{Service: service}.Put(ctx, id, &spec, absent)
		}
		if errors.Is(err, holdfast.ErrConflict) { // it was deleted, and people have not decided about its messages
			n.log.WarnContext(ctx, "subscription of the seed not made", slog.String("subscription", id), slog.Any("error", err))
			continue
		}
		faults = append(faults, sowFaults(seed, "subscriptions."+id, err)...)
	}
	if len(faults) > 0 {
		return &config.Error{Faults: faults}
	}
	return nil
}

func sown[T any](text []byte) (spec T, err error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&spec); err != nil {
		err = fmt.Errorf("cannot be read: %w", err)
	}
	return spec, err
}

// sowFaults turns an error into faults with their places in the seed. What exists is none.
func sowFaults(seed *config.WebhookSeed, path string, err error) (list []config.Fault) {
	p, refused := errors.AsType[*api.Problem](err)
	switch {
	case err == nil, refused && p.Status == api.Changed.Status():
		return nil
	case !refused || len(p.Errors) == 0:
		return []config.Fault{seed.Fault(path, "", err.Error())}
	}
	for _, f := range p.Errors {
		list = append(list, seed.Fault(path+"."+f.Field, f.Value, f.Problem))
	}
	return list
}
