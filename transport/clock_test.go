package transport_test

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// F1-51: a peer's time is heard if its signature is good and it is on another
// machine: who shares this one's clock confirms nothing.
func TestTheTimeOfPeersIsHeard(t *testing.T) {
	t.Parallel()
	const here = "198.51.100.1:8420"
	for name, c := range map[string]struct {
		from, secret string
		v1, heard    bool
	}{
		"another machine": {"203.0.113.7:1234", "k", false, true},
		"the loopback":    {"127.0.0.1:1234", "k", false, false},
		"this machine":    {"198.51.100.1:1234", "k", false, false},
		"a socket":        {"@", "k", false, false},
		"a stranger":      {"203.0.113.7:1234", "x", false, false},
		"v1":              {"203.0.113.7:1234", "k", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var heard []time.Time
			s := newServer(t, transport.ServerConfig{
				Receiver: &transporttest.Recorder{}, Heard: func(at time.Time) { heard = append(heard, at) },
				Peer: knows(transporttest.Source, transport.Peer{Secrets: []*wire.Secret{secret(t, "k")}, V1: true}),
			})
			body := envelope(t, transporttest.Message(), wire.Seal{Secret: secret(t, c.secret), V1: c.v1})
			post(t, s, wire.MessageType, body, func(r *http.Request) {
				at, err := net.ResolveTCPAddr("tcp", here)
				if err != nil {
					t.Fatal(err)
				}
				*r = *r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(at)))
				r.RemoteAddr = c.from
			})
			if got := len(heard) == 1 && time.Since(heard[0]).Abs() < time.Minute; got != c.heard {
				t.Errorf("heard %v, want %t", heard, c.heard)
			}
		})
	}
}

// F1-99, F1-51: the time in an answer is heard over TLS from another machine
// alone: nobody vouches for a plain one, and this machine's clock confirms nothing.
func TestTheTimeOfAnswersIsHeard(t *testing.T) {
	t.Parallel()
	h := answering(http.StatusOK, nil, "{}")
	plain, secure := httptest.NewServer(h), httptest.NewTLSServer(h)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct {
		url   string
		to    *httptest.Server
		heard bool
	}{
		"another machine, TLS":   {"https://example.com", secure, true}, // the name that httptest has a certificate for
		"this machine, TLS":      {secure.URL, secure, false},
		"another machine, plain": {"http://example.com", plain, false},
	} {
		var heard []time.Time
		client := newClient(t, transport.ClientConfig{
			URL: c.url, Heard: func(at time.Time) { heard = append(heard, at) },
			CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, c.to.Listener.Addr().String())
			},
		})
		if err := client.Ask(t.Context(), "/v1/x", struct{}{}, &struct{}{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := len(heard) == 1 && time.Since(heard[0]).Abs() < time.Hour; got != c.heard {
			t.Errorf("%s: heard %v, want %t", name, heard, c.heard)
		}
	}
}
