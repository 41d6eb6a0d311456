package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

// callLog keeps what it is told.
type callLog struct{ lines []string }

func (c *callLog) Append(_ context.Context, entries ...holdfast.Entry) error {
	for i := range entries {
		e := &entries[i]
		c.lines = append(c.lines, fmt.Sprint(e.Kind, " ", e.Code, " ", e.Subject, " ", e.Actor, " ", e.Outcome))
	}
	return holdfast.CheckEntries(entries)
}

// Each call that may change something is told of, with who asked and what came of it; what
// is only looked at, and what is sent, is not.
func TestCallsAreToldOf(t *testing.T) {
	t.Parallel()
	log := &callLog{}
	f := serve(t, func(s *httpapi.Server) { s.Calls = log })
	for _, c := range []call{
		{method: http.MethodGet, path: "/v1/tokens"},
		{method: http.MethodPost, path: "/v1/messages", body: `{"destination": "inventory", "endpoint": "E", "payload": {}}`},
		{method: http.MethodPost, path: "/v1/tokens", body: `{"name": "ci", "role": "read"}`},
		{method: http.MethodDelete, path: "/v1/tokens/ci"},
		{method: http.MethodDelete, path: "/v1/tokens/ci"},
		{method: http.MethodPost, path: "/v1/sites/plant-7/messages/m/discard", body: `{}`},
	} {
		f.do(t, c)
	}
	want := []string{
		"called create-token  local delivered", "called delete-token ci local delivered", "called delete-token ci local permanent",
		"called discard-site-message plant-7/m local permanent",
	}
	if d := cmp.Diff(log.lines, want); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
}
