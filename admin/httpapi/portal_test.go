package httpapi_test

import (
	"crypto/sha256"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/racetest"
)

// subscriber makes a token as a node with subscriptions does.
func (f *fixture) subscriber(tb testing.TB, name, rights string) map[string]string {
	tb.Helper()
	secret := api.NewSecret()
	if err := f.store.CreateToken(tb.Context(), name, rights, time.Hour, sha256.Sum256([]byte(secret)), ""); err != nil {
		tb.Fatal(err)
	}
	return bearer(secret)
}

// Issue 15: a subscriber uses these routes and no others, whatever there is on the node; the others are
// refused, and that is told.
func TestASubscriberUsesItsOwnRoutesOnly(t *testing.T) {
	t.Parallel()
	log := &callLog{}
	f := serve(t, locked, mounted, func(s *httpapi.Server) { s.Calls = log })
	looks := f.subscriber(t, "shop-1", `{"rights":["portal"],"destinations":["subscription:shop"]}`)
	pauses := f.subscriber(t, "shop-2", `{"rights":["portal","portal-pause"],"destinations":["subscription:shop"]}`)
	var open, withPause []string
	refused := 0
	for route, op := range f.operations(t) {
		method, path, _ := strings.Cut(route, " ")
		lets := map[string]bool{}
		for name, header := range map[string]map[string]string{"shop-1": looks, "shop-2": pauses} {
			told := len(log.lines)
			w := f.do(t, call{method: method, path: path, header: header})
			if w.Code == http.StatusTooManyRequests { // its rate is another test: a new door has not seen it
				f.handler, _ = f.Handler()
				w = f.do(t, call{method: method, path: path, header: header})
			}
			if lets[name] = w.Code != http.StatusForbidden; lets[name] {
				continue
			}
			refused++
			if len(log.lines) == told {
				t.Errorf("%s is refused to %s, and nobody is told", route, name)
			}
		}
		if lets["shop-1"] {
			open = append(open, route)
		} else if lets["shop-2"] {
			withPause = append(withPause, route)
		}
		if op.right == api.Admin && lets["shop-1"] && !strings.HasSuffix(path, "/rotate-secret") {
			t.Errorf("%s is for administrators", route)
		}
	}
	slices.Sort(open)
	slices.Sort(withPause)
	if d := cmp.Diff(open, []string{
		"GET /v1/messages", "GET /v1/messages/x", "GET /v1/subscriptions", "GET /v1/subscriptions/x", "GET /v1/tokens/self",
		"POST /v1/events/x/resend", "POST /v1/subscriptions/x/rotate-secret", "POST /v1/subscriptions/x/test",
	}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	if d := cmp.Diff(withPause, []string{"POST /v1/subscriptions/x/pause", "POST /v1/subscriptions/x/resume"}); d != "" {
		t.Errorf("with portal-pause (-got +want):\n%s", d)
	}
	if refused < 100 {
		t.Errorf("%d refusals only", refused)
	}
}

// A token of a subscriber has a rate. Others have none.
func TestASubscriberHasARate(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		f := serve(t, locked)
		ask := func(header map[string]string, n int) (tooMany int) {
			for range n {
				w := f.do(t, call{method: "GET", path: "/v1/tokens/self", header: header})
				if w.Code == http.StatusTooManyRequests {
					tooMany++
					if w.Header().Get("Retry-After") != "1" {
						t.Errorf("got %v", w.Header())
					}
				}
			}
			return tooMany
		}
		one := f.subscriber(t, "one", `{"rights":["portal"],"destinations":["subscription:shop"]}`)
		two := f.subscriber(t, "two", `{"rights":["portal"],"destinations":["subscription:shop"]}`)
		if got := []int{ask(one, 100), ask(two, 60), ask(f.token(t, `{"name":"boss","role":"admin"}`), 100)}; !slices.Equal(got, []int{40, 0, 0}) {
			t.Errorf("refused for their rate: %v", got)
		}
		time.Sleep(10 * time.Second)
		if got := ask(one, 100); got != 80 {
			t.Errorf("refused after 10 s: %d", got)
		}
	})
}
