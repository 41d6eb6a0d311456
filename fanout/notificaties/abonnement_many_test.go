package notificaties_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// 44: a schedule that was lowered below the attempts of a message ends it. There is no request any more, as upstream, but the
// message does not vanish: it parks, where an operator sees it.
func TestAScheduleBelowTheAttempts(t *testing.T) {
	t.Parallel()
	d, bad := zaken(t, nil), subscriber(t, "", 500)
	own := func(retries int, state fanout.State) {
		t.Helper()
		one, _, err := d.book.Subscription(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		one.State = state
		one.Schedule = &fanout.Schedule{Backoff: fanout.Off, Factor: 1, Base: 1, Cap: 1, Retries: retries}
		if _, err := d.book.Store().PutSubscription(t.Context(), one, "test"); err != nil {
			t.Fatal(err)
		}
	}
	d.abonnement("a", bad.URL, on(nil), nil)
	own(1000, fanout.Active)
	d.post("notificaties", message(bron)).want(t, http.StatusCreated)
	d.received(bad, 5)
	own(1000, fanout.Paused)
	var waits holdfast.Record
	waittest.Until(t, "the message waits", func() bool {
		before := len(bad.got())
		page, err := d.store.List(t.Context(), holdfast.Query{Destination: fanout.Lane("a"), Limit: 1})
		if err != nil || len(page.Records) != 1 {
			return false
		}
		waits = page.Records[0]
		return waits.State == holdfast.Pending && waits.Tries == before && len(bad.got()) == before
	})
	own(2, fanout.Active)
	m := d.ended("a", holdfast.Parked, 1)[0]
	if m.Reason != holdfast.ReasonExhausted || len(bad.got()) != waits.Tries {
		t.Errorf("parked as %s after %d attempts and %d requests, it waited after %d", m.Reason, m.Tries, len(bad.got()), waits.Tries)
	}
}

// Ten thousand abonnementen are listed, found one by one, and get what they ask for.
func TestTenThousandAbonnementen(t *testing.T) {
	racetest.Without(t, "goroutines do not meet in it")
	t.Parallel()
	const all, kinds = 10_000, 500
	d := zaken(t, func(s *notificaties.Server) { s.Check = func(*fanout.Subscription) error { return nil } })
	var makers sync.WaitGroup
	for maker := range 50 {
		makers.Go(func() {
			for n := maker; n < all; n += 50 {
				d.abonnement(fmt.Sprintf("a-%05d", n), "http://127.0.0.1:1/", on(map[string]string{"bron": fmt.Sprint(n % kinds), "zaaktype": "*"}), func(s *fanout.Subscription) {
					s.State = fanout.Paused // nobody is called
				})
			}
		})
	}
	makers.Wait()
	got := d.ask("GET", "abonnement", "")
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || len(list) != all || !strings.Contains(got.body, "/abonnement/a-07777\"") {
		t.Fatalf("%d, %d are listed, %v", got.status, len(list), err)
	}
	d.ask("GET", "abonnement/a-07777", "").want(t, http.StatusOK)
	d.post("notificaties", message(`"bron":"42","zaaktype":"X"`), "Idempotency-Key", "n").want(t, http.StatusCreated)
	events, err := d.book.Store().EventsOf(t.Context(), "n")
	if err != nil || len(events) != 1 || events[0].Matched != all/kinds {
		t.Errorf("%+v, %v", events, err)
	}
	d.ask("PATCH", "abonnement/a-00042", `{"kanalen":[]}`).want(t, http.StatusOK)
	d.ask("DELETE", "abonnement/a-00542", "").want(t, http.StatusNoContent)
	d.post("notificaties", message(`"bron":"42","zaaktype":"X"`), "Idempotency-Key", "m").want(t, http.StatusCreated)
	if events, err = d.book.Store().EventsOf(t.Context(), "m"); err != nil || len(events) != 1 || events[0].Matched != all/kinds-2 {
		t.Errorf("after a change and an end: %+v, %v", events, err)
	}
}

// 1 to 9 and 14 to 26: what channels and subscriptions answer, byte by byte.
func TestAnswersOfKanalenAndAbonnementen(t *testing.T) {
	t.Parallel()
	d := open(t, func(s *notificaties.Server) {
		s.Check = func(*fanout.Subscription) error { return nil }
		s.URL, s.Unprotected = "https://nrc.example.nl", true
		s.Seal = func(_ *fanout.Subscription, secret string) (string, error) { return secret, nil }
		s.Probe = func(context.Context, *fanout.Subscription, []byte) (int, error) { return http.StatusNoContent, nil }
	})
	path := map[string]string{}
	say := func(name, method, at, body string) {
		t.Helper()
		if known := path[at]; known != "" {
			at = known
		}
		got := d.ask(method, at, body)
		got.header.Del("Date")
		transcript(t, filepath.Join("..", "resources", name), headed(got.header, fmt.Sprintf("%d %s", got.status, got.body)))
		if _, made, ok := strings.Cut(got.header.Get("Location"), "/api/v1/"); ok {
			path[name] = made
		}
	}
	const groups = `,"kanalen":[{"naam":"zaken","filters":{"bron":"082096752011","zaak_type":"*"}},{"naam":"besluiten"}]`
	hook := func(more string) string {
		return `{"callbackUrl":"https://zaken.example.nl/hook","auth":"Token abc"` + more + `}`
	}
	say("1-kanaal", "POST", "kanaal", `{"naam":"zaken","documentatie_link":"https://zaken.example.nl/doc","filters":["bron","zaakType"]}`)
	say("1-besluiten", "POST", "kanaal", `{"naam":"besluiten"}`)
	say("2-taken", "POST", "kanaal", `{"naam":"zaken"}`)
	say("5-put", "PUT", "1-kanaal", `{"naam":"zaken","documentatieLink":"https://zaken.example.nl/new","filters":["bron","zaakType","zaaktype.catalogus"]}`)
	say("6-patch", "PATCH", "1-kanaal", `{"filters":["bron","zaakType"]}`)
	say("7-name", "PATCH", "1-kanaal", `{"naam":"other"}`)
	say("8-delete", "DELETE", "1-kanaal", "")
	say("9-list", "GET", "kanaal?naam=zaken", "")
	say("9-query", "GET", "kanaal?foo=1", "")
	say("16-abonnement", "POST", "abonnement", hook(groups))
	say("16-show", "GET", "16-abonnement", "")
	say("16-list", "GET", "abonnement", "")
	say("17-unknown", "POST", "abonnement", hook(`,"kanalen":[{"naam":"none"}]`))
	say("18-inconsistent", "POST", "abonnement", hook(`,"kanalen":[{"naam":"zaken","filters":{"bron":"1","x":"2"}}]`))
	say("24-missing", "GET", "abonnement/none", "")
	say("25-patch", "PATCH", "16-abonnement", `{"callbackUrl":"https://zaken.example.nl/elsewhere"}`)
	say("25-put", "PUT", "16-abonnement", hook(`,"sendCloudevents":true,"cloudeventFilters":[{"typeSubstring":"zaak","filters":{"bron":"1"}}]`))
	say("25-required", "PUT", "16-abonnement", `{}`)
	say("24-delete", "DELETE", "16-abonnement", "")
	say("24-gone", "GET", "16-abonnement", "")
}
