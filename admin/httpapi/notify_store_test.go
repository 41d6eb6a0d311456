package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var (
	_ admin.NotificationLog = notify.Store(nil)
	_ admin.ChannelOffice   = (*notify.Channels)(nil)
)

// central is a server over a real file and real channels, whose last hop is a
// function of the test.
func central(t *testing.T) (*fixture, *notify.Ingester, *reception) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Source: "central"})
	if err != nil {
		t.Fatal(err)
	}
	people := &reception{}
	books := notify.NewDirectoryCache(nodestore.New(db, nil).Directory)
	channels := &notify.Channels{Store: db, Directory: books, Dispatcher: &holdfast.Dispatcher{Store: db, Lanes: db}, Kinds: map[string]notify.Kind{"desk": {
		New: func(c notify.Channel) (notify.Adapter, error) {
			if !strings.Contains(string(c.Settings), "floor") {
				return nil, &holdfast.FieldError{Field: "settings.floor", Problem: "is missing"}
			}
			return people, nil
		},
		CheckAddress: func(address string) error {
			if address == "" {
				return errors.New("it is empty")
			}
			return nil
		},
	}}}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- run.All(ctx, run.Part{Name: "channels", Run: channels.Run}, run.Part{Name: "dispatcher", Run: channels.Dispatcher.Run})
	}()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-ended, db.Close()); err != nil {
			t.Error(err)
		}
	})
	f := serve(t, func(s *httpapi.Server) {
		s.Outbox, s.Enqueuer, s.Notify, s.Directory, s.Channels = db, db, db, books.Store(), channels
	})
	return f, &notify.Ingester{Store: db, Directory: books}, people
}

// reception refuses everybody whose address begins with no, until it is mended.
type reception struct{ mended atomic.Bool }

func (d *reception) Send(_ context.Context, _ *notify.Notification, to []notify.Recipient, _ func(notify.Part) bool) notify.Report {
	r := notify.Report{Server: "floor 3"}
	for _, p := range to {
		got := notify.Delivery{Outcome: notify.Accepted, Code: "ok"}
		if strings.HasPrefix(p.Address, "no") && !d.mended.Load() {
			got = notify.Delivery{Outcome: notify.Refused, Code: "unknown", Text: "nobody of this name"}
		}
		r.To = append(r.To, got)
	}
	return r
}

func (*reception) Close() {}

// NO-16, NO-10 and issue 5 from end to end: what is made by the API is used
// without a restart, and a person's retry asks only those who did not accept.
func TestChannelsListsAndDecisionsOfARealCentral(t *testing.T) {
	t.Parallel()
	f, ingester, people := central(t)
	if p := problem(t, f.do(t, call{method: "PUT", path: "/v1/channels/a", body: `{"kind":"desk"}`})); p.Status != 422 || p.Errors[0].Field != "settings.floor" {
		t.Errorf("got %+v", p)
	}
	if p := problem(t, f.do(t, call{method: "PUT", path: "/v1/channels/a", body: `{"kind":"fax"}`})); p.Status != 422 || p.Errors[0].Field != "kind" {
		t.Errorf("got %+v", p)
	}
	for _, name := range []string{"a", "b"} {
		ok[api.Channel](t, f, call{method: "PUT", path: "/v1/channels/" + name, body: `{"kind":"desk","settings":{"floor": 3}}`})
	}
	if p := problem(t, f.do(t, call{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[{"channel":"a"}]}`})); p.Status != 422 || p.Errors[0].Field != "recipients[0].address" {
		t.Errorf("got %+v", p)
	}
	made := ok[api.List](t, f, call{method: "PUT", path: "/v1/lists/ops", body: `{"recipients":[{"channel":"b","address":"nora"},{"channel":"a","address":"jane"},{"channel":"b","address":"eve"}]}`})
	if got := f.list(t, "ops").Version; got != made.Version {
		t.Errorf("got version %s, want %s: what is stored is what was sent", got, made.Version)
	}
	payload, err := notify.Encode(notify.Notification{List: "ops", Subject: "Hot", Body: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingester.Receive(t.Context(), holdfast.Message{ID: "n1", Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	if d := f.until(t, "delivered parked"); d.Status != "parked" || d.Retries != 0 || !strings.Contains(d.LastError, "nobody of this name") {
		t.Errorf("got %+v", d)
	}
	if p := problem(t, f.do(t, call{method: "POST", path: "/v1/notifications/n1/retry", body: `{"channel":"a"}`})); p.Status != 409 {
		t.Errorf("got %+v, want the delivered copy left", p)
	}
	if k := ok[api.NotificationKPIs](t, f, call{method: "GET", path: "/v1/notifications/kpis"}); k.All.Parked != 1 || k.Sites[0].Site != "plant-7" {
		t.Errorf("got %+v", k)
	}
	people.mended.Store(true)
	ok[api.DecidedNotification](t, f, call{method: "POST", path: "/v1/notifications/n1/retry"})
	standing := f.until(t, "delivered delivered")
	attempts := map[string]int{}
	for _, c := range standing.Copies {
		for _, r := range c.Recipients {
			attempts[r.Address] = r.Attempts
		}
	}
	if got := fmt.Sprint(attempts); got != "map[eve:1 jane:1 nora:2]" {
		t.Errorf("got attempts %s, want only the one who refused asked again", got)
	}
	page := ok[api.NotificationPage](t, f, call{method: "GET", path: "/v1/notifications?status=delivered&site=plant-7&subject=hot&limit=1"})
	if len(page.Notifications) != 1 || page.Next == "" {
		t.Errorf("got %+v", page)
	}
	if r := ok[api.TestResult](t, f, call{method: "POST", path: "/v1/channels/a/test", body: `{"address":"jane"}`}); !r.Accepted || r.Server != "floor 3" {
		t.Errorf("got %+v", r)
	}
	ok[api.Channel](t, f, call{method: "POST", path: "/v1/channels/a/resume"})
}

// until waits for the statuses of both copies of the notification n1.
func (f *fixture) until(t *testing.T, want string) (d api.NotificationDetail) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		d = ok[api.NotificationDetail](t, f, call{method: "GET", path: "/v1/notifications/n1"})
		var is []string
		for _, c := range d.Copies {
			is = append(is, c.Status)
		}
		if strings.Join(is, " ") == want {
			return d
		}
		select {
		case <-ctx.Done():
			t.Fatalf("got %+v, want %s", d, want)
		case <-tick.C:
		}
	}
}
