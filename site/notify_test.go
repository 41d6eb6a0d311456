package site_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/site"
)

// NO-04, SF-19, SF-26: the id comes at once and leads from the script to central;
// the site says where it stands while it has it, then central is asked. Its
// author cannot say that it is of another site.
func TestANotificationIsForwarded(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		to := &target{answer: says(errBusy)}
		atCentral := map[holdfast.ID]notify.Standing{}
		var away error
		p := run(t, t.TempDir(), func(c *site.Config) {
			c.Name, c.Central = "", holdfast.Route{Deliverer: to}
			c.Ask = func(_ context.Context, id holdfast.ID) (notify.Standing, error) {
				is, ok := atCentral[id]
				if away == nil && !ok {
					return is, holdfast.ErrNotFound
				}
				return is, away
			}
		})
		defer p.stop()
		began := time.Now()
		id, err := p.Notify("operators").Type("alarm").From(notify.Origin{Site: "elsewhere", Instance: "tank-4", Script: "level.lua", Execution: "7"}).
			Data(map[string]int{"level": 98}).Send(t.Context(), "Tank 4\nis full", "Level 98 %.")
		if err != nil || time.Since(began) != 0 {
			t.Fatalf("got %q, %v after %s", id, err, time.Since(began))
		}
		status := func() notify.Standing {
			t.Helper()
			is, err := p.NotificationStatus(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		time.Sleep(time.Minute + time.Second)
		if is := status(); is.ID != id || is.Status != notify.Forwarding || is.Retries != 2 || !strings.Contains(is.LastError, "503") || !is.Enqueued.Equal(began) {
			t.Errorf("while central is away: got %+v", is)
		}
		to.become(nil)
		time.Sleep(time.Minute)
		calls, _ := to.made()
		n, err := notify.Decode(calls[0])
		if err != nil {
			t.Fatal(err)
		}
		o := n.Origin
		if n.ID != id || n.List != "operators" || n.Type != "alarm" || n.Subject != "Tank 4 is full" || n.Body != "Level 98 %." || string(n.Data) != `{"level":98}` ||
			o.Site != "$unknown-site" || o.Instance != "tank-4" || o.Script != "level.lua" || o.Execution != "7" || !o.Enqueued.Equal(began) {
			t.Errorf("central got %+v", n)
		}

		if _, err := p.NotificationStatus(t.Context(), id); !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("central has it and does not show it: got %v, want ErrUnavailable", err)
		}
		atCentral[id] = notify.Standing{ID: id, Status: notify.Delivered}
		if is := status(); is.Status != notify.Delivered {
			t.Errorf("from central: got %+v", is)
		}
		away = errors.New("no route to host")
		if _, err := p.NotificationStatus(t.Context(), id); !errors.Is(err, holdfast.ErrUnavailable) || !strings.Contains(err.Error(), "no route to host") {
			t.Errorf("central is away: got %v, want ErrUnavailable", err)
		}
		away = nil
		if _, err := p.NotificationStatus(t.Context(), "other"); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("unknown: got %v, want ErrNotFound", err)
		}
		if _, err := p.Status(t.Context(), id); !errors.Is(err, holdfast.ErrNotFound) {
			t.Errorf("a notification is no operation: got %v, want ErrNotFound", err)
		}
	})
}

// SF-14, NO-04: an id that the author gives is the notification's.
func TestANotificationWithAnIDIsSentOnce(t *testing.T) {
	t.Parallel()
	p := open(t, t.TempDir(), func(*site.Config) {})
	defer p.stop()
	for range 2 {
		if id, err := p.Notify("operators").ID("tank-4").Send(t.Context(), "full", ""); id != "tank-4" || err != nil {
			t.Errorf("got %q, %v", id, err)
		}
	}
	if _, err := p.Notify("operators").ID("tank-4").Send(t.Context(), "empty", ""); !errors.Is(err, holdfast.ErrConflict) {
		t.Errorf("other content: got %v, want ErrConflict", err)
	}
	if n := p.db.Counts().Pending; n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
	for field, d := range map[string]site.Draft{
		"list": p.Notify("no such name"), "data": p.Notify("l").Data(func() {}), "sourceScript": p.Notify("l").From(notify.Origin{Script: "\x00"}),
	} {
		if _, err := d.Send(t.Context(), "s", ""); !errors.Is(err, holdfast.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v", field, err)
		}
	}
}

// SF-20: what a site has parked waits there for a person, and says so.
func TestANotificationThatIsParkedAtItsSite(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		refused := &holdfast.Failure{Outcome: holdfast.Permanent, Reason: holdfast.ReasonUndecodable, Code: "undecodable", Err: errors.New("unknown field")}
		p := run(t, t.TempDir(), func(c *site.Config) { c.Central = holdfast.Route{Deliverer: &target{answer: says(refused)}} })
		defer p.stop()
		id, err := p.Notify("operators").Send(t.Context(), "full", "")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if is, err := p.NotificationStatus(t.Context(), id); err != nil || is.Status != notify.Parked || is.LastError != "unknown field" {
			t.Errorf("got %+v, %v", is, err)
		}
	})
}
