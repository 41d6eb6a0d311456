package transport_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/wire"
)

// Whatever answers in the peer's place may quote the credential it was sent: no
// error makes a copy of it.
func TestAQuotedCredentialIsInNoError(t *testing.T) {
	t.Parallel()
	const secret = "hfs_0123456789abcdefghijklmnopqrstuvwxyz"
	reply := func(id string, o holdfast.Outcome) []byte {
		r := wire.Reply{MessageID: id, Outcome: o.String(), Code: secret, Error: "who is " + secret + "?"}
		if o == holdfast.Succeeded {
			r.Outcome = ""
		}
		return r.AppendTo(nil)
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a refusal": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write(reply("m-1", holdfast.Permanent))
		},
		"no outcome": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(reply("m-1", holdfast.Succeeded))
		},
		"no HTTP": func(w http.ResponseWriter, r *http.Request) {
			if conn, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(conn, r.Header.Get("Authorization")+"\r\n\r\n")
				_ = conn.Close()
			}
		},
		"a batch": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(transport.HeaderBatch, "max=10, bytes=100000")
			if r.Header.Get("Content-Type") != wire.BatchType {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write(reply("m-1", holdfast.Transient))
				return
			}
			w.Header().Set("Content-Type", wire.BatchType)
			for _, id := range []string{"m-1", "m-2"} {
				_, _ = w.Write(wire.AppendFrame(nil, reply(id, holdfast.Permanent)))
			}
		},
	} {
		srv := httptest.NewServer(answer)
		c, err := transport.NewClient(transport.ClientConfig{URL: srv.URL, Source: "plant-7", Credential: func() (string, error) { return secret, nil }})
		if err != nil {
			t.Fatal(err)
		}
		_, single := c.Deliver(t.Context(), holdfast.Message{ID: "m-1", Endpoint: "E"})
		_, probe := c.Probe(t.Context())
		errs := []error{single, c.Ask(t.Context(), "/v1/x", struct{}{}, new(struct{})), probe}
		for _, r := range c.DeliverBatch(t.Context(), []holdfast.Message{{ID: "m-1", Endpoint: "E"}, {ID: "m-2", Endpoint: "E"}}) {
			errs = append(errs, r.Err)
		}
		quoted := 0
		for _, err := range errs {
			if err == nil {
				continue
			}
			if text := err.Error() + holdfast.AsFailure(err).Code; strings.Contains(text, secret[4:20]) {
				t.Errorf("%s: got %s", name, text)
			} else if strings.Contains(text, "[secret]") {
				quoted++
			}
		}
		if quoted < 2 {
			t.Errorf("%s: %d of %v quote the answer", name, quoted, errs)
		}
		c.Close()
		srv.Close()
	}
}
