package transport_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

func TestClientSettingsAreChecked(t *testing.T) {
	t.Parallel()
	dial := func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }
	for name, c := range map[string]struct {
		conf transport.ClientConfig
		want []string
	}{
		"no url":            {transport.ClientConfig{}, []string{"url"}},
		"no scheme":         {transport.ClientConfig{URL: "peer:80"}, []string{"url"}},
		"another scheme":    {transport.ClientConfig{URL: "ftp://peer"}, []string{"url", "ftp"}},
		"a password":        {transport.ClientConfig{URL: "https://a:hidden@peer"}, []string{"url"}},
		"a query":           {transport.ClientConfig{URL: "https://peer?a=b"}, []string{"url"}},
		"no host":           {transport.ClientConfig{URL: "https:///x"}, []string{"url"}},
		"no socket":         {transport.ClientConfig{URL: "unix://"}, []string{"url"}},
		"unreadable":        {transport.ClientConfig{URL: "https://hidden%"}, []string{"url"}},
		"v1 without secret": {transport.ClientConfig{URL: "https://peer", V1: true}, []string{"v1"}},
		"no certificate":    {transport.ClientConfig{URL: "https://peer", CA: []byte("x")}, []string{"ca"}},
		"two ways to dial":  {transport.ClientConfig{URL: "unix:///s", Dial: dial}, []string{"dial"}},
		"all at once":       {transport.ClientConfig{MaxBatch: -1, MaxReply: -1, Concurrency: -1, DialTimeout: -1}, []string{"url", "maxBatch", "maxReply", "concurrency", "dialTimeout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transport.NewClient(c.conf)
			if err == nil {
				t.Fatal("got no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want it to name %s", err, want)
				}
			}
			if strings.Contains(err.Error(), "hidden") {
				t.Errorf("got %v, which shows a password", err)
			}
		})
	}
}

func TestServerSettingsAreChecked(t *testing.T) {
	t.Parallel()
	r := &transporttest.Recorder{}
	for name, c := range map[string]struct {
		conf transport.ServerConfig
		want string
	}{
		"no receiver":       {transport.ServerConfig{Insecure: true}, "receiver"},
		"nobody could send": {transport.ServerConfig{Receiver: r}, "peer"},
		"two minds":         {transport.ServerConfig{Receiver: r, Insecure: true, Peer: knows("a", transport.Peer{})}, "insecure"},
		"a negative":        {transport.ServerConfig{Receiver: r, Insecure: true, MaxBatch: -1}, "maxBatch"},
	} {
		if _, err := transport.NewServer(c.conf); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to name %s", name, err, c.want)
		}
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	var path string
	url := listen(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { path = r.URL.EscapedPath() }))
	for suffix, want := range map[string]string{
		"": wire.ReceivePath, "/": wire.ReceivePath, wire.ReceivePath: wire.ReceivePath, "/a/b%2Fc/": "/a/b%2Fc" + wire.ReceivePath,
	} {
		newClient(t, transport.ClientConfig{URL: url + suffix}).Deliver(t.Context(), transporttest.Message()) //nolint:errcheck // only the path counts
		if path != want {
			t.Errorf("%q: got path %s, want %s", suffix, path, want)
		}
	}
}
