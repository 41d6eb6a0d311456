package node_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// deliveries returns what became of an event, after it is delivered so often.
func deliveries(t *testing.T, c *client.Client, id string, n int) (list []api.EventDelivery) {
	t.Helper()
	waittest.Until(t, "the event says so", func() bool {
		detail, err := c.Events().Get(t.Context(), "", id, "")
		list = detail.Deliveries
		if err != nil || len(list) != n {
			return false
		}
		for i := range list {
			if list[i].State != "delivered" {
				return false
			}
		}
		return true
	})
	return list
}

// status returns the status of a refusal; zero: it is none.
func status(err error) int {
	if p, ok := errors.AsType[*api.Problem](err); ok {
		return p.Status
	}
	return 0
}

// What is sent again has the webhook-id of the first message and a message of its own, and says who asked. One
// request sends once.
func TestAnEventIsSentAgain(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	taken := publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid", Data: json.RawMessage(`{"total": 12.50}`)})
	first := deliveries(t, c, taken.ID, 1)[0]
	r, err := c.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{ID: "r"})
	if err != nil || len(r.Messages) != 1 || r.Duplicate || r.Event != taken.ID {
		t.Fatalf("sent again: %+v, %v", r, err)
	}
	again, err := c.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{ID: "r"})
	if r.Duplicate = true; err != nil || cmp.Diff(again, r) != "" {
		t.Errorf("the same request: %+v, %v", again, err)
	}
	list := deliveries(t, c, taken.ID, 2)
	if d := list[0]; d.Message != first.Message || d.Attempts != 1 || d.Resend != "" || d.Actor != "" {
		t.Errorf("the first is %+v, was %+v", d, first)
	}
	if d := list[1]; d.Message != r.Messages[0].Message || d.Message == first.Message || d.Resend != "r" || d.Actor != "local" {
		t.Errorf("the second is %+v", d)
	}
	if d := cmp.Diff(s.ids, []string{first.Message, first.Message}); d != "" {
		t.Errorf("the subscriber saw (-got +want):\n%s", d)
	}
	if d := cmp.Diff(s.bodies(), []string{`{"total": 12.50}`, `{"total": 12.50}`}); d != "" {
		t.Errorf("the subscriber got (-got +want):\n%s", d)
	}
	if _, err := c.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{Subscription: "other"}); status(err) != 409 {
		t.Errorf("to one that it was not for: %v", err)
	}
	if _, err := c.Events().Resend(t.Context(), "", taken.ID, api.ResendRequest{ID: "r", MatchNow: true}); status(err) != 409 {
		t.Errorf("another request of the same id: %v", err)
	}
	if _, err := c.Events().Resend(t.Context(), "", "none", api.ResendRequest{}); status(err) != 404 {
		t.Errorf("of an event that is not there: %v", err)
	}
}

// A bulk action sends the events of a window of time again, each once.
func TestEventsOfAWindowAreSentAgain(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	if _, err := c.Topics().Put(t.Context(), "invoices", api.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	publish(t, c, api.NewEvent{ID: "early", Topic: "orders", Type: "order.paid"})
	publish(t, c, api.NewEvent{ID: "1", Topic: "orders", Type: "order.paid"})
	publish(t, c, api.NewEvent{Topic: "invoices", Type: "order.paid"})
	publish(t, c, api.NewEvent{ID: "2", Topic: "orders", Type: "order.paid"})
	publish(t, c, api.NewEvent{ID: "nobody", Topic: "orders", Type: "invoice.sent"})
	publish(t, c, api.NewEvent{ID: "late", Topic: "orders", Type: "order.paid"})
	waittest.Until(t, "all are delivered", func() bool { return len(s.bodies()) == 4 })
	page, err := c.Events().List(t.Context(), "orders", "", 10)
	if err != nil || len(page.Events) != 5 {
		t.Fatalf("listed: %+v, %v", page, err)
	}
	filter := api.BulkFilter{Topic: "orders", From: page.Events[3].Received.Format(time.RFC3339Nano), To: page.Events[0].Received.Format(time.RFC3339Nano)}
	a, err := c.Bulk().Add(t.Context(), &api.BulkRequest{List: "events", Verb: "resend", Filter: filter})
	if err != nil || a.Total != 3 {
		t.Fatalf("added: %+v, %v", a, err)
	}
	waittest.Until(t, "the action is done", func() bool { a, err = c.Bulk().Get(t.Context(), a.ID); return err == nil && a.State == "done" })
	if a.Done != 2 || a.Refused != 1 {
		t.Errorf("done: %+v", a)
	}
	for id, want := range map[string]int{"early": 1, "1": 2, "2": 2, "late": 1} {
		deliveries(t, c, id, want)
	}
	if _, err := c.Bulk().Add(t.Context(), &api.BulkRequest{List: "events", Verb: "retry", Force: true, Filter: api.BulkFilter{Destination: "x"}}); status(err) != 422 {
		t.Errorf("what makes no sense: %v", err)
	}
}
