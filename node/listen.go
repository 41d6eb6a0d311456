package node

import (
	"context"
	"fmt"
	"net"

	"github.com/holdfast-mq/holdfast/internal/serve"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/wire"
)

// newGuard bounds what strangers cost. The largest message that is taken fits
// twice into what they may hold, and into one address's share of it.
func (n *Node) newGuard() *serve.Guard {
	l := n.cfg.Limits
	return serve.NewGuard(serve.Limits{
		Connections: l.Connections, Bytes: max(l.Strangers, 2*(l.Payload+wire.Overhead)),
	}, n.log)
}

// listen takes the address, or says who may have it.
func (n *Node) listen(ctx context.Context) (net.Listener, error) {
	network, address := "tcp", n.cfg.Listen
	if path, ok := socket.Parse(address); ok {
		network, address = "unix", path
	}
	l, err := serve.Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", n.cfg.Listen, err)
	}
	return l, nil
}
