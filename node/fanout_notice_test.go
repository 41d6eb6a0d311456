package node_test

import (
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// People are told once when messages of a subscription park because their schedule has ended. One that is disabled says
// since when, and a test that succeeds says how to resume.
func TestPeopleAreToldOfASubscriptionThatFails(t *testing.T) {
	t.Parallel()
	c, s := hookedAs(t, "shop", "backoff: off, retries: 1, notices: ops, disableAfter: never")
	if _, err := c.Lists().Put(t.Context(), "ops", api.ListSpec{Recipients: []api.Recipient{}}); err != nil {
		t.Fatal(err)
	}
	s.answers(500)
	parked := func(event string) {
		t.Helper()
		waittest.Until(t, "its message parks", func() bool {
			e, err := c.Events().Get(t.Context(), "", event, "")
			return err == nil && len(e.Deliveries) == 1 && e.Deliveries[0].State == "parked"
		})
	}
	told := func() []api.Notification {
		t.Helper()
		page, err := c.Notifications().List(t.Context(), client.NotificationQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return page.Notifications
	}
	parked(publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"}).ID)
	waittest.Until(t, "people are told", func() bool { return len(told()) > 0 })
	parked(publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"}).ID)
	waittest.Until(t, "the journal was read", func() bool {
		list, err := c.Journal().Followers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if f.Name == "notices of subscriptions" {
				return f.Unread == nil
			}
		}
		return false
	})
	if all := told(); len(all) != 1 || all[0].List != "ops" || all[0].Type != "subscription-parked" || !strings.Contains(all[0].Subject, "shop") {
		t.Errorf("people were told %+v", all)
	}
	if _, err := c.Subscriptions().Disable(t.Context(), "shop", "it is broken"); err != nil {
		t.Fatal(err)
	}
	x, err := c.Events().Explain(t.Context(), "", publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"}).ID, "", 10)
	if err != nil || len(x.Subscriptions) != 1 || !strings.HasPrefix(x.Subscriptions[0].Why, "it was disabled by local since 2") || !strings.HasSuffix(x.Subscriptions[0].Why, ": it is broken") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	if try, err := c.Subscriptions().Test(t.Context(), "shop", api.NewEvent{}); err != nil || try.Advice != "" {
		t.Errorf("a test that fails: %+v, %v", try, err)
	}
	s.answers(200)
	if try, err := c.Subscriptions().Test(t.Context(), "shop", api.NewEvent{}); err != nil || !strings.Contains(try.Advice, "holdfast subscriptions resume shop") {
		t.Errorf("a test that succeeds: %+v, %v", try, err)
	}
}
