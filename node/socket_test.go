//go:build unix

package node_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/socket"
	"github.com/holdfast-mq/holdfast/node"
)

// socketPath is short enough for every system.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// on parses a configuration of a node that listens on the socket.
func on(t *testing.T, path, text string) *config.Config {
	t.Helper()
	c := parse(t, text)
	c.Listen = socket.URL(path)
	return c
}

// refusedToServe wants a node not to start.
func refusedToServe(t *testing.T, c *config.Config, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := node.Serve(ctx, c, node.Options{Ready: func(string) { cancel() }})
	if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "listen on unix:///") {
		t.Errorf("got %v, want it to hold %q", err, want)
	}
}

// OI-11: two nodes that know each other by the paths of sockets.
func TestTwoNodesOverUnixSockets(t *testing.T) {
	t.Parallel()
	warehouse, shop := socketPath(t), socketPath(t)
	receiver := on(t, warehouse, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Counted: {keep: true}}}")
	serve(t, receiver)
	sender := on(t, shop, fmt.Sprintf("destinations: {warehouse: {url: %q, secret: {env: SECRET}}}", socket.URL(warehouse)))
	sender.Node.ID = "shop"
	serve(t, sender)
	from, err := client.New(socket.URL(shop), "")
	if err != nil {
		t.Fatal(err)
	}
	const messages = 40
	for n := range messages {
		if _, err := from.Messages().Send(t.Context(), api.NewMessage{ID: fmt.Sprintf("count-%d", n), Destination: "warehouse", Endpoint: "Counted"}); err != nil {
			t.Fatal(err)
		}
	}
	to, err := client.New(socket.URL(warehouse), "")
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		page, err := to.Inbox().List(t.Context(), client.InboxQuery{Limit: 2 * messages})
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) == messages {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d messages within 30 s, want %d", len(page.Messages), messages)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestASocketIsMadeAndRemoved(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	t.Run("while the node runs", func(t *testing.T) {
		if got := serve(t, on(t, path, "")); got != "http://"+path {
			t.Errorf("got address %s, want %s", got, path)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o660 {
			t.Fatalf("got %v, %v; want a socket with mode 0660", info, err)
		}
		refusedToServe(t, on(t, path, ""), "another program listens there")
		if _, err := os.Stat(path); err != nil {
			t.Errorf("after a second node was refused: %v", err)
		}
	})
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("after the stop: got %v, want no file", err)
	}
}

func TestTheSocketOfADeadProcessIsReplaced(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	serve(t, on(t, path, ""))
	c, err := client.New(socket.URL(path), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Destinations().List(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNoSocketIsLeftAlone(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusedToServe(t, on(t, path, ""), "is not a socket")
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
		t.Errorf("got %q, %v; want the file untouched", text, err)
	}
	link := socketPath(t)
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	refusedToServe(t, on(t, link, ""), "is not a socket")
	refusedToServe(t, on(t, filepath.Join(filepath.Dir(path), "none", "s"), ""), "does not exist; make it")
}
