package node_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// SF-27: what happens to a message is listed, and told to whoever follows, with who did it and where it
// comes from. A stream does not hold up the stop of the node.
func TestActivityOfANodeIsListedAndFollowed(t *testing.T) {
	t.Parallel()
	url := serve(t, parse(t, ""))
	c, err := client.New(url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	waittest.Until(t, "the log follows the journal", func() bool {
		_, health := ask(t, "GET", url+"/_rf/health", "")
		return strings.Contains(health, "followed by activity")
	})
	heard, enough := make(chan api.Activity, 10), errors.New("enough")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	began, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		close(began)
		ended <- c.Activity().Follow(ctx, client.ActivityQuery{Destination: "self"}, 0, func(n api.ActivityNews) error {
			for _, a := range n.Activities {
				heard <- a
				if a.Kind == "delivered" {
					return enough
				}
			}
			return nil
		})
	}()
	<-began
	if code, answer := ask(t, "POST", url+"/v1/messages", `{"id":"m1","destination":"self","endpoint":"E","payload":1,"headers":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}`); code != 202 {
		t.Fatalf("%d %s", code, answer)
	}
	if err := <-ended; !errors.Is(err, enough) {
		t.Fatal(err)
	}
	for _, kind := range []string{"queued", "delivered"} {
		if a := <-heard; a.Kind != kind || a.Message != "m1" || a.Destination != "self" || time.Since(a.At) > time.Minute {
			t.Errorf("heard %+v, want %s", a, kind)
		}
	}
	page, err := c.Activity().List(t.Context(), client.ActivityQuery{Message: "m1", Limit: 1, Since: time.Now().Add(-time.Hour)})
	if err != nil || len(page.Activities) != 1 || page.Activities[0].Kind != "delivered" || page.Next == 0 {
		t.Fatalf("listed %+v, %v", page, err)
	}
	if a := page.Activities[0]; a.TraceParent != "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" {
		t.Errorf("its trace is %q", a.TraceParent)
	}
	page, err = c.Activity().List(t.Context(), client.ActivityQuery{Message: "m1", Limit: 1, After: page.Next})
	if err != nil || len(page.Activities) != 1 || page.Activities[0].Kind != "queued" {
		t.Errorf("then %+v, %v", page, err)
	}
	for name, q := range map[string]client.ActivityQuery{"kind": {Kind: "lost"}, "message": {Message: "a b"}} {
		p, ok := errors.AsType[*api.Problem](lists(t, c, q))
		if !ok || p.Status != 422 || len(p.Errors) != 1 || p.Errors[0].Field != name {
			t.Errorf("a wrong %s: %+v", name, p)
		}
	}
	go func() {
		ended <- c.Activity().Follow(ctx, client.ActivityQuery{}, -1, func(api.ActivityNews) error { return nil })
	}()
}

func lists(t *testing.T, c *client.Client, q client.ActivityQuery) error {
	t.Helper()
	_, err := c.Activity().List(t.Context(), q)
	return err
}
