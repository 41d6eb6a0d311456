package storetest

import (
	"errors"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

func (k *kit) resend(h hub, event holdfast.ID, r fanout.Resend) fanout.Resent {
	k.t.Helper()
	e := k.event(event)
	got, err := h.Resend(k.ctx(), &e, r)
	if err != nil {
		k.t.Fatal(err)
	}
	return got
}

// to returns the subscriptions of a resend.
func to(r fanout.Resent) (list []string) {
	for _, d := range r.Deliveries {
		list = append(list, d.Subscription)
	}
	return list
}

// eventResent: a resend is a message of its own under the first one's id, once for each request, and
// changes nothing of the first (D of webhooks.md).
func eventResent(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.subscribes(h, "a", 0, `{}`)
	b := k.subscribes(h, "b", 0, `{}`)
	k.publish(h, eventOf("e"))
	first := k.deliveries(k.event("e").Seq)
	k.wins(k.claimOf(fanout.Lane("a"), 1)[0], parked())
	k.subscribes(h, "c", 0, `{}`)
	got := k.resend(h, "e", fanout.Resend{ID: "r1", Actor: "anna"})
	equal(k, "those that it was for", to(got), []string{"a", "b"})
	k.reopen()
	h = k.hub()
	if again := k.resend(h, "e", fanout.Resend{ID: "r1", Actor: "ben"}); !again.Duplicate || cmp.Diff(again.Deliveries, k.deliveries(k.event("e").Seq)[2:]) != "" || again.Deliveries[0].Message != got.Deliveries[0].Message {
		k.t.Errorf("asked again: %+v", again)
	}
	c := k.claimOf(fanout.Lane("a"), 9)
	if len(c) != 1 || c[0].Message.ID != got.Deliveries[0].Message || c[0].Message.Headers[fanout.HeaderID] != string(first[0].Message) ||
		c[0].Message.Headers["ce-id"] != "e" || string(c[0].Message.Payload) != `{"total": 12.50}` {
		k.t.Fatalf("to a: %+v", c)
	}
	k.wins(c[0], parked())
	if r := k.get(first[0].Message); r.State != holdfast.Parked || r.Tries != 1 {
		k.t.Errorf("the first message is %s after %d tries", r.State, r.Tries)
	}
	one := k.resend(h, "e", fanout.Resend{ID: "r2", Subscription: "c", MatchNow: true, Actor: "anna"})
	equal(k, "whom it is for now", to(one), []string{"c"})
	if c := k.claimOf(fanout.Lane("c"), 9); len(c) != 1 || c[0].Message.Headers[fanout.HeaderID] != "" {
		k.t.Errorf("to c, which never got it: %+v", c)
	}
	k.resend(h, "e", fanout.Resend{ID: "r3", Subscription: "c", MatchNow: true})
	if c := k.claimOf(fanout.Lane("c"), 9); len(c) != 1 || c[0].Message.Headers[fanout.HeaderID] != string(one.Deliveries[0].Message) {
		k.t.Errorf("to c again: %+v", c)
	}
	var who []string
	for _, d := range k.deliveries(k.event("e").Seq) {
		who = append(who, d.Subscription+" "+string(d.Request)+" "+d.Actor)
	}
	equal(k, "the deliveries", who, []string{"a  ", "b  ", "a r1 anna", "b r1 anna", "c r2 anna", "c r3 "})
	if err := h.kept.DeleteSubscription(k.ctx(), "b", b, "anna"); err != nil {
		k.t.Fatal(err)
	}
	e := k.event("e")
	for what, want := range map[fanout.Resend]error{
		{ID: "r1", Subscription: "a"}:                 holdfast.ErrConflict,
		{ID: "r4", Subscription: "b"}:                 fanout.ErrNobody, // it is deleted
		{ID: "r4", Subscription: "c"}:                 fanout.ErrNobody, // it was not for c
		{ID: "r4", Subscription: "b", MatchNow: true}: fanout.ErrNobody,
		{ID: "two words"}:                             holdfast.ErrInvalid,
	} {
		if got, err := h.Resend(k.ctx(), &e, what); !errors.Is(err, want) {
			k.t.Errorf("%+v: %+v, %v, want %v", what, got, err, want)
		}
	}
}

func resendsPurged(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.subscribes(h, "a", 0, `{}`)
	k.publish(h, eventOf("e"))
	k.wins(k.claimOf(fanout.Lane("a"), 1)[0], delivered())
	k.pass(24 * time.Hour)
	k.resend(h, "e", fanout.Resend{ID: "r", Actor: "anna"})
	k.publish(h, eventOf("newest"))
	k.purge(holdfast.Retention{Delivered: time.Hour})
	if n := k.purgeEvents(time.Hour); n != 0 {
		k.t.Errorf("%d events went, and the resend waits", n)
	}
	for _, c := range k.claimOf(fanout.Lane("a"), 9) {
		if string(c.Message.Payload) == "" {
			k.t.Error("a message has lost its payload")
		}
		k.wins(c, delivered())
	}
	k.put(holdfast.Message{})
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	if got := k.resend(h, "e", fanout.Resend{ID: "r"}); !got.Duplicate || len(got.Deliveries) != 1 || got.Deliveries[0].State != holdfast.Delivered {
		k.t.Errorf("asked again after its message is purged: %+v", got)
	}
	seq := k.event("e").Seq
	if n := k.purgeEvents(time.Hour); n != 1 {
		k.t.Errorf("%d events went, want the one that was sent again", n)
	}
	if left := k.deliveries(seq); len(left) != 0 {
		k.t.Errorf("left of it: %+v", left)
	}
	k.publish(h, eventOf("e"))
	if got := k.resend(h, "e", fanout.Resend{ID: "r"}); got.Duplicate {
		k.t.Error("the resend of a purged event is known")
	}
}

// resentToNoOther: what a deleted subscription got does not go to the one that has its id now.
func resentToNoOther(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	first := k.subscribes(h, "a", 0, `{}`)
	k.publish(h, eventOf("e"))
	if err := h.kept.DeleteSubscription(k.ctx(), "a", k.subscribes(h, "a", first, `{"types":["x"]}`), "anna"); err != nil {
		k.t.Fatal(err)
	}
	k.pass(time.Second)
	k.subscribes(h, "a", 0, `{}`)
	e := k.event("e")
	if got, err := h.Resend(k.ctx(), &e, fanout.Resend{ID: "r"}); !errors.Is(err, fanout.ErrNobody) {
		k.t.Errorf("%+v, %v", got, err)
	}
	equal(k, "whom it is for now", to(k.resend(h, "e", fanout.Resend{ID: "r", MatchNow: true})), []string{"a"})
}
