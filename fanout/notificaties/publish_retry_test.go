package notificaties_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// received waits until a subscriber has so many requests.
func (d *door) received(r *stub, n int) {
	d.t.Helper()
	waittest.Until(d.t, fmt.Sprint(n, " requests"), func() bool { return len(r.got()) >= n })
}

// 38, 40 and 41: a subscriber that refuses is asked again, five times in all, and then the message parks with what was
// said last. All attempts have one id. Who is healthy is asked once.
func TestASubscriberThatRefuses(t *testing.T) {
	t.Parallel()
	d, bad, good := zaken(t, nil), subscriber(t, `{"error": "`+strings.Repeat("x", 1502)+`"}`, 404), subscriber(t, "")
	wavering := subscriber(t, `{"error":"not now"}`, 400, 400, 204)
	d.abonnement("bad", bad.URL, on(nil), nil)
	d.abonnement("good", good.URL, on(nil), nil)
	d.abonnement("wavering", wavering.URL, on(nil), nil)
	d.post("notificaties", message(bron)).want(t, http.StatusCreated)
	m := d.ended("bad", holdfast.Parked, 1)[0]
	if len(bad.got()) != 5 || m.Tries != 5 || m.LastCode != "http_404" || !strings.Contains(m.LastError, `404: {"error": "xxx`) || len(m.LastError) > 1000 {
		t.Errorf("41: %d requests, %d tries, %s, %q", len(bad.got()), m.Tries, m.LastCode, m.LastError)
	}
	for _, h := range bad.got() {
		if h.header.Get("Webhook-Id") != string(m.Message.ID) || h.body != bad.got()[0].body {
			t.Errorf("41: %+v", h)
		}
	}
	d.ended("good", holdfast.Delivered, 1)
	if n := len(good.got()); n != 1 {
		t.Errorf("41: who is healthy got %d", n)
	}
	w := d.ended("wavering", holdfast.Delivered, 1)[0]
	record, err := d.store.Get(t.Context(), w.Message.ID)
	if err != nil || record.Tries != 3 || len(wavering.got()) != 3 || !strings.Contains(fmt.Sprint(record.History), "not now") {
		t.Errorf("38: %+v, %v", record, err)
	}
}

// 42: the delays of a schedule.
func TestTheDelays(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for schedule, want := range map[fanout.Schedule][]time.Duration{
		{Factor: 4 * s, Base: 4, Cap: 28 * s, Retries: 4}:     {4 * s, 16 * s, 28 * s, 28 * s},
		{Factor: 25 * s, Base: 4, Cap: 52000 * s, Retries: 7}: {25 * s, 100 * s, 400 * s, 1600 * s, 6400 * s, 25600 * s, 52000 * s},
		{Factor: 25 * s, Base: 2, Cap: 52000 * s, Retries: 7}: {25 * s, 50 * s, 100 * s, 200 * s, 400 * s, 800 * s, 1600 * s},
		{Factor: 25 * s, Base: 3, Cap: 52000 * s, Retries: 7}: {25 * s, 75 * s, 225 * s, 675 * s, 2025 * s, 6075 * s, 18225 * s},
	} {
		at, lines := time.Duration(0), strings.Split(strings.TrimSpace(schedule.Policy().Timetable(20)), "\n")
		if len(lines) < len(want)+1 {
			t.Fatalf("%+v: %q", schedule, lines)
		}
		for i, d := range want {
			at += d
			if !strings.HasSuffix(lines[i+1], fmt.Sprintf("after %s (+%s)", d, at)) && !strings.Contains(lines[i+1], fmt.Sprintf("after %s ", d)) {
				t.Errorf("%+v: retry %d is %q, want after %s", schedule, i, lines[i+1], d)
			}
		}
	}
}

// 45: ways to authorize. A token of OAuth 2.0 serves several deliveries, and a JWT is minted for each.
func TestWaysToAuthorize(t *testing.T) {
	t.Parallel()
	d := zaken(t, nil)
	var tokens, refused atomic.Int64
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "us" || password != "letmein" {
			w.WriteHeader(http.StatusUnauthorized)
			refused.Add(1)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"access_token":"t%d","expires_in":3600}`, tokens.Add(1))
	}))
	t.Cleanup(endpoint.Close)
	all := map[string]*fanout.Authorization{
		"none":    nil,
		"api-key": {Kind: fanout.HeaderKey, Header: "Authorization", Sealed: "Whatever  stands here"},
		"zgw":     {Kind: fanout.ZGW, Client: "us", Sealed: "letmein"},
		"oauth2":  {Kind: fanout.OAuth2, URL: endpoint.URL, Client: "us", Sealed: "letmein"},
		"refused": {Kind: fanout.OAuth2, URL: endpoint.URL, Client: "us", Sealed: "wrong"},
	}
	stubs := map[string]*stub{}
	for id, a := range all {
		stubs[id] = subscriber(t, "")
		d.abonnement(id, stubs[id].URL, on(nil), func(s *fanout.Subscription) { s.Authorization = a })
	}
	d.post("notificaties", message(bron)).want(t, http.StatusCreated)
	d.ended("oauth2", holdfast.Delivered, 1)
	d.post("notificaties", message(bron)).want(t, http.StatusCreated)
	for id := range all {
		if id == "refused" {
			if m := d.ended(id, holdfast.Parked, 2)[0]; m.Tries != 5 || len(stubs[id].got()) != 0 || refused.Load() < 1 {
				t.Errorf("%s: %+v", id, m)
			}
			continue
		}
		d.ended(id, holdfast.Delivered, 2)
		for _, h := range stubs[id].got() {
			got := h.header.Get("Authorization")
			ok := got == map[string]string{"api-key": "Whatever  stands here", "oauth2": "Bearer t1"}[id]
			if id == "zgw" {
				ok = signedBy(got, "us")
			}
			if !ok {
				t.Errorf("%s: got %q", id, got)
			}
		}
	}
	if n := tokens.Load(); n != 1 {
		t.Errorf("%d tokens were fetched", n)
	}
}

// signedBy reports whether a header has a JWT of a client, just issued.
func signedBy(header, client string) bool {
	text, ok := strings.CutPrefix(header, "Bearer ")
	for ago := range 30 {
		at := time.Now().Add(-time.Duration(ago) * time.Second)
		if ok && text == jwtOf(fmt.Sprintf(`{"client_id":%q,"exp":%d,"iat":%d,"iss":%q,"user_id":"","user_representation":""}`, client, at.Unix()+43200, at.Unix(), client)) {
			return true
		}
	}
	return false
}

// 56: what is sent again is a message of its own with the id of the first one, and leaves that as it was.
func TestANotificationIsSentAgain(t *testing.T) {
	t.Parallel()
	d, r := zaken(t, nil), subscriber(t, "")
	d.abonnement("a", r.URL, on(nil), nil)
	d.abonnement("b", r.URL, on(nil), nil)
	d.post("notificaties", message(bron), "Idempotency-Key", "n").want(t, http.StatusCreated)
	first := d.ended("a", holdfast.Delivered, 1)[0]
	d.ended("b", holdfast.Delivered, 1)
	d.received(r, 2)
	list, err := d.book.Store().EventsOf(t.Context(), "n")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if again, err := d.api.Publisher.Resend(t.Context(), &list[0], fanout.Resend{Subscription: "a", Actor: "anna"}); err != nil || len(again.Deliveries) != 1 {
		t.Fatal(again, err)
	}
	d.ended("a", holdfast.Delivered, 2)
	d.received(r, 3)
	if h := r.got()[2]; h.header.Get("Webhook-Id") != string(first.Message.ID) || h.body != r.got()[0].body {
		t.Errorf("got %+v", h)
	}
	if now, err := d.store.Get(t.Context(), first.Message.ID); err != nil || now.Tries != first.Tries || now.State != holdfast.Delivered {
		t.Errorf("the first one: %+v, %v", now, err)
	}
}
