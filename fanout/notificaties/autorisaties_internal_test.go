package notificaties

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// hanging is an authority that does not answer while it hangs.
type hanging struct {
	Authority

	hangs bool
	asked int
}

func newHanging() *hanging {
	h := &hanging{}
	h.Get = func(ctx context.Context, at, _ string) (int, []byte, error) {
		if h.asked++; h.hangs {
			<-ctx.Done()
			return 0, nil, ctx.Err()
		}
		u, err := url.Parse(at)
		return http.StatusOK, fmt.Appendf(nil, `{"results":[{"clientIds":[%q],"autorisaties":[{"component":"nrc","scopes":[%q]}]}]}`, u.Query().Get("clientIds"), Publish), err
	}
	return h
}

// want asks for the rights of a client, which must come after a time.
func (h *hanging) want(t *testing.T, client string, known bool, took time.Duration) {
	t.Helper()
	begin := time.Now()
	scopes, _, err := h.rights(t.Context(), client)
	if spent := time.Since(begin); spent != took || slices.Contains(scopes, Publish) != known || (err == nil) != known {
		t.Errorf("%s: %v, %v after %v, want them %v, after %v", client, scopes, err, spent, known, took)
	}
}

// An authority that hangs delays requests for a moment, and only who was never known is refused. A callback does
// not change that.
func TestAnAuthorityThatHangs(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		h := newHanging()
		h.want(t, "zrc", true, 0)
		h.want(t, "zrc", true, 0)
		h.hangs = true
		h.want(t, "new", false, probeTime)
		h.want(t, "new", false, 0)
		h.forget()
		h.want(t, "zrc", true, patience)
		<-time.After(probeTime)
		h.want(t, "zrc", true, 0)
		<-time.After(askAgain)
		if h.asked != 3 {
			t.Errorf("it was asked %d times", h.asked)
		}
		h.want(t, "zrc", true, patience)
		<-time.After(rightsStale)
		h.want(t, "zrc", false, probeTime)
		h.hangs = false
		<-time.After(askAgain)
		h.want(t, "zrc", true, 0)
		h.want(t, "new", true, 0)
	})
}
