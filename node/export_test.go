package node

import (
	"context"
	"net"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// Stands is what turns health red.
func Stands(s holdfast.LaneStatus) bool { return stands(s) }

// AuthRequired asks as if the node listened on that address, without opening
// it: tests listen on the loopback only.
func AuthRequired(ctx context.Context, address net.Addr, db *sqlite.DB, insecure bool) (bool, error) {
	n := &Node{cfg: &config.Config{Listen: address.String(), Data: "DATA", Insecure: insecure}, listener: at{address}, store: db}
	return n.authRequired(ctx)
}

// ListenSocket makes a Unix socket.
func ListenSocket(ctx context.Context, path string) (net.Listener, error) {
	return listenSocket(ctx, path)
}

type at struct{ address net.Addr }

func (a at) Addr() net.Addr          { return a.address }
func (at) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (at) Close() error              { return nil }
