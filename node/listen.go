package node

import (
	"context"
	"fmt"
	"log/slog"
	"net"

	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/wire"
)

// newGuard bounds what strangers cost. Twice the largest accepted message fits into what they may hold, and
// into the share of one address.
func newGuard(l config.Limits, log *slog.Logger) *serve.Guard {
	return serve.NewGuard(serve.Limits{
		Connections: l.Connections, Bytes: max(l.Strangers, 2*(l.Payload+wire.Overhead)),
	}, log)
}

// listen takes the address. If it cannot, the error says who may have it.
func listen(ctx context.Context, to string) (net.Listener, error) {
	network, address := "tcp", to
	if path, ok := socket.Parse(address); ok {
		network, address = "unix", path
	}
	l, err := serve.Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", to, err)
	}
	return l, nil
}
