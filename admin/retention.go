package admin

import (
	"context"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// Retention lists how long the node keeps what, as it is configured.
func (n Node) Retention(context.Context) []api.Kept { return n.Keeps }
