package email_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// Fact A4: a sender that is refused five times in a row, wherever servers say
// so, is the channel's fault, until a mail is taken; what is refused for another reason is not.
func TestASenderThatIsRefusedHoldsAtTheFifthTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		phase, reply string
		counts       bool
	}{
		"MAIL":             {"MAIL", "550 5.7.60 not allowed to send as alarm@plant.test", true},
		"MAIL, no code":    {"MAIL", "553 sorry", true},
		"RCPT":             {"RCPT", "553 5.7.1 <alarm@plant.test>: Sender address rejected: not owned by user", true},
		"after the dot":    {".", "550 5.7.60 SMTP; Client does not have permissions to send as this sender", true},
		"size at MAIL":     {"MAIL", "552 5.3.4 too large", false},
		"nobody there":     {"RCPT", "550 5.1.1 no such user", false},
		"spam":             {".", "550 5.7.1 spam", false},
		"sender, for now":  {"MAIL", "451 4.1.8 sender's domain not found", false},
		"recipient's wish": {"RCPT", "550 5.7.1 you may not write to me", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fine atomic.Bool
			s := &server{answer: func(_ int, line string) string {
				if strings.HasPrefix(line, c.phase) && !fine.Load() {
					return c.reply
				}
				return ""
			}}
			m := open(t, with(nil), s)
			refused := func(times, holds int) {
				t.Helper()
				for i := range times {
					r := m.Send(t.Context(), example(), people("a@x.test", "b@x.test"), nil)
					held := r.Fault != nil && r.Fault.Outcome == holdfast.LaneFault
					if want := c.counts && i >= holds; held != want || held && !strings.Contains(r.Fault.Error(), "from address") {
						t.Errorf("time %d: %s %v", i+1, told(r), r.Fault)
					}
				}
			}
			refused(7, 4)
			fine.Store(true)
			if got := told(m.Send(t.Context(), example(), people("a@x.test"), nil)); got != "accepted" {
				t.Error(got)
			}
			fine.Store(false)
			refused(6, 4)
			m.Close()
			s.ending.Wait()
		})
	}
}

// A4: a sender that is refused parks a few notifications, and not one after the
// other until nobody is told anything; Resume goes on.
func TestARefusedSenderHoldsTheChannel(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Source: "central", SaneAfter: time.Unix(1, 0), Adopt: true})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		var fine atomic.Bool
		s := &server{answer: func(_ int, line string) string {
			if strings.HasPrefix(line, "MAIL") && !fine.Load() {
				return "550 5.7.60 send-as denied"
			}
			return ""
		}}
		books := notify.NewDirectoryCache(nodestore.New(db, nil).Directory)
		ingester := &notify.Ingester{Store: db, Directory: books}
		channels := &notify.Channels{Store: db, Directory: books, Dispatcher: &holdfast.Dispatcher{Store: db, Lanes: db}, Kinds: map[string]notify.Kind{"email": {
			New: func(c notify.Channel) (notify.Adapter, error) {
				return email.New(c.Settings, email.Options{DialContext: s.dial})
			},
		}}}
		settings, err := json.Marshal(with(nil))
		if err != nil {
			t.Fatal(err)
		}
		if err := nodestore.New(db, nil).Directory.PutChannel(t.Context(), notify.Channel{Name: "mail", Kind: "email", Settings: settings, Retry: notify.Retry{Attempts: 10, Interval: time.Minute}}, ""); err != nil {
			t.Fatal(err)
		}
		if err := nodestore.New(db, nil).Directory.PutList(t.Context(), notify.List{Name: "ops", Recipients: people("a@x.test")}, ""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- run.All(ctx, run.Part{Name: "channels", Run: channels.Run}, run.Part{Name: "dispatcher", Run: channels.Dispatcher.Run})
		}()
		payload, err := notify.Encode(notify.Notification{List: "ops", Subject: "Press 4 stopped", Body: "Oil."})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			m := holdfast.Message{ID: holdfast.ID(fmt.Sprint("n", i)), Source: "plant-7", Endpoint: notify.Endpoint, Payload: payload}
			if _, err := ingester.Receive(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		count := func() map[notify.Status]int {
			n := map[notify.Status]int{}
			page, err := db.Notifications(t.Context(), notify.Query{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Records {
				n[r.Status]++
			}
			return n
		}
		time.Sleep(time.Hour)
		if n := count(); n[notify.Parked] > 4 || n[notify.Delivered] > 0 {
			t.Errorf("after an hour: %v", n)
		}
		if s := channels.Status()["mail"]; !s.Held || !strings.Contains(s.Problem, "send-as denied") {
			t.Errorf("the channel is %+v", s)
		}
		if faults, err := db.LaneFaults(t.Context()); err != nil || len(faults) != 1 {
			t.Errorf("the faults that are kept: %+v, %v", faults, err)
		}
		fine.Store(true)
		if err := channels.Resume(t.Context(), "mail"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := count(); n[notify.Delivered] < 46 || n[notify.Delivered]+n[notify.Parked] != 50 {
			t.Errorf("after Resume: %v", n)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
		s.ending.Wait()
	})
}
