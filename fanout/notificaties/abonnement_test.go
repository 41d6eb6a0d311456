package notificaties_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
	"github.com/holdfast-mq/holdfast/internal/serve"
)

// Whatever a client sends, it is told a bounded number of faults, which quote little of it.
func TestFaultsAreBounded(t *testing.T) {
	t.Parallel()
	d := zaken(t, nil)
	var many []string
	for i := range 20_000 {
		many = append(many, fmt.Sprintf(`"a%d":{}`, i))
	}
	for _, kenmerken := range []string{strings.Join(many, ","), `"` + strings.Repeat("k", 500_000) + `":{}`} {
		got := d.post("notificaties", message(kenmerken))
		var p notificaties.Problem
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != http.StatusBadRequest || len(p.InvalidParams) == 0 || len(got.body) > 10_000 || len(p.Error()) > 10_000 {
			t.Errorf("got %d, %d faults, %d bytes, %v", got.status, len(p.InvalidParams), len(got.body), err)
		}
	}
	const ones = `{"callbackUrl":"http://127.0.0.1/","auth":"x","kanalen":[%s],"cloudeventFilters":[%[1]s]}`
	long := strings.TrimSuffix(strings.Repeat("1,", fanout.MaxGroups+1), ",")
	d.post("abonnement", fmt.Sprintf(ones, long)).want(t, http.StatusBadRequest, "cloudeventFilters/max_length", "kanalen/max_length")
}

// While a foreign server is asked, the body of the request takes no room.
func TestNoRoomIsHeldWhileOthersAreAsked(t *testing.T) {
	t.Parallel()
	const size = 1000
	room := serve.NewRoom(size)
	free := func(ctx context.Context) int {
		leave, ok := room.Hold(ctx, size, size)
		if !ok {
			return http.StatusInsufficientStorage
		}
		leave()
		return http.StatusOK
	}
	d := open(t, func(s *notificaties.Server) {
		s.Room, s.Unprotected = room, true
		s.Seal = func(_ *fanout.Subscription, secret string) (string, error) { return secret, nil }
		s.Check = func(*fanout.Subscription) error { return nil }
		s.Probe = func(ctx context.Context, _ *fanout.Subscription, _ []byte) (int, error) { return free(ctx), nil }
		s.Fetch = func(ctx context.Context, _, _ string) (int, []byte, error) { return free(ctx), nil, nil }
	})
	d.post("kanaal", `{"naam":"zaken","documentatieLink":"https://example.nl/"}`).want(t, http.StatusCreated)
	d.post("abonnement", `{"callbackUrl":"https://example.nl/","auth":"x"}`).want(t, http.StatusCreated)
}

// 20: a callback that takes what has no Authorization is refused, but for those of webhook.site, which cannot be protected.
func TestWebhookSiteNeedsNoProtection(t *testing.T) {
	t.Parallel()
	probes := 0
	d := open(t, func(s *notificaties.Server) {
		s.Seal = func(_ *fanout.Subscription, secret string) (string, error) { return secret, nil }
		s.Check = func(*fanout.Subscription) error { return nil }
		s.Probe = func(context.Context, *fanout.Subscription, []byte) (int, error) {
			probes++
			return http.StatusNoContent, nil
		}
	})
	d.post("abonnement", `{"callbackUrl":"https://webhook.site/1","auth":"x"}`).want(t, http.StatusCreated)
	if probes != 1 {
		t.Errorf("%d probes of webhook.site, want the one that must be accepted", probes)
	}
	for _, host := range []string{"example.nl", "webhook.site.example.nl", "www.webhook.site"} {
		d.post("abonnement", `{"callbackUrl":"https://`+host+`/","auth":"x"}`).want(t, http.StatusBadRequest, "callbackUrl/no-auth-on-callback-url")
	}
}
