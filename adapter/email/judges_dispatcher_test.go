//go:build unix

package email_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/internal/mtatest"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// central is a store with one channel to a judge, and its dispatcher.
type central struct {
	*testing.T
	db       *sqlite.DB
	channels *notify.Channels
	ingester *notify.Ingester
}

// newCentral has a list of 500 recipients, with dead and grey ones among them, and one of a
// single recipient, and serves their channel until the test ends.
func newCentral(t *testing.T, s *mtatest.Server) *central {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Source: "central", Adopt: true})
	if err != nil {
		t.Fatal(err)
	}
	books := notify.NewDirectoryCache(nodestore.New(db, nil).Directory)
	c := &central{t, db, &notify.Channels{Store: db, Directory: books, Dispatcher: &holdfast.Dispatcher{Store: db, Lanes: db}, Kinds: map[string]notify.Kind{
		"email": {New: func(c notify.Channel) (notify.Adapter, error) { return email.New(c.Settings, email.Options{}) }},
	}}, &notify.Ingester{Store: db, Directory: books}}
	settings, err := json.Marshal(with(object{"port": s.Port}))
	if err != nil {
		t.Fatal(err)
	}
	c.put(nodestore.New(db, nil).Directory.PutChannel(t.Context(), notify.Channel{Name: "mail", Kind: "email", Settings: settings, Retry: notify.Retry{Attempts: 1000, Interval: 100 * time.Millisecond}}, ""))
	var to []notify.Recipient
	for i := range 500 {
		to = append(to, notify.Recipient{Channel: "mail", Address: address(i)})
	}
	c.put(nodestore.New(db, nil).Directory.PutList(t.Context(), notify.List{Name: "all", Recipients: to, Partial: true}, ""))
	c.put(nodestore.New(db, nil).Directory.PutList(t.Context(), notify.List{Name: "one", Recipients: to[:1]}, ""))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run.All(ctx, run.Part{Name: "channels", Run: c.channels.Run}, run.Part{Name: "dispatcher", Run: c.channels.Dispatcher.Run})
	}()
	t.Cleanup(func() {
		cancel()
		c.put(<-ended)
		c.put(db.Close())
	})
	return c
}

// address is one of the list's: four are dead and two are grey, fewer than make
// Postfix slow.
func address(i int) string {
	name := "r"
	switch {
	case i%200 == 50 || i == 51:
		name = "dead"
	case i%250 == 60:
		name = "grey"
	}
	return fmt.Sprintf("%s%d@x.test", name, i)
}

func (c *central) put(err error) {
	c.Helper()
	if err != nil {
		c.Error(err)
	}
}

// send takes a notification in.
func (c *central) send(id, list string) {
	c.Helper()
	payload, err := notify.Encode(notify.Notification{List: list, Subject: id, Body: "Oil."})
	c.put(err)
	_, err = c.ingester.Receive(c.Context(), holdfast.Message{ID: holdfast.ID(id), Source: "plant", Endpoint: notify.Endpoint, Payload: payload})
	c.put(err)
}

// runNow has a notification tried at once.
func (c *central) runNow(id holdfast.ID) {
	c.Helper()
	_, err := c.db.Reschedule(c.Context(), notify.MessageID("plant", id, ""), holdfast.Reschedule{Actor: "kim"})
	c.put(err)
}

// until waits until a notification is as wanted, and fails when the channel is held meanwhile.
func (c *central) until(id, what string, is func(r notify.Record) bool) notify.Record {
	c.Helper()
	var r notify.Record
	waittest.Until(c, id+" "+what, func() bool {
		if s := c.channels.Status()["mail"]; s.Held {
			c.Fatalf("the channel is held: %s", s.Problem)
		}
		list, err := c.db.Notification(c.Context(), "plant", holdfast.ID(id))
		if err != nil || len(list) != 1 {
			c.Fatalf("%s has %d copies, %v", id, len(list), err)
		}
		r = list[0]
		return is(r)
	})
	return r
}

// waits says that all have ended but those who are grey.
func waits(r notify.Record) bool {
	n := 0
	for _, to := range r.Targets {
		if to.Result == notify.Deferred && strings.HasPrefix(to.Address, "grey") {
			n++
		} else if to.Result == notify.Deferred {
			return false
		}
	}
	return n == 2 && r.Status == notify.Retrying
}

func delivered(r notify.Record) bool { return r.Status == notify.Delivered }

// F1-60, F1-63, F1-64, NO-20: a dispatcher with its store brings notifications to 500
// recipients with dead and grey ones among them, over a server that is killed in the
// middle, and while it is away: everybody who can be reached has each mail, once for an
// id and a set of recipients, and the channel is never held.
func TestJudgesADispatcher(t *testing.T) {
	t.Parallel()
	judges(t, func(t *testing.T, s *mtatest.Server) {
		t.Helper()
		c := newCentral(t, s)
		s.Grey(true)
		c.send("first", "all")
		c.until("first", "waits for those who are grey", waits)
		c.send("second", "all") // it is on its way, or about to be
		s.Kill()
		for i := range 20 {
			c.send(fmt.Sprintf("away-%d", i), "one")
		}
		s.Start()
		c.until("second", "waits for those who are grey", waits)
		s.Grey(false)
		for _, id := range []string{"first", "second"} {
			c.runNow(holdfast.ID(id)) // the server asks for 300 seconds
			c.isComplete(c.until(id, "is delivered", delivered))
		}
		want := map[string]int{}
		for i := range 500 {
			if a := address(i); !strings.HasPrefix(a, "dead") {
				want[a] = 2
			}
		}
		for i := range 20 {
			c.until(fmt.Sprintf("away-%d", i), "is delivered", delivered)
			want[address(0)]++
		}
		c.arrived(s, want)
	})
}

// isComplete fails unless all but the dead have accepted.
func (c *central) isComplete(r notify.Record) {
	c.Helper()
	for _, to := range r.Targets {
		if (to.Result == notify.Refused) != strings.HasPrefix(to.Address, "dead") || to.Result == notify.Deferred {
			c.Errorf("%s: %+v", r.Notification.ID, to)
		}
	}
}

// arrived waits until each has a mail of so many notifications, and wants no other. The
// server may have taken one and died before it said so: only so often may it come again
// with other recipients. A Postfix that is killed may itself deliver one mail twice.
func (c *central) arrived(s *mtatest.Server, want map[string]int) {
	c.Helper()
	var got map[string][]string
	waittest.Until(c, "each has a mail of each notification", func() bool {
		got = s.Mails()
		for to, n := range want {
			if distinct(notifications(got[to])) < n {
				return false
			}
		}
		return true
	})
	again := 0
	for to, ids := range got {
		again = max(again, distinct(ids)-want[to])
	}
	if lost := c.lostAnswers(); again > lost {
		c.Errorf("a mail came again %d times, and %d answers were lost", again, lost)
	}
}

// notifications are whose mails these are: what a Message-ID has in front of the set of
// recipients.
func notifications(ids []string) (of []string) {
	for _, id := range ids {
		name, _, _ := strings.Cut(id, ".")
		of = append(of, name)
	}
	return of
}

// lostAnswers counts attempts whose mail the server may have taken.
func (c *central) lostAnswers() (n int) {
	c.Helper()
	ids := []string{"first", "second"}
	for i := range 20 {
		ids = append(ids, fmt.Sprintf("away-%d", i))
	}
	for _, id := range ids {
		list, err := c.db.Notification(c.Context(), "plant", holdfast.ID(id))
		if err != nil {
			c.Fatal(err)
		}
		for _, e := range list[0].History {
			if e.Maybe {
				n++
			}
		}
	}
	return n
}
