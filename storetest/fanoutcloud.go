package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// cloudEvents publishes an event that is a CloudEvent as a whole. Filters see the data in it, and all of it is
// sent, also when it is sent again.
func cloudEvents(k *kit) {
	h := k.hub()
	k.topic(h, "cloud")
	k.subscribes(h, "all", 0, `{}`)
	k.subscribes(h, "some", 0, `{"data":{"region":"eu"},"where":[{"field":"type","op":"contains","value":"zaak"}]}`)
	k.subscribes(h, "none", 0, `{"data":{"region":"us"}}`)
	const document = `{"specversion":"1.0","id":"c","data":{"region":"eu"},"region":"us"}`
	e := fanout.Event{ID: "c", Topic: "cloud", Type: "nl.zaak " + strings.Repeat("x", 200), ContentType: fanout.CloudEventJSON, Data: []byte(document)}
	if got := k.publish(h, e); got.Matched != 2 {
		k.t.Fatalf("%+v", got)
	}
	stored := k.event("c")
	if stored.ContentType != fanout.CloudEventJSON || stored.Type != e.Type {
		k.t.Errorf("stored: %+v", stored)
	}
	if x, err := h.Book.Explain(k.ctx(), &stored, "", 10); err != nil || len(x) != 3 || !x[0].Matched || x[1].Matched || !x[2].Matched {
		k.t.Errorf("explained: %+v, %v", x, err)
	}
	if r, err := h.Resend(k.ctx(), &stored, fanout.Resend{Subscription: "some"}); err != nil || len(r.Deliveries) != 1 {
		k.t.Errorf("sent again: %+v, %v", r, err)
	}
	for lane, want := range map[string]int{"all": 1, "some": 2, "none": 0} {
		c := k.claimOf(fanout.Lane(lane), 3)
		for i := range c {
			m := &c[i].Message
			if string(m.Payload) != document || m.Headers["content-type"] != fanout.CloudEventJSON || m.Endpoint != "cloud" || m.Headers["ce-type"] != e.Type {
				k.t.Errorf("to %s: %+v", lane, m)
			}
		}
		if len(c) != want {
			k.t.Errorf("to %s: %d messages, want %d", lane, len(c), want)
		}
	}
	plain := e
	if plain.ContentType = ""; !errors.Is(publishError(k, h, plain), holdfast.ErrConflict) {
		k.t.Error("another content type is other content")
	}
	if plain.ContentType = "text/plain"; !errors.Is(publishError(k, h, plain), holdfast.ErrInvalid) {
		k.t.Error("a content type that nobody knows is refused")
	}
}

func publishError(k *kit, h hub, e fanout.Event) error {
	_, err := h.Publish(k.ctx(), e)
	return err
}

// manyAttributes publishes an event with as many attributes as a notification may have, of any name. Filters see
// all of them, and a message has what fits.
func manyAttributes(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.subscribes(h, "a", 0, `{"attributes":{"a199":"v","zaaktype.catalogus":"Größe 1\n"}}`)
	k.subscribes(h, "b", 0, `{"attributes":{"a199":"w"}}`)
	e := eventOf("many")
	e.Attributes = map[string]string{"zaaktype.catalogus": "Größe 1\n", "line": "a\nb", "#actie": "create"}
	for i := range 200 {
		e.Attributes[fmt.Sprintf("a%03d", i)] = "v"
	}
	if got := k.publish(h, e); got.Matched != 1 {
		k.t.Fatalf("%+v", got)
	}
	c := k.claimOf(fanout.Lane("a"), 2)
	if len(c) != 1 || c[0].Message.Headers["ce-a000"] != "v" || c[0].Message.Headers["ce-line"] != "" || len(c[0].Message.Headers) > holdfast.MaxHeaders/2+8 {
		k.t.Errorf("to a: %+v", c)
	}
	if stored := k.event("many"); len(stored.Attributes) != len(e.Attributes) || stored.Attributes["line"] != "a\nb" {
		k.t.Errorf("stored: %+v", stored)
	}
	for i := range 100 {
		e.Attributes[fmt.Sprintf("b%03d", i)] = "v"
	}
	if err := publishError(k, h, e); !errors.Is(err, holdfast.ErrInvalid) {
		k.t.Errorf("more than fit: %v, want ErrInvalid", err)
	}
}

// unfit publishes an event that one of its subscriptions cannot take. Nobody gets it, and nothing is stored.
func unfit(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.subscribes(h, "a", 0, `{}`)
	k.subscribes(h, "b", 0, `{}`)
	k.subscribes(h, "c", 0, `{"types":["other"]}`)
	var asked []string
	no := errors.New("b cannot take it")
	e := eventOf("unfit")
	e.Fits = func(s *fanout.Subscription) error {
		if asked = append(asked, s.ID); s.ID == "b" {
			return no
		}
		return nil
	}
	if err := publishError(k, h, e); !errors.Is(err, no) || fmt.Sprint(asked) != "[a b]" {
		k.t.Errorf("got %v after %v", err, asked)
	}
	if list, err := k.Fanout.EventsOf(k.ctx(), "unfit"); err != nil || len(list) > 0 || len(k.claimOf(fanout.Lane("a"), 1)) > 0 {
		k.t.Errorf("stored: %+v, %v", list, err)
	}
	for _, at := range []time.Time{e.Time, {}} {
		known := e
		known.ID, known.Time, known.Fits = holdfast.NewID(), at, nil
		k.publish(h, known)
		known.Fits = e.Fits
		if got := k.publish(h, known); !got.Duplicate || got.Matched != 2 {
			k.t.Errorf("a repeat of what is known: %+v", got)
		}
		if known.Data = []byte(`{}`); !errors.Is(publishError(k, h, known), holdfast.ErrConflict) {
			k.t.Error("other content of what is known is a conflict")
		}
	}
}
