package webhook

import (
	"context"
	"net"

	"github.com/holdfast-mq/holdfast/internal/exchange"
)

// NewOver returns a Sender whose connections dial opens, without a guard.
func NewOver(dial func(ctx context.Context, network, address string) (net.Conn, error)) *Sender {
	s := &Sender{}
	s.open = exchange.Settings{Dial: dial, Idle: idle, IdleAll: idleAll, Uses: &s.uses}
	s.usual = exchange.NewClient(s.open)
	return s
}
