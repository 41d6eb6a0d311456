package webhook_test

import (
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
)

// 52: a notification becomes the CloudEvent that Open Notificaties makes of it, the same in each attempt. What is
// no notification is sent as a structured CloudEvent, and what is a CloudEvent already as it is, whatever the mode.
func TestNotificationsBecomeCloudEvents(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(503, ""))
	const (
		begin = `{"kanaal":"zaken","source":"zaken.example.nl","hoofdObject":"https://z.example.nl/1","resource":"status","resourceUrl":"https://z.example.nl/s/721c9","actie":"create","aanmaakdatum":"2025-01-01T12:00:00.123Z","kenmerken":`
		event = `{"id":"m1","source":"zaken.example.nl","specversion":"1.0","type":"nl.overheid.zaken.status.create","datacontenttype":"application/json","subject":"721c9","time":"2025-01-01T12:00:00Z","data":`
		cloud = `{ "specversion": "1.0", "data": 1.50 }`
		kind  = "application/cloudevents+json"
	)
	for _, x := range []struct {
		mode                      webhook.Mode
		kind, payload, want, sent string
	}{
		{webhook.Notificaties, "", begin + `{"bron":"1","a":"<&>"}}`, event + `{"bron":"1","a":"<&>","hoofdObject":"https://z.example.nl/1"}}`, kind},
		{webhook.Notificaties, "", begin + ` { } }`, event + `{"hoofdObject":"https://z.example.nl/1"}}`, kind},
		{webhook.Notificaties, "", begin + `{"hoofdObject":"x","bron":"1"}}`, event + `{"bron":"1","hoofdObject":"https://z.example.nl/1"}}`, kind},
		{webhook.Notificaties, "", `{"kanaal":"zaken"}`, `{"id":"m1","source":"central","specversion":"1.0","type":"order.paid","datacontenttype":"application/json","data":{"kanaal":"zaken"}}`, kind},
		{webhook.Notificaties, kind, cloud, cloud, kind},
		{webhook.Structured, kind, cloud, cloud, kind},
		{webhook.Binary, kind, cloud, cloud, kind},
		{webhook.Plain, kind, cloud, cloud, kind},
		{webhook.Plain, "", begin + `{}}`, begin + `{}}`, "application/json"},
	} {
		m := holdfast.Message{ID: "m1", Source: "central", Endpoint: "order.paid", Payload: []byte(x.payload), Headers: map[string]string{}}
		if x.kind != "" {
			m.Headers[webhook.HeaderContentType] = x.kind
		}
		d := delivererTo(t, webhook.Target{URL: r.URL, Mode: x.mode, Secrets: []webhook.Secret{{Value: first}}})
		before := len(r.got())
		_, _ = d.Deliver(t.Context(), m)
		_, _ = d.Deliver(t.Context(), m)
		for _, h := range r.got()[before:] {
			if h.body != x.want || h.header.Get("Content-Type") != x.sent {
				t.Errorf("%s of %s: got %s as %s", x.mode, x.payload, h.body, h.header.Get("Content-Type"))
			}
			if id, err := verifies(t, h, first); err != nil || id != "m1" {
				t.Errorf("%s: signed for %q, %v", x.mode, id, err)
			}
		}
	}
}
