package chat_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/chat"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// deliver brings one notification over a channel, on a real file, and returns
// how it stands after a while.
func deliver(t *testing.T, kind string, settings object, s *secrets, dial dialer, after time.Duration, addresses ...string) notify.Record {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Source: "central", SaneAfter: time.Unix(1, 0), Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(db, nil).Directory.PutChannel(t.Context(), notify.Channel{Name: "c", Kind: kind, Settings: raw, Retry: notify.Retry{Attempts: 3, Interval: time.Minute}}, ""); err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(db, nil).Directory.PutList(t.Context(), notify.List{Name: "ops", Recipients: to(addresses...)}, ""); err != nil {
		t.Fatal(err)
	}
	books := notify.NewDirectoryCache(nodestore.New(db, nil).Directory)
	channels := &notify.Channels{Store: db, Directory: books, Dispatcher: &holdfast.Dispatcher{Store: db, Lanes: db}, Kinds: map[string]notify.Kind{kind: {
		New: func(c notify.Channel) (notify.Adapter, error) {
			return chat.New(c.Kind, c.Settings, chat.Options{Secret: s.read, DialContext: dial})
		},
		CheckAddress: func(address string) error { return chat.CheckAddress(kind, address) },
	}}}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run.All(ctx, run.Part{Name: "channels", Run: channels.Run}, run.Part{Name: "dispatcher", Run: channels.Dispatcher.Run})
	}()
	payload, err := notify.Encode(notify.Notification{List: "ops", Subject: "Press 4 stopped", Body: "Oil."})
	if err != nil {
		t.Fatal(err)
	}
	id := holdfast.NewID()
	if _, err := (&notify.Ingester{Store: db, Directory: books}).Receive(t.Context(), holdfast.Message{ID: id, Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	copies, err := db.Notification(t.Context(), "plant-7", id)
	if err != nil || len(copies) != 1 {
		t.Fatalf("got %d copies, %v", len(copies), err)
	}
	return copies[0]
}

// H3, H7: a server that is asked too often says when to come again. The next
// attempt is not before that, and however often it says so, the notification
// keeps its budget of three.
func TestTooManyRequestsCostNoBudget(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var asked []time.Time
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if asked = append(asked, time.Now()); len(asked) <= 4 {
				answer(429, "rate_limited", "Retry-After", "90")(w, r)
				return
			}
			answer(200, "ok")(w, r)
		})
		got := deliver(t, "slack", own("slack", inside), keep(inside), dial, 10*time.Minute, "")
		if got.Status != notify.Delivered || got.Failures != 0 || len(asked) != 5 {
			t.Errorf("it is %s after %d requests, with %d failures", got.Status, len(asked), got.Failures)
		}
		for i := 1; i < len(asked); i++ {
			if wait := asked[i].Sub(asked[i-1]); wait < 90*time.Second {
				t.Errorf("request %d came after %s", i, wait)
			}
		}
	})
}

// E61, H12: only what has not accepted is asked again, and not what refused.
func TestOnlyTheOneThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]int{}
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			mu.Lock()
			asked[r.URL.Path]++
			status := map[string]int{"/good": 200, "/bad": 503, "/gone": 410}[r.URL.Path]
			if asked["/bad"] == 3 && r.URL.Path == "/bad" {
				status = 204
			}
			mu.Unlock()
			w.WriteHeader(status)
		})
		got := deliver(t, "webhook", object{"signing": []object{named("sign")}, "targets": object{
			"good": object{"url": inside + "/good"}, "bad": object{"url": inside + "/bad"}, "gone": object{"url": inside + "/gone"},
		}}, keep(inside), dial, 10*time.Minute, "good", "bad", "gone")
		if diff := cmp.Diff(map[string]int{"/good": 1, "/bad": 3, "/gone": 1}, asked); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if got.Status != notify.Parked || !strings.Contains(got.LastError, "wants no more") {
			t.Errorf("it is %s: %s", got.Status, got.LastError)
		}
	})
}

// A channel whose only room is gone is held, not the notification spent; when
// the URL is replaced, it arrives.
func TestADeadRoomHoldsItsChannel(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		s := keep(inside)
		began := time.Now()
		dial := inMemory(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/new" {
				answer(404, "no_service")(w, r)
				return
			}
			answer(200, "ok")(w, r)
		})
		time.AfterFunc(5*time.Minute, func() { s.put("url", inside+"/new") })
		got := deliver(t, "slack", own("slack", inside), s, dial, 10*time.Minute, "")
		if got.Status != notify.Delivered || got.Failures != 0 || got.Ended.Sub(began) < 5*time.Minute {
			t.Errorf("it is %s with %d failures: %s", got.Status, got.Failures, got.LastError)
		}
	})
}
