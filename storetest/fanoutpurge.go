package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/rows"
)

// purgeEvents purges until nothing more is over.
func (k *kit) purgeEvents(keep time.Duration) (purged int) {
	k.t.Helper()
	for after := int64(0); ; {
		n, next, err := k.Fanout.PurgeEvents(k.ctx(), keep, after)
		if err != nil {
			k.t.Fatal(err)
		}
		if purged, after = purged+n, next; next == 0 {
			return purged
		}
	}
}

func eventsPurged(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.publish(h, eventOf("nothing"))
	k.subscribes(h, "a", 0, `{}`)
	k.publish(h, eventOf("waits"))
	k.publish(h, eventOf("over"))
	k.wins(k.claimOf(fanout.Lane("a"), 2)[1], delivered())
	k.pass(24 * time.Hour)
	k.publish(h, eventOf("young"))
	k.put(holdfast.Message{})
	if n := k.purgeEvents(time.Hour); n != 1 {
		k.t.Errorf("%d events went before the messages, want the one without any", n)
	}
	k.purge(holdfast.Retention{Delivered: time.Hour})
	if n := k.purgeEvents(48 * time.Hour); n != 0 {
		k.t.Errorf("%d young events went", n)
	}
	if n := k.purgeEvents(time.Hour); n != 1 {
		k.t.Errorf("%d events went, want the one whose message is purged", n)
	}
	var left []holdfast.ID
	list, err := k.Fanout.Events(k.ctx(), fanout.Query{Limit: 9})
	for _, e := range list {
		left = append(left, e.ID)
	}
	if d := cmp.Diff(left, []holdfast.ID{"young", "waits"}); d != "" || err != nil {
		k.t.Errorf("%v (-got +want):\n%s", err, d)
	}
	if c := k.claimOf(fanout.Lane("a"), 9); len(c) == 0 || string(c[len(c)-1].Message.Payload) == "" {
		k.t.Errorf("what waits has lost its payload: %+v", c)
	}
	if got := k.publish(h, eventOf("over")); got.Duplicate {
		k.t.Error("what is purged is new when it comes again")
	}
}

func largeEventPurged(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.publish(h, eventOf("small"))
	const n = 4100
	b := holdfast.Bundle{
		Kind: fanout.BundleKind, Source: Source, ID: "large", Payload: []byte("{}"),
		Parent: &rows.Event{ID: "large", Source: Source, Topic: "orders", Attributes: "{}", Matched: n, Received: rows.Now},
	}
	for range n {
		id := holdfast.NewID()
		b.Messages = append(b.Messages, holdfast.Message{ID: id, Destination: fanout.Lane("a"), Endpoint: "order.paid"})
		b.Rows = append(b.Rows, &rows.Delivery{Subscription: "a", Message: string(id), Settled: rows.None})
	}
	if results, err := k.Bundle(k.ctx(), b); err != nil || results[0].Err != nil {
		k.t.Fatal(results, err)
	}
	large := k.event("large").Seq
	k.publish(h, eventOf("newest"))
	for {
		claims := k.claimOf(fanout.Lane("a"), n)
		if len(claims) == 0 {
			break
		}
		k.winAll(claims, delivered())
	}
	k.put(holdfast.Message{})
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	if n := k.purgeEvents(time.Hour); n != 2 {
		k.t.Errorf("%d events went, want the small and the large one", n)
	}
	if left := k.deliveries(large); len(left) > 0 {
		k.t.Errorf("%d deliveries of it are left", len(left))
	}
}

func versionsPurged(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	a := k.subscribes(h, "a", 0, `{}`)
	k.publish(h, eventOf("e"))
	k.publish(h, eventOf("newest"))
	b := k.subscribes(h, "a", a, `{"types":["x"]}`)
	k.pass(2 * time.Hour)
	if _, err := k.Fanout.PurgeVersions(k.ctx()); err != nil {
		k.t.Fatal(err)
	}
	if was, err := k.Fanout.SubscriptionAt(k.ctx(), "a", a); err != nil || was.Version != a {
		k.t.Errorf("the version of an event that is kept: %+v, %v", was, err)
	}
	if err := h.kept.DeleteSubscription(k.ctx(), "a", b, "anna"); err != nil {
		k.t.Fatal(err)
	}
	for _, c := range k.claimOf(fanout.Lane("a"), 9) {
		k.wins(c, delivered())
	}
	k.put(holdfast.Message{})
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	k.publish(h, eventOf("later"))
	k.purgeEvents(time.Hour)
	last := k.subscribes(h, "b", 0, `{}`)
	if _, err := k.Fanout.PurgeVersions(k.ctx()); err != nil {
		k.t.Fatal(err)
	}
	if list, err := k.Fanout.SubscriptionsSince(k.ctx(), 0, last, 9); err != nil || len(list) != 1 || list[0].ID != "b" {
		k.t.Errorf("what is left: %+v, %v", list, err)
	}
}
