package transport_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
)

// F1-99: a question has the peer's answer, or the code and the words of its
// refusal; what is no answer of ours may have been worked on.
func TestAnswersToQuestionsAreClassified(t *testing.T) {
	t.Parallel()
	const lane = holdfast.LaneFault
	for name, c := range map[string]struct {
		status int
		body   string
		want   holdfast.Failure
		says   string
	}{
		"no answer of ours":  {200, "<html>", holdfast.Failure{Code: "no_ack", MaybeDelivered: true}, "ask /v1/x: the answer is not one of this protocol"},
		"a redirect":         {300, `{"n":7}`, holdfast.Failure{Outcome: lane, Code: "redirect"}, "ask /v1/x: HTTP status 300"},
		"a proxy's refusal":  {403, "<html>", holdfast.Failure{Outcome: lane, Code: "http_403"}, "ask /v1/x: HTTP status 403"},
		"a refusal":          {403, `{"acknowledged":false,"outcome":"lane_fault","code":"revoked","error":"was revoked"}`, holdfast.Failure{Outcome: lane, Code: "revoked"}, "ask /v1/x: was revoked"},
		"an ack of no use":   {500, `{"acknowledged":true}`, holdfast.Failure{Code: "http_500"}, "ask /v1/x: HTTP status 500"},
		"a ready-made reply": {200, `"n"`, holdfast.Failure{Code: "no_ack", MaybeDelivered: true}, "ask /v1/x: the answer is not one of this protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, transport.ClientConfig{URL: listen(t, answering(c.status, nil, c.body))})
			var out struct{ N int }
			err := client.Ask(t.Context(), "/v1/x", struct{}{}, &out)
			if diff := cmp.Diff(classified(t, err), c.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want it to say %q", err, c.says)
			}
		})
	}
	for _, status := range []int{200, 201, 299} {
		client := newClient(t, transport.ClientConfig{URL: listen(t, answering(status, nil, `{"n":7}`))})
		var out struct{ N int }
		if err := client.Ask(t.Context(), "/v1/x", struct{}{}, &out); err != nil || out.N != 7 {
			t.Errorf("status %d: got %+v, %v; want 7", status, out, err)
		}
	}
}

// F1-99: a question that reached nobody says which it was.
func TestAQuestionToNobodyNamesItself(t *testing.T) {
	t.Parallel()
	client := newClient(t, transport.ClientConfig{URL: "http://127.0.0.1:1"}) // tcpmux, which nobody serves
	err := client.Ask(t.Context(), "/v1/x", struct{}{}, nil)
	if f := classified(t, err); f.Outcome != holdfast.Unreachable || !strings.Contains(err.Error(), "ask /v1/x: ") {
		t.Errorf("got %+v, %v; want it unreachable, with the path", f, err)
	}
}
