package transport_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

func TestAProbeTellsWhetherTheSecretIsTakenAndDeliversNothing(t *testing.T) {
	t.Parallel()
	old := func(w http.ResponseWriter, _ *http.Request) { // what a receiver without probes answers
		w.Header().Set(transport.HeaderBatch, "max=512, bytes=4194304")
		w.WriteHeader(http.StatusUnsupportedMediaType)
	}
	for name, c := range map[string]struct {
		secrets []string
		v1      bool
		peer    http.HandlerFunc // nil: a server of ours
		status  int
		want    transport.Credentials
		ours    bool
	}{
		"the right secret":        {secrets: []string{"k"}, status: 200, want: transport.CredentialsAccepted, ours: true},
		"a wrong one":             {secrets: []string{"x"}, status: 401, want: transport.CredentialsRefused, ours: true},
		"the first of a pair":     {secrets: []string{"k", "x"}, status: 200, want: transport.CredentialsAccepted, ours: true},
		"the second of a pair":    {secrets: []string{"x", "k"}, status: 200, want: transport.CredentialsAccepted, ours: true},
		"none":                    {status: 401, want: transport.CredentialsRefused, ours: true},
		"v1 only looks":           {secrets: []string{"k"}, v1: true, status: 405, ours: true},
		"a peer without probes":   {secrets: []string{"k"}, peer: old, status: 415, ours: true},
		"a server of a web page":  {secrets: []string{"k"}, peer: says("hello"), status: 200},
		"a server that says code": {secrets: []string{"k"}, peer: says(`{"code":"probe_accepted","outcome":"not_started"}`), status: 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got transporttest.Recorder
			var peer http.Handler = newServer(t, transport.ServerConfig{Receiver: &got})
			if c.peer != nil {
				peer = c.peer
			}
			conf := transport.ClientConfig{URL: listen(t, peer), Source: transporttest.Source, V1: c.v1}
			for _, s := range c.secrets {
				conf.Secrets = append(conf.Secrets, secret(t, s))
			}
			p, err := newClient(t, conf).Probe(t.Context())
			if err != nil || p.Status != c.status || p.Credentials != c.want || p.Peer != c.ours {
				t.Errorf("got %+v, %v; want status %d, credentials %d, a Holdfast %t", p, err, c.status, c.want, c.ours)
			}
			if off := time.Since(p.Date); off < -2*time.Second || off > time.Minute {
				t.Errorf("got the peer's clock %s, %s away", p.Date, off)
			}
			if n := len(got.Got()); n != 0 {
				t.Errorf("the receiver got %d messages, want none", n)
			}
		})
	}
}

// says is a server that answers everything with the same text.
func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func TestAProbeIsNoMessageAndAMessageNoProbe(t *testing.T) {
	t.Parallel()
	var got transporttest.Recorder
	s := newServer(t, transport.ServerConfig{
		Receiver: &got,
		Peer:     knows(transporttest.Source, transport.Peer{Secrets: []*wire.Secret{secret(t, "k")}, V1: true}),
	})
	m := transporttest.Message()
	probe := envelope(t, m, wire.Seal{Secret: secret(t, "k"), Path: wire.ProbePath})
	message := envelope(t, m, wire.Seal{Secret: secret(t, "k")})
	v1 := envelope(t, m, wire.Seal{Secret: secret(t, "k"), V1: true})
	for name, c := range map[string]struct {
		kind string
		body []byte
		want int
	}{
		"a probe whose type is not looked at":   {wire.MessageType, wire.AppendFrame(nil, probe), 400},
		"a recorded probe, sent as a message":   {wire.MessageType, probe, 401},
		"the same in a batch":                   {wire.BatchType, wire.AppendFrame(nil, probe), 401},
		"a recorded message, sent as a probe":   {wire.ProbeType, wire.AppendFrame(nil, message), 401},
		"one of v1, sent as a probe":            {wire.ProbeType, wire.AppendFrame(nil, v1), 401},
		"a probe that is no frame":              {wire.ProbeType, probe, 400},
		"nothing":                               {wire.ProbeType, nil, 400},
		"two probes":                            {wire.ProbeType, wire.AppendFrame(wire.AppendFrame(nil, probe), probe), 400},
		"a frame without an envelope":           {wire.ProbeType, wire.AppendFrame(nil, []byte("{}")), 400},
		"more than an envelope without payload": {wire.ProbeType, make([]byte, wire.Overhead+1), 413},
		"a probe":                               {wire.ProbeType, wire.AppendFrame(nil, probe), 200},
	} {
		if w := post(t, s, c.kind, c.body); w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.want)
		}
	}
	if n := len(got.Got()); n != 0 {
		t.Errorf("the receiver got %d messages, want none", n)
	}
}

// F1-99: a probe that reaches nobody is not made again with another secret.
func TestAProbeThatReachesNobodyIsMadeOnce(t *testing.T) {
	t.Parallel()
	dialed := 0
	c := newClient(t, transport.ClientConfig{
		URL: "http://peer.test", Source: "s", Secrets: []*wire.Secret{secret(t, "k"), secret(t, "x")},
		Dial: func(context.Context, string, string) (net.Conn, error) { dialed++; return nil, net.ErrClosed },
	})
	if _, err := c.Probe(t.Context()); err == nil || dialed != 1 {
		t.Errorf("got %v after %d dials, want an error after one", err, dialed)
	}
}

// Guessing with probes meets the same limit as guessing with messages (OI-18).
func TestRefusedProbesCountAsRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t, transport.ServerConfig{Receiver: &transporttest.Recorder{}})
	body := wire.AppendFrame(nil, envelope(t, transporttest.Message(), wire.Seal{Secret: secret(t, "x"), Path: wire.ProbePath}))
	last := 0
	for range 40 {
		last = post(t, s, wire.ProbeType, body).Code
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("got %d after 40 wrong signatures, want 429", last)
	}
}

func TestAProbeOfSilenceEndsWithItsContext(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := newClient(t, transport.ClientConfig{
			URL: "http://peer.test", Source: "s", Secrets: []*wire.Secret{secret(t, "k")},
			Dial: func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				go io.Copy(io.Discard, there) //nolint:errcheck // accepts, never replies
				return here, nil
			},
		})
		if _, err := c.Probe(ctx); holdfast.AsFailure(err).Code != transport.CodeTimeout {
			t.Errorf("got %v, want %s", err, transport.CodeTimeout)
		}
	})
}
