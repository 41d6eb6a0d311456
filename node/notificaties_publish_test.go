package node_test

import (
	"net/http"
	"strings"
	"testing"
)

const (
	nrcMessage = `{"kanaal":"zaken","hoofdObject":"http://openzaak:8000/1","resource":"status","resourceUrl":"https://z.example.nl/2","actie":"create","aanmaakdatum":"2025-01-01T12:00:00Z","kenmerken":{"bron":"1"}}`
	nrcCloud   = `{"specversion":"1.0","id":"c-1","source":"s","type":"nl.overheid.zaken.zaak.created","data":{"bron":"1"}}`
)

// What a client of the API publishes reaches the abonnement of another one, and an operator sees it as an event. 10: a
// publisher needs its scope.
func TestNotificatiesArePublished(t *testing.T) {
	t.Parallel()
	n, hub := newNRC(t, "")
	n.zaken()
	c := newCallback(t)
	n.do("POST", "abonnement", `{"callbackUrl":"`+c.URL+`","auth":"Token x","kanalen":[{"naam":"zaken","filters":{"bron":"1"}}]}`).want(t, http.StatusCreated)
	c.took()
	for _, other := range []*nrc{n.as(""), n.as("Bearer " + mint("reader", nil))} {
		other.do("POST", "notificaties", nrcMessage).fault(t, http.StatusForbidden, "permission_denied")
		other.do("POST", "cloudevents", nrcCloud, "Content-Type", "application/cloudevents+json").fault(t, http.StatusForbidden, "permission_denied")
	}
	writer := n.as("Bearer " + mint("writer", nil))
	writer.do("POST", "notificaties", nrcMessage, "Idempotency-Key", "n-1").want(t, http.StatusCreated)
	writer.do("POST", "notificaties?x=1", nrcMessage, "Idempotency-Key", "n-1").want(t, http.StatusCreated) // 2.3: only kanaal and abonnement refuse what they do not know
	deliveries(t, hub, "n-1", 1)
	if got := c.took(); len(got) != 1 || got[0] != "Token x application/json "+nrcMessage {
		t.Errorf("got %q", got)
	}
	n.do("POST", "abonnement", `{"callbackUrl":"`+c.URL+`","auth":"Token x","sendCloudevents":true,"cloudeventFilters":[{"typeSubstring":"zaken.zaak","filters":{"bron":"1"}}]}`).want(t, http.StatusCreated)
	c.took()
	writer.do("POST", "cloudevents", nrcCloud, "Content-Type", "application/cloudevents+json").want(t, http.StatusCreated)
	deliveries(t, hub, "c-1", 1)
	if got := c.took(); len(got) != 1 || got[0] != "Token x application/cloudevents+json "+nrcCloud {
		t.Errorf("got %q", got)
	}
	e, err := hub.Events().Get(t.Context(), "", "n-1", "")
	if err != nil || e.Topic != "zaken" || e.Source != "writer" || e.Actor != "notificaties:writer" || e.Type != "nl.overheid.zaken.status.create" || e.Attributes["#actie"] != "create" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestNotificatiesAsTheUpstreamTakesThem(t *testing.T) {
	t.Parallel()
	n, _ := newNRC(t, ", hosts: dotted, faults: plain")
	n.zaken()
	if got := n.do("POST", "notificaties", nrcMessage); got.status != http.StatusBadRequest || !strings.HasPrefix(got.text, `{"hoofdObject":["`) {
		t.Errorf("got %d %s", got.status, got.text)
	}
}
