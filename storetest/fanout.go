package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
)

// fanouts tests what topics, subscriptions and events need of a store.
func fanouts(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"a change has a version, and former ones stay": versionsOfSubscriptions,
		"who was overtaken changes nothing":            overtakenSubscriptions,
		"a token goes with its subscription":           tokensOfTheDeleted,
		"a book reads what has changed":                bookFollows,
		"an event is stored with its messages":         eventWithMessages,
		"an event that matches nothing is stored":      eventOfNothing,
		"an event that comes again":                    eventAgain,
		"an event that is a CloudEvent":                cloudEvents,
		"an event with many attributes":                manyAttributes,
		"an event that a subscription cannot take":     unfit,
		"an event goes after its messages":             eventsPurged,
		"a large event goes piece by piece":            largeEventPurged,
		"former versions go after their events":        versionsPurged,
		"an event is sent again":                       eventResent,
		"an event is not sent to another of an id":     resentToNoOther,
		"an event goes after its resends":              resendsPurged,
		"the usual schedule is one for all nodes":      usualSchedule,
		"retries move to another schedule":             movedRetries,
		"subscriptions that fail are known":            failingSubscriptions,
	})
	m.meet(t, map[string]func(k *kit){
		"each event is wholly with or without a change": eventsAmongChanges,
		"nodes move retries, and one dies":              movedByNodes,
	})
}

// hub is a publisher on the store under test.
type hub struct {
	*fanout.Publisher
	kept fanout.Store
}

func (k *kit) hub() hub {
	b := fanout.NewBook(k.Fanout, nil)
	return hub{&fanout.Publisher{Bundles: k.Full, Book: b, Source: Source}, b.Store()}
}

func (k *kit) topic(h hub, name string) {
	k.t.Helper()
	if _, err := h.kept.PutTopic(k.ctx(), fanout.Topic{Name: name}, "anna"); err != nil {
		k.t.Fatal(err)
	}
}

// subscribes makes or replaces a subscription to all topics, and returns its version.
func (k *kit) subscribes(h hub, id string, seen int64, filter string) int64 {
	k.t.Helper()
	version, err := h.kept.PutSubscription(k.ctx(), subscriptionTo(id, seen, filter), "anna")
	if err != nil {
		k.t.Fatal(err)
	}
	return version
}

func subscriptionTo(id string, seen int64, filter string) fanout.Subscription {
	return fanout.Subscription{ID: id, Version: seen, Topics: []string{"*"}, Filter: []byte(filter), Settings: fanout.Settings{URL: "https://example.com/" + id}}
}

func eventOf(id holdfast.ID) fanout.Event {
	return fanout.Event{
		ID: id, Topic: "orders", Type: "order.paid", Subject: "o-7", Time: time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC),
		Attributes: map[string]string{"region": "eu"}, Data: []byte(`{"total": 12.50}`), Actor: "shop",
	}
}

func (k *kit) publish(h hub, e fanout.Event) fanout.Published {
	k.t.Helper()
	p, err := h.Publish(k.ctx(), e)
	if err != nil {
		k.t.Fatal(err)
	}
	return p
}

func (k *kit) event(id holdfast.ID) fanout.Stored {
	k.t.Helper()
	list, err := k.Fanout.EventsOf(k.ctx(), id)
	if err != nil || len(list) != 1 {
		k.t.Fatalf("event %s: %+v, %v", id, list, err)
	}
	return list[0]
}

func (k *kit) deliveries(event int64) []fanout.Delivery {
	k.t.Helper()
	list, err := k.Fanout.Deliveries(k.ctx(), event, 0, 100)
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

func namesAt(k *kit, version int64) (list []string) {
	k.t.Helper()
	all, err := k.Fanout.SubscriptionsAt(k.ctx(), version, "", 100)
	if err != nil {
		k.t.Fatal(err)
	}
	for _, s := range all {
		list = append(list, fmt.Sprintf("%s %s %s", s.ID, s.State, s.Filter))
	}
	return list
}

func versionsOfSubscriptions(k *kit) {
	h := k.hub()
	first := k.subscribes(h, "a", 0, `{}`)
	k.pass(time.Minute)
	second := k.subscribes(h, "a", first, `{"types":["order.*"]}`)
	paused := subscriptionTo("b", 0, "")
	paused.State, paused.Why, paused.Actor = fanout.Paused, "it asked for it", "anna"
	third, err := h.kept.PutSubscription(k.ctx(), paused, "anna")
	if err != nil {
		k.t.Fatal(err)
	}
	k.ok(k.CreateToken(k.ctx(), "visit", `{"rights":["portal"],"destinations":["subscription:a"]}`, time.Hour, hash(1), ""))
	k.ok(k.CreateToken(k.ctx(), "other", `{"rights":["portal"],"destinations":["subscription:b"]}`, time.Hour, hash(2), ""))
	k.ok(k.CreateToken(k.ctx(), "operator", `{"rights":["operate"],"destinations":["subscription:a"]}`, time.Hour, hash(3), ""))
	k.ok(k.CreateToken(k.ctx(), "erp", "read", 0, hash(4), ""))
	k.pass(2 * time.Hour)
	if err := h.kept.DeleteSubscription(k.ctx(), "a", second, "anna"); err != nil {
		k.t.Fatal(err)
	}
	var left []string
	k.ok(k.EachToken(k.ctx(), func(name, _ string, _, _, _ time.Time, _ bool) { left = append(left, name) }))
	equal(k, "tokens", fmt.Sprint(left), "[erp operator other]")
	k.reopen()
	last, err := k.Fanout.Version(k.ctx())
	if err != nil {
		k.t.Fatal(err)
	}
	for version, want := range map[int64][]string{
		first: {"a active {}"}, second: {`a active {"types":["order.*"]}`}, third: {`a active {"types":["order.*"]}`, "b paused {}"}, last: {"b paused {}"},
	} {
		if d := cmp.Diff(namesAt(k, version), want); d != "" {
			k.t.Errorf("in version %d (-got +want):\n%s", version, d)
		}
	}
	was, err := k.Fanout.SubscriptionAt(k.ctx(), "a", second)
	if err != nil || was.Version != second || was.URL != "https://example.com/a" || was.Changed.Sub(was.Created) < time.Minute || !was.Since.Equal(was.Created) {
		k.t.Errorf("a was %+v, %v", was, err)
	}
	if _, err := k.Fanout.SubscriptionAt(k.ctx(), "a", last); !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("a deleted one: %v", err)
	}
	changed, err := k.Fanout.SubscriptionsSince(k.ctx(), second, last, 10)
	if err != nil || len(changed) != 2 || changed[0].ID != "b" || changed[0].Why != paused.Why || !changed[1].Gone {
		k.t.Errorf("since %d: %+v, %v", second, changed, err)
	}
	h = k.hub()
	k.subscribes(h, "a", 0, `{}`) // anew under its name
}

func overtakenSubscriptions(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	first := k.subscribes(h, "a", 0, `{}`)
	_, again := h.kept.PutSubscription(k.ctx(), subscriptionTo("a", 0, `{}`), "ben")
	_, other := h.kept.PutSubscription(k.ctx(), subscriptionTo("a", first+1, `{}`), "ben")
	_, topic := h.kept.PutTopic(k.ctx(), fanout.Topic{Name: "orders"}, "ben")
	for what, err := range map[string]error{
		"new, and there": again, "another version": other, "deleted in another version": h.kept.DeleteSubscription(k.ctx(), "a", first+1, "ben"), "a topic": topic,
	} {
		if !errors.Is(err, holdfast.ErrState) {
			k.t.Errorf("%s: %v, want ErrState", what, err)
		}
	}
	for what, err := range map[string]error{
		"a subscription": h.kept.DeleteSubscription(k.ctx(), "b", 0, "ben"), "a topic": h.kept.DeleteTopic(k.ctx(), "invoices", 0, "ben"),
	} {
		if !errors.Is(err, holdfast.ErrNotFound) {
			k.t.Errorf("%s that is not there: %v, want ErrNotFound", what, err)
		}
	}
	if _, err := h.kept.PutSubscription(k.ctx(), subscriptionTo("c", 0, `{"where":[{"field":"data.a","op":"near","value":1}]}`), "ben"); !errors.Is(err, holdfast.ErrInvalid) {
		k.t.Errorf("a filter that is not valid: %v", err)
	}
	if d := cmp.Diff(namesAt(k, 1<<40), []string{"a active {}"}); d != "" {
		k.t.Error(d)
	}
}

func bookFollows(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	first, found, err := h.Book.Topic(k.ctx(), "orders")
	if first.Attributes = []string{"region", "customer.name"}; err != nil || !found {
		k.t.Fatal(found, err)
	}
	if _, err := h.kept.PutTopic(k.ctx(), first, "ben"); err != nil {
		k.t.Fatal(err)
	}
	if got, _, err := h.Book.Topic(k.ctx(), "orders"); err != nil || cmp.Diff(got.Attributes, first.Attributes) != "" {
		k.t.Errorf("a topic with attributes: %+v, %v", got, err)
	}
	a := k.subscribes(h, "a", 0, `{}`)
	if got := k.publish(h, eventOf("1")); got.Matched != 1 {
		k.t.Errorf("a change made here does not hold at once: %+v", got)
	}
	k.subscribes(h, "a", a, `{"types":["invoice.*"]}`)
	b := k.subscribes(h, "b", 0, `{}`)
	if got := k.publish(h, eventOf("2")); got.Matched != 1 {
		k.t.Errorf("with b, and a changed: %+v", got)
	}
	if err := h.kept.DeleteSubscription(k.ctx(), "b", b, "anna"); err != nil {
		k.t.Fatal(err)
	}
	disabled := subscriptionTo("c", 0, `{}`)
	disabled.State = fanout.Disabled
	if _, err := h.kept.PutSubscription(k.ctx(), disabled, "anna"); err != nil {
		k.t.Fatal(err)
	}
	if got := k.publish(h, eventOf("3")); got.Matched != 0 {
		k.t.Errorf("with b deleted, and c disabled: %+v", got)
	}
	e := k.event("2")
	var why []string
	list, err := h.Book.Explain(k.ctx(), &e, "", 10)
	for _, x := range list {
		why = append(why, fmt.Sprint(x.Subscription.ID, " ", x.Matched, " ", x.Why))
	}
	if d := cmp.Diff(why, []string{`a false all[1].types: want one of invoice.*, saw "order.paid"`, "b true "}); d != "" && len(why) != 2 || err != nil {
		k.t.Errorf("%v, %s", err, d)
	}
	if _, err := h.Publish(k.ctx(), fanout.Event{Topic: "invoices", Data: []byte("1")}); !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("to a topic that is not there: %v", err)
	}
}

func eventWithMessages(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	version := k.subscribes(h, "a", 0, `{"attributes":{"region":"eu"}}`)
	k.subscribes(h, "b", 0, `{"types":["order.*"]}`)
	last := k.subscribes(h, "c", 0, `{"types":["invoice.*"]}`)
	got := k.publish(h, eventOf("e"))
	if d := cmp.Diff(got, fanout.Published{ID: "e", Source: Source, Matched: 2}); d != "" {
		k.t.Error(d)
	}
	k.reopen()
	e := k.event("e")
	want := fanout.Stored{Event: eventOf("e"), Seq: e.Seq, Matched: 2, Version: last, Received: e.Received}
	want.Source, want.Data = Source, nil
	if d := cmp.Diff(e, want); d != "" {
		k.t.Errorf("(-got +want):\n%s", d)
	}
	if data, err := k.Fanout.Data(k.ctx(), e.Seq); err != nil || string(data) != `{"total": 12.50}` {
		k.t.Errorf("its data: %q, %v", data, err)
	}
	list := k.deliveries(e.Seq)
	if len(list) != 2 || list[0].Subscription != "a" || list[0].Version != version || list[0].Purged {
		k.t.Fatalf("deliveries: %+v", list)
	}
	for r, want := range map[[2]string]int{{"a", "b"}: 2, {"b", "z"}: 1, {"aa", "aa"}: 0} {
		if to, err := k.Fanout.DeliveriesTo(k.ctx(), e.Seq, r[0], r[1]); err != nil || len(to) != want || want > 0 && to[want-1] != list[1] {
			k.t.Errorf("deliveries to %q: %+v, %v", r, to, err)
		}
	}
	c := k.claimOf(fanout.Lane("a"), 2)
	if len(c) != 1 || c[0].Message.ID != list[0].Message || string(c[0].Message.Payload) != `{"total": 12.50}` || c[0].Message.Endpoint != "order.paid" ||
		c[0].Message.Headers["ce-id"] != "e" || c[0].Message.Headers["ce-region"] != "eu" {
		k.t.Errorf("to a: %+v", c)
	}
	if c := k.claimOf(fanout.Lane("c"), 2); len(c) != 0 {
		k.t.Errorf("to c: %+v, want nothing", c)
	}
	for q, want := range map[fanout.Query]int{{Limit: 9}: 1, {Limit: 9, Topic: "orders"}: 1, {Limit: 9, Topic: "invoices"}: 0, {Limit: 9, Before: e.Seq}: 0} {
		if list, err := k.Fanout.Events(k.ctx(), q); err != nil || len(list) != want {
			k.t.Errorf("%+v: %+v, %v", q, list, err)
		}
	}
}

func eventOfNothing(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	seen := map[int64]holdfast.ID{}
	for i := range 3 { // numbers are not given twice, neither in one process nor in the next one
		for j := range 3 {
			id := holdfast.ID(fmt.Sprint("none-", i, "-", j))
			if got := k.publish(h, eventOf(id)); got.Matched != 0 || got.Duplicate {
				k.t.Errorf("%+v", got)
			}
			seen[k.event(id).Seq] = id
			m := k.put(holdfast.Message{})[0]
			seen[k.get(m).Seq] = m
		}
		k.reopen()
		h = k.hub()
	}
	if len(seen) != 18 {
		k.t.Errorf("18 events and messages have %d numbers", len(seen))
	}
	if got := k.publish(h, eventOf("none-0-0")); !got.Duplicate || got.Matched != 0 {
		k.t.Errorf("again: %+v", got)
	}
}

func eventAgain(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	k.subscribes(h, "a", 0, `{}`)
	e := eventOf("e")
	e.Time = time.Time{}
	first := k.publish(h, e)
	k.subscribes(h, "b", 0, `{}`)
	again := first
	again.Duplicate = true
	for _, stage := range []string{"while its message waits", "delivered", "purged"} {
		if d := cmp.Diff(k.publish(h, e), again); d != "" {
			k.t.Errorf("%s (-got +want):\n%s", stage, d)
		}
		other := e
		other.Data = []byte(`{"total": 13}`)
		if _, err := h.Publish(k.ctx(), other); !errors.Is(err, holdfast.ErrConflict) {
			k.t.Errorf("%s, with other content: %v, want ErrConflict", stage, err)
		}
		switch stage {
		case "while its message waits":
			k.wins(k.claimOf(fanout.Lane("a"), 1)[0], delivered())
		case "delivered":
			k.put(holdfast.Message{})
			k.pass(24 * time.Hour)
			k.purge(holdfast.Retention{Delivered: time.Hour})
			k.reopen()
			h = k.hub()
		}
	}
	elsewhere := e
	elsewhere.Source = "plant-2"
	if got := k.publish(h, elsewhere); got.Duplicate || got.Matched != 2 {
		k.t.Errorf("the id of another source: %+v", got)
	}
	if d := k.deliveries(k.must(Source, "e").Seq); len(d) != 1 || !d[0].Purged || d[0].State != holdfast.Delivered || d[0].Settled.IsZero() {
		k.t.Errorf("the delivery of a purged message: %+v", d)
	}
}

// must returns the event of a source.
func (k *kit) must(source string, id holdfast.ID) fanout.Stored {
	k.t.Helper()
	list, err := k.Fanout.EventsOf(k.ctx(), id)
	i := slices.IndexFunc(list, func(e fanout.Stored) bool { return e.Source == source })
	if err != nil || i < 0 {
		k.t.Fatalf("event %s of %s: %+v, %v", id, source, list, err)
	}
	return list[i]
}

// eventsAmongChanges publishes from two sides while subscriptions are made, changed, paused, disabled and removed.
// Each event has exactly the deliveries that the version which it names asks for.
func eventsAmongChanges(k *kit) {
	h := k.hub()
	k.topic(h, "orders")
	ctx, cancel := context.WithCancel(k.ctx())
	var changes, publishers sync.WaitGroup
	for w := range 2 {
		changes.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := k.lifeOf(h, fmt.Sprint("s", w, "-", i%3)); err != nil {
					k.t.Error(err)
					return
				}
			}
		})
	}
	const events = 40
	for side := range 2 {
		publishers.Go(func() {
			for i := range events / 2 {
				if _, err := h.Publish(k.ctx(), eventOf(holdfast.ID(fmt.Sprint("e", 2*i+side)))); err != nil {
					k.t.Error(err)
				}
			}
		})
	}
	publishers.Wait()
	cancel()
	changes.Wait()
	for i := range events {
		e := k.event(holdfast.ID(fmt.Sprint("e", i)))
		var got, want []string
		for _, d := range k.deliveries(e.Seq) {
			got = append(got, fmt.Sprint(d.Subscription, " ", d.Version))
		}
		list, err := h.Book.Explain(k.ctx(), &e, "", 100)
		if err != nil {
			k.t.Fatal(err)
		}
		for _, x := range list {
			if x.Matched {
				want = append(want, fmt.Sprint(x.Subscription.ID, " ", x.Subscription.Version))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(got, want); d != "" || e.Matched != len(want) {
			k.t.Errorf("event %s of version %d (-got +want):\n%s", e.ID, e.Version, d)
		}
	}
}

// lifeOf makes a subscription, changes it until it is for no event any more, and deletes it.
func (k *kit) lifeOf(h hub, id string) (err error) {
	one := subscriptionTo(id, 0, `{}`)
	for _, change := range []func(){
		func() {},
		func() { one.Filter = []byte(`{"types":["order.*"]}`) },
		func() { one.State, one.Actor = fanout.Paused, "anna" },
		func() { one.Filter = []byte(`{"types":["invoice.*"]}`) },
		func() { one.Filter = []byte(`{}`) },
		func() { one.State = fanout.Disabled },
	} {
		change()
		if one.Version, err = h.kept.PutSubscription(k.ctx(), one, "anna"); err != nil {
			return err
		}
	}
	return h.kept.DeleteSubscription(k.ctx(), id, one.Version, "anna")
}
