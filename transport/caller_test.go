package transport_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
	"github.com/holdfast-mq/holdfast/transport/transporttest"
	"github.com/holdfast-mq/holdfast/wire"
)

// authenticating is a server whose callers are known by their credential.
func authenticating(t *testing.T, r holdfast.Receiver, refused *[]transport.Refused) *transport.Server {
	t.Helper()
	s, err := transport.NewServer(transport.ServerConfig{
		Receiver: r, MaxPayload: 1000, Refused: func(r transport.Refused) { *refused = append(*refused, r) },
		Authenticate: func(r *http.Request) (string, error) {
			switch r.Header.Get("Authorization") {
			case "Bearer good":
				return transporttest.Source, nil
			case "Bearer unlucky":
				return "", errors.New("the store is away")
			}
			return "", holdfast.ErrNotFound
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// F1-99: a caller without a good credential reaches nobody; one that cannot be
// looked up comes again; and nobody writes as somebody else.
func TestCallersAreKnownByTheirCredential(t *testing.T) {
	t.Parallel()
	m := transporttest.Message()
	stranger, large := m, m
	stranger.Source = "stranger"
	large.Payload = []byte(`"` + strings.Repeat("x", 1000) + `"`)
	challenge, later := `Bearer realm="holdfast"`, "5"
	for name, c := range map[string]struct {
		credential string
		m          holdfast.Message
		want       answered
	}{
		"a good one":      {"good", m, answered{status: 200, outcome: "delivered"}},
		"a wrong one":     {"bad", m, answered{401, "lane_fault", "credential_refused", "", challenge, "", 1}},
		"no answer":       {"unlucky", m, answered{503, "not_started", "unavailable", "", "", later, 0}},
		"another source":  {"good", stranger, answered{403, "permanent", "wrong_site", "permanent", "", "", 1}},
		"a large payload": {"good", large, answered{413, "permanent", "too_large", "too_large", "", "", 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refused []transport.Refused
			r := &transporttest.Recorder{}
			s := authenticating(t, r, &refused)
			w := post(t, s, wire.MessageType, envelope(t, c.m, wire.Seal{}), func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+c.credential) })
			var d wire.Decoder
			reply, err := d.DecodeReply(w.Body.Bytes())
			if err != nil {
				t.Fatal(err)
			}
			got := answered{
				w.Code, reply.Outcome, reply.Code, string(reply.Reason),
				w.Header().Get("WWW-Authenticate"), w.Header().Get("Retry-After"), len(refused),
			}
			if diff := cmp.Diff(got, c.want, cmp.AllowUnexported(answered{})); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if n := len(r.Got()); (n == 1) != (c.want.status == 200) {
				t.Errorf("the receiver got %d messages", n)
			}
		})
	}
}

// answered is what a caller gets, and how many refusals were counted.
type answered struct {
	status                               int
	outcome, code, reason, challenge, at string
	refused                              int
}

// F1-99: guesses at credentials are slowed down as those at signatures are, and
// a good one always passes.
func TestManyWrongCredentialsAreSlowedDown(t *testing.T) {
	t.Parallel()
	var refused []transport.Refused
	s := authenticating(t, &transporttest.Recorder{}, &refused)
	body := envelope(t, transporttest.Message(), wire.Seal{})
	try := func(credential string) (int, http.Header) {
		w := post(t, s, wire.MessageType, body, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+credential) })
		return w.Code, w.Header()
	}
	code, h := try("bad")
	for n := 0; n < 40 && code == http.StatusUnauthorized; n++ {
		code, h = try("bad")
	}
	if code != 429 || h.Get("Retry-After") != "30" || h.Get("Connection") != "close" || h.Get("WWW-Authenticate") != "" {
		t.Errorf("after 40 guesses: got %d, %v; want 429, Retry-After 30 and the end of the connection", code, h)
	}
	if code, _ := try("good"); code != 200 {
		t.Errorf("a good credential: got %d, want 200", code)
	}
}
