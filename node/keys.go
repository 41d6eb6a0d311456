package node

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/keyring"
)

// vault is the secrets of a node that came by the API.
type vault struct {
	*folder

	holders []keyring.Holder // of all tables with sealed secrets
}

var _ admin.Vault = (*vault)(nil)

// Keys implements admin.Vault.
func (v *vault) Keys(ctx context.Context) (list api.KeyList, err error) {
	ring := v.ring.Load()
	census, err := ring.Count(ctx, v.holders)
	if err != nil {
		return list, err
	}
	list = api.KeyList{Keys: []api.Key{}, Broken: census.Broken, Problems: problemsOf(census.Problems)}
	add := func(id, state string) {
		list.Keys = append(list.Keys, api.Key{ID: id, State: state, Values: census.Values[id]})
		delete(census.Values, id)
	}
	if id := ring.Newest(); id != "" {
		add(id, "newest")
	}
	for _, id := range ring.Former() {
		add(id, "former")
	}
	delete(census.Values, "") // no sealed values: they are among the problems
	for _, id := range slices.Sorted(maps.Keys(census.Values)) {
		add(id, "missing")
	}
	return list, nil
}

// Rotate implements admin.Vault.
func (v *vault) Rotate(ctx context.Context, after string, limit int) (api.KeyRotation, error) {
	p, err := v.ring.Load().Rotate(ctx, v.holders, after, limit)
	return api.KeyRotation{Looked: p.Looked, Resealed: p.Resealed, Next: p.Next, Problems: problemsOf(p.Problems)}, err
}

func problemsOf(list []keyring.Problem) (out []api.KeyProblem) {
	for _, p := range list {
		out = append(out, api.KeyProblem(p))
	}
	return out
}

// take takes over the keys of a configuration.
func (f *folder) take(k *config.Keyring) error {
	ring, err := k.Ring()
	if err == nil {
		f.ring.Store(ring)
	}
	return err
}

// rekey takes over the keys at a reload.
func (n *Node) rekey(ctx context.Context, now, c *config.Config) {
	const setting = "secrets"
	if now.Secrets.Equal(&c.Secrets) {
		return
	}
	if err := n.secrets.take(&c.Secrets); err != nil {
		n.lines.told.ErrorContext(ctx, "not reloaded", slog.String("setting", setting), slog.Any("error", err))
		return
	}
	now.Secrets = c.Secrets
	n.lines.told.InfoContext(ctx, "reloaded", slog.String("setting", setting))
}
