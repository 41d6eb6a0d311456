package node_test

import (
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// nextIn returns how long it is until the one delivery of an event is tried next, once it has had an attempt.
func nextIn(t *testing.T, c *client.Client, event string) (in time.Duration) {
	t.Helper()
	waittest.Until(t, "an attempt has failed", func() bool {
		e, err := c.Events().Get(t.Context(), "", event, "")
		if err != nil || len(e.Deliveries) != 1 || e.Deliveries[0].Attempts == 0 || e.Deliveries[0].Next == nil {
			return false
		}
		in = time.Until(*e.Deliveries[0].Next)
		return true
	})
	return in
}

// An operator sets the usual schedule while the node runs, for what waits or not, by choice (WH-04).
func TestTheScheduleIsSetAtRunTime(t *testing.T) {
	t.Parallel()
	c, s := hooked(t, "shop")
	usual, err := c.Schedule(t.Context())
	if err != nil || usual.From != "configuration" || usual.Factor != "1s" || usual.Version != "" || len(usual.Timetable) != 8 || usual.Timetable[2].After != "5s" {
		t.Fatalf("as configured: %+v, %v", usual, err)
	}
	set := func(factor, apply, version string) (api.UsualSchedule, error) {
		return c.SetSchedule(t.Context(), api.UsualScheduleSpec{Factor: factor, Apply: apply, Version: version})
	}
	slow, err := set("2h", "", "")
	if err != nil || slow.From != "operator" || slow.Actor != "local" || slow.Factor != "2h" || slow.Apply != "next" || slow.Moving || slow.Timetable[1].Wait != "2h" {
		t.Fatalf("set: %+v, %v", slow, err)
	}
	s.answers(500)
	event := publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"}).ID
	if in := nextIn(t, c, event); in < time.Hour {
		t.Errorf("it is tried again in %s", in)
	}
	again, err := set("2h", "next", slow.Version)
	if err != nil || again.Version != slow.Version {
		t.Errorf("set again as it was: %+v, %v", again, err)
	}
	slower, err := set("5h", "next", slow.Version)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set("1s", "waiting", slow.Version); err == nil {
		t.Error("who has seen a former version has changed it")
	}
	if in := nextIn(t, c, event); in < time.Hour || in > 2*time.Hour {
		t.Errorf("what waited is tried in %s: it was not to move", in)
	}
	s.answers(200)
	moved, err := set("1s", "waiting", slower.Version)
	if err != nil || moved.Apply != "waiting" || !moved.Moving {
		t.Errorf("set for what waits: %+v, %v", moved, err)
	}
	waittest.Until(t, "what waited comes", func() bool {
		e, err := c.Events().Get(t.Context(), "", event, "")
		return err == nil && e.Deliveries[0].State == "delivered"
	})
	event = func() string {
		s.answers(500)
		if _, err := set("3h", "next", ""); err != nil {
			t.Fatal(err)
		}
		return publish(t, c, api.NewEvent{Topic: "orders", Type: "order.paid"}).ID
	}()
	if in := nextIn(t, c, event); in < 2*time.Hour {
		t.Errorf("it is tried again in %s", in)
	}
	s.answers(200)
	back, err := c.ResetSchedule(t.Context(), "waiting")
	if err != nil || back.From != "configuration" || back.Factor != "1s" || !back.Moving || back.Actor != "local" {
		t.Errorf("given up: %+v, %v", back, err)
	}
	waittest.Until(t, "what waited comes as the node is configured", func() bool {
		e, err := c.Events().Get(t.Context(), "", event, "")
		return err == nil && e.Deliveries[0].State == "delivered"
	})
	if again, err := c.ResetSchedule(t.Context(), ""); err != nil || again.Version != back.Version {
		t.Errorf("given up again: %+v, %v", again, err)
	}
	if _, err := set("-1s", "sometimes", ""); err == nil {
		t.Error("a schedule that is none was taken")
	}
}
