package fanout_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A day of these tests is an hour, so that they take a moment.
const (
	day  = time.Hour
	hour = day / 24
)

// hub is a store with subscriptions, and what their subscribers answer.
type hub struct {
	*testing.T
	db    *sqlite.DB
	kept  *nodestore.Fanout
	began time.Time

	mu      sync.Mutex
	answers map[string]func(at time.Duration) bool // since the beginning; absent: yes
	got     map[string]int
}

func inVirtualTime(t *testing.T, test func(h *hub)) {
	t.Helper()
	racetest.Bubble(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		test(&hub{T: t, db: db, kept: nodestore.New(db, nil).Fanout, began: time.Now(), answers: map[string]func(time.Duration) bool{}, got: map[string]int{}})
	})
}

func (h *hub) subscribe(id, topic string, answers func(at time.Duration) bool) {
	h.Helper()
	h.mu.Lock()
	h.answers[id] = answers
	h.mu.Unlock()
	if _, err := h.kept.PutSubscription(h.Context(), fanout.Subscription{ID: id, Topics: []string{topic}, Settings: fanout.Settings{URL: "https://example.com/" + id}}, "anna"); err != nil {
		h.Fatal(err)
	}
}

func (h *hub) deliver(id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if answers := h.answers[id]; answers != nil && !answers(time.Since(h.began)) {
		return &holdfast.Failure{Outcome: holdfast.Transient, Code: "http_500", Err: errors.New("HTTP 500")}
	}
	h.got[id]++
	return nil
}

// run runs a node, to which an event comes four times a day, for a while of virtual time.
func (h *hub) run(d time.Duration) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), d)
	defer cancel()
	book := fanout.NewBook(h.kept, nil)
	dispatcher := &holdfast.Dispatcher{Store: h.db, Lanes: h.db}
	disabler := &fanout.Disabler{Book: book, After: 5 * day, Node: "plant"}
	schedule := fanout.DefaultSchedule()
	schedule.Factor, schedule.Cap = time.Second, hour
	routes := &fanout.Routes{
		Book: book, Dispatcher: dispatcher, Disabler: disabler, Schedule: schedule, Timeout: time.Second, Gone: func(error) bool { return false },
		Deliverer: func(ask func(context.Context) (fanout.Subscription, error)) holdfast.Deliverer {
			return holdfast.DelivererFunc(func(ctx context.Context, _ holdfast.Message) (holdfast.Receipt, error) {
				s, err := ask(ctx)
				if err == nil {
					err = h.deliver(s.ID)
				}
				return holdfast.Receipt{}, err
			})
		},
	}
	publisher := &fanout.Publisher{Bundles: h.db, Book: book, Source: "shop"}
	var parts sync.WaitGroup
	for _, run := range []func(context.Context) error{dispatcher.Run, routes.Run, disabler.Run, func(ctx context.Context) error {
		tick := time.NewTicker(6 * hour)
		defer tick.Stop()
		for ctx.Err() == nil {
			if _, err := publisher.Publish(ctx, fanout.Event{Topic: "orders", Data: []byte("1")}); err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		return nil
	}} {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				h.Error(err)
			}
		})
	}
	parts.Wait()
}

func (h *hub) now(id string) fanout.Subscription {
	h.Helper()
	s, err := h.kept.SubscriptionAt(h.Context(), id, 1<<62)
	if err != nil {
		h.Fatal(err)
	}
	return s
}

// A subscription that has taken nothing for five days, while attempts failed, is disabled, whatever restarts there are. What it has
// waits, and comes when somebody resumes it. One that takes something now and then is not, nor is one that nobody calls.
func TestASubscriptionThatNeverAnswersIsDisabled(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "ten days in virtual time")
	inVirtualTime(t, func(h *hub) {
		for _, name := range []string{"orders", "quiet"} {
			if _, err := h.kept.PutTopic(h.Context(), fanout.Topic{Name: name}, "anna"); err != nil {
				h.Fatal(err)
			}
		}
		h.subscribe("dead", "orders", func(at time.Duration) bool { return at > 8*day })
		h.subscribe("flaky", "orders", func(at time.Duration) bool { return at%(4*day) < 7*hour })
		h.subscribe("healthy", "orders", nil)
		h.subscribe("quiet", "quiet", func(time.Duration) bool { return false })
		if _, err := (&fanout.Publisher{Bundles: h.db, Book: fanout.NewBook(h.kept, nil), Source: "shop"}).Publish(h.Context(), fanout.Event{Topic: "quiet", Data: []byte("1")}); err != nil {
			h.Fatal(err)
		}
		h.run(2*day + 11*hour)
		h.run(2 * day)
		if s := h.now("dead"); s.State != fanout.Active {
			h.Fatalf("after four days: %+v", s)
		}
		h.run(4 * day)
		dead := h.now("dead")
		if after := dead.Since.Sub(h.began); dead.State != fanout.Disabled || dead.Actor != "node plant" || !strings.Contains(dead.Why, "since 2000-01-01T00:0") || after < 5*day || after > 5*day+7*hour {
			h.Errorf("after eight days: %s by %q since %s: %s", dead.State, dead.Actor, after, dead.Why)
		}
		for _, id := range []string{"flaky", "healthy", "quiet"} {
			if s := h.now(id); s.State != fanout.Active {
				h.Errorf("%s is %s: %s", id, s.State, s.Why)
			}
		}
		waits := h.db.Counts().Lanes[fanout.Lane("dead")].Pending
		if waits == 0 || h.got["dead"] != 0 {
			h.Errorf("%d messages wait, %d were taken", waits, h.got["dead"])
		}
		dead.State, dead.Why, dead.Actor = fanout.Active, "it is back", "anna"
		if _, err := h.kept.PutSubscription(h.Context(), dead, "anna"); err != nil {
			h.Fatal(err)
		}
		h.run(2*day + hour) // between two events
		if left := h.db.Counts().Lanes[fanout.Lane("dead")].Pending; left != 0 || int64(h.got["dead"]) < waits || h.now("dead").State != fanout.Active {
			h.Errorf("resumed: %d of %d wait, %d were taken, it is %s", left, waits, h.got["dead"], h.now("dead").State)
		}
		if list, err := h.kept.Failing(h.Context(), day, "", 9); err != nil || len(list) != 2 {
			h.Errorf("known to fail: %+v, %v, want flaky and quiet", list, err)
		}
	})
}
