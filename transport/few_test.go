package transport_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// F1-03: what fails here for anybody who asks is not written of once for each
// request.
func TestOurOwnFailuresFillNoLog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conf   transport.ServerConfig
		status int
		line   string
	}{
		"callers cannot be looked up": {
			transport.ServerConfig{Authenticate: func(*http.Request) (string, error) { return "", errors.New("disk I/O error") }},
			http.StatusServiceUnavailable, "caller not looked up",
		},
		"a panic": {
			transport.ServerConfig{Peer: func(string) (transport.Peer, bool) { panic("broken") }},
			http.StatusInternalServerError, "receiver panicked",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			racetest.Bubble(t, func(t *testing.T) {
				var l logged
				c.conf.Receiver, c.conf.Logger = &transporttest.Recorder{}, l.logger()
				s, err := transport.NewServer(c.conf)
				if err != nil {
					t.Fatal(err)
				}
				body := envelope(t, transporttest.Message(), wire.Seal{})
				for range 500 {
					if w := post(t, s, wire.MessageType, body); w.Code != c.status {
						t.Fatalf("got %d %s", w.Code, w.Body)
					}
				}
				if r := l.records(t); len(r) != 200 || r[0]["msg"] != c.line {
					t.Errorf("got %d lines, the first of them %v; want 200", len(r), r[0])
				}
			})
		})
	}
}
