package httpapi_test

import (
	"context"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/notify"
)

// vault stands in for that of a node, which package node tests.
type vault struct{}

func (vault) Seal(c, _ notify.Channel) (notify.Channel, error) { return c, nil }

func (vault) Keys(context.Context) (api.KeyList, error) {
	return api.KeyList{Keys: []api.Key{{ID: "3d8b42579421", State: "newest", Values: 1}}}, nil
}

func (vault) Rotate(_ context.Context, after string, limit int) (api.KeyRotation, error) {
	if after == "" {
		return api.KeyRotation{Looked: limit, Next: "channel/mail"}, nil
	}
	return api.KeyRotation{}, nil
}
