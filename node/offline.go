package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// Offline serves the operator API on the store of a node that does not run, or of nodes that share one. It
// listens on a socket in a folder that only this user can enter, until stop is called. It delivers nothing.
// It is the way to create the first token of a node that other machines can reach.
func Offline(ctx context.Context, c *config.Config) (url string, stop func() error, err error) {
	own := *c
	own.Node = config.Node{Source: c.Source()} // it may run next to the node with that id
	db, _, err := openStore(ctx, &own, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", nil, err
	}
	kept := nodestore.New(db, nil)
	operators := &httpapi.Server{Service: &admin.Service{
		Outbox: db, Enqueuer: db, Inbox: db, Tokens: kept.Tokens, People: kept.People, Name: "offline",
		Destinations: func() []admin.Destination { return nil },
	}}
	handler, err := operators.Handler()
	if err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	dir, err := os.MkdirTemp("", "holdfast") // a socket's path must be short; the data folder's may be long
	if err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	path := filepath.Join(dir, "api")
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("listen: %w", err), os.RemoveAll(dir), db.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with stop
	}()
	return socket.URL(path), func() error {
		err := server.Close()
		<-served
		return errors.Join(err, os.RemoveAll(dir), db.Close())
	}, nil
}
