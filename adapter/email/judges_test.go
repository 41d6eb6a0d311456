//go:build unix

package email_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/email"
	"github.com/holdfast-mq/holdfast/internal/mtatest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/notify"
)

// judges are mail servers that many people run, as they come.
func judges(t *testing.T, judge func(t *testing.T, s *mtatest.Server)) {
	t.Helper()
	for name, start := range map[string]func(testing.TB) *mtatest.Server{"exim": mtatest.Exim, "postfix": mtatest.Postfix} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			here, usual := s.Limits()
			if diff := cmp.Diff(usual, here); diff != "" {
				t.Errorf("limits are not the usual ones (-usual +here):\n%s", diff)
			}
			for _, limit := range slices.Sorted(maps.Keys(here)) {
				t.Log(limit, "=", here[limit])
			}
			judge(t, s)
		})
	}
}

// mailing makes attempts for one notification as a channel does, until each
// recipient's end is known. A held channel fails the test.
type mailing struct {
	t     *testing.T
	m     *email.Mailer
	n     *notify.Notification
	to    []notify.Recipient // who is left
	ends  map[string]notify.Delivery
	maybe bool
	tries int
}

func newMailing(t *testing.T, m *email.Mailer, id string, to ...string) *mailing {
	t.Helper()
	n := example()
	n.ID = holdfast.ID(id)
	return &mailing{t: t, m: m, n: n, to: people(to...), ends: map[string]notify.Delivery{}}
}

// attempt makes one, and returns its fault.
func (g *mailing) attempt() *holdfast.Failure {
	g.t.Helper()
	g.tries++
	r := g.m.Send(g.t.Context(), g.n, g.to, func(notify.Part) bool { return true })
	var left []notify.Recipient
	for i, d := range r.To {
		g.maybe = g.maybe || d.Maybe
		if d.Outcome == notify.Accepted || d.Outcome == notify.Refused {
			g.ends[g.to[i].Address] = d
		} else {
			left = append(left, g.to[i])
		}
	}
	g.to = left
	if r.Fault != nil && r.Fault.Outcome == holdfast.LaneFault {
		g.t.Errorf("the channel is held: %v", r.Fault)
	}
	return r.Fault
}

// until makes attempts until nobody is left.
func (g *mailing) until(ctx context.Context) {
	g.t.Helper()
	for len(g.to) > 0 && ctx.Err() == nil && !g.t.Failed() {
		if f := g.attempt(); f != nil {
			select {
			case <-time.After(20 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// arrived waits until each recipient has that many mails, and wants no more.
func arrived(t *testing.T, s *mtatest.Server, want map[string]int) {
	t.Helper()
	var got map[string][]string
	waittest.Until(t, fmt.Sprintf("%d recipients have their mail", len(want)), func() bool {
		got = s.Mails()
		for to, n := range want {
			if len(got[to]) < n {
				return false
			}
		}
		return true
	})
	for to, ids := range got {
		if len(ids) != want[to] {
			t.Errorf("%s has %d mails, want %d: %v", to, len(ids), want[to], ids)
		}
	}
}

// F1-63, F1-60: of 500 recipients with dead ones among them, everybody who can be
// reached has the mail, once, after one attempt; whatever the server does to who
// names so many that it does not know.
func TestJudgesManyRecipients(t *testing.T) {
	t.Parallel()
	judges(t, func(t *testing.T, s *mtatest.Server) {
		t.Helper()
		m := openDial(t, with(object{"port": s.Port}), nil)
		defer m.Close()
		var to []string
		want := map[string]int{}
		for i := range 500 {
			name := fmt.Sprintf("r%d@x.test", i)
			if i >= 150 && i < 174 { // more than Postfix bears in one connection
				name = fmt.Sprintf("dead%d@x.test", i)
			} else {
				want[name] = 1
			}
			to = append(to, name)
		}
		g := newMailing(t, m, "many", to...)
		if f := g.attempt(); f != nil || len(g.to) > 0 {
			t.Errorf("%d recipients are left: %v", len(g.to), f)
		}
		for address, d := range g.ends {
			if (d.Outcome == notify.Refused) != strings.HasPrefix(address, "dead") {
				t.Errorf("%s: %+v", address, d)
			}
		}
		arrived(t, s, want)
	})
}

// F1-60, F1-64: many mails over few connections, those to nobody among them: each
// arrives once, at the first attempt.
func TestJudgesManyMails(t *testing.T) {
	t.Parallel()
	judges(t, func(t *testing.T, s *mtatest.Server) {
		t.Helper()
		m := openDial(t, with(object{"port": s.Port, "connections": 2}), nil)
		defer m.Close()
		want := map[string]int{}
		var all sync.WaitGroup
		for worker := range 4 {
			for i := range 50 {
				want[fmt.Sprintf("r%d-%d@x.test", worker, i)] = 1
			}
			want["all@x.test"] += 50
			all.Go(func() {
				for i := range 50 {
					to := []string{fmt.Sprintf("r%d-%d@x.test", worker, i), "all@x.test"}
					g := newMailing(t, m, fmt.Sprintf("mails-%d-%d", worker, i), to...)
					if i%10 == 0 { // nobody is left of this one
						dead := newMailing(t, m, "dead", "dead@x.test")
						if f := dead.attempt(); f != nil || dead.ends["dead@x.test"].Outcome != notify.Refused {
							t.Errorf("a mail to nobody: %v %+v", f, dead.ends)
						}
					}
					if f := g.attempt(); f != nil || len(g.to) > 0 {
						t.Errorf("%d recipients are left: %v", len(g.to), f)
					}
				}
			})
		}
		all.Wait()
		arrived(t, s, want)
		for to, ids := range s.Mails() {
			if slices.Sort(ids); len(slices.Compact(slices.Clone(ids))) != len(ids) {
				t.Errorf("%s has two mails with one Message-ID", to)
			}
		}
	})
}

// F1-64, E12, E13: who is greylisted gets the mail later, the others at once and
// not again.
func TestJudgesGreylisting(t *testing.T) {
	t.Parallel()
	judges(t, func(t *testing.T, s *mtatest.Server) {
		t.Helper()
		m := openDial(t, with(object{"port": s.Port}), nil)
		defer m.Close()
		s.Grey(true)
		g := newMailing(t, m, "grey", "a@x.test", "grey1@x.test", "b@x.test", "grey2@x.test", "dead@x.test")
		for range 2 {
			if f := g.attempt(); f != nil || len(g.to) != 2 || len(g.ends) != 3 {
				t.Errorf("%d recipients are left, %d have ended: %v", len(g.to), len(g.ends), f)
			}
		}
		s.Grey(false)
		if f := g.attempt(); f != nil || len(g.to) != 0 {
			t.Errorf("%d recipients are left: %v", len(g.to), f)
		}
		arrived(t, s, map[string]int{"a@x.test": 1, "b@x.test": 1, "grey1@x.test": 1, "grey2@x.test": 1})
	})
}

// E57: a mail larger than the server takes is refused before it is sent, and the
// connection goes on.
func TestJudgesSize(t *testing.T) {
	t.Parallel()
	s := mtatest.Postfix(t)
	m := openDial(t, with(object{"port": s.Port, "connections": 1}), nil)
	defer m.Close()
	large := newMailing(t, m, "large", "a@x.test")
	large.n.Body = strings.Repeat("a line of 32 bytes, with its end\n", 330_000)
	if f := large.attempt(); f == nil || f.Outcome != holdfast.Permanent || f.Code != "too_large" {
		t.Errorf("got %+v", f)
	}
	below := newMailing(t, m, "below", "a@x.test")
	below.n.Body = strings.Repeat("a line of 32 bytes, with its end\n", 290_000)
	if f := below.attempt(); f != nil || len(below.to) > 0 {
		t.Errorf("got %+v", f)
	}
	arrived(t, s, map[string]int{"a@x.test": 1})
}

// F1-60, F1-64, NO-20: a server that is killed and started again in the middle:
// everybody has each mail, and one that came twice came with one Message-ID.
func TestJudgesRestarts(t *testing.T) {
	t.Parallel()
	judges(t, func(t *testing.T, s *mtatest.Server) {
		t.Helper()
		m := openDial(t, with(object{"port": s.Port}), nil)
		defer m.Close()
		const workers, each = 4, 40
		var all sync.WaitGroup
		sent := make(chan bool, workers*each)
		var mu sync.Mutex
		maybe := 0
		for worker := range workers {
			all.Go(func() {
				for i := range each {
					g := newMailing(t, m, fmt.Sprintf("restart-%d-%d", worker, i), fmt.Sprintf("w%d@x.test", worker), "all@x.test")
					g.until(t.Context())
					mu.Lock()
					if g.maybe {
						maybe++
					}
					mu.Unlock()
					sent <- true
				}
			})
		}
		for restart := range 2 {
			for range (restart + 1) * workers * each / 4 {
				<-sent
			}
			s.Kill()
			s.Start()
		}
		all.Wait()
		for worker := range workers {
			all := fmt.Sprintf("w%d@x.test", worker)
			waittest.Until(t, all+" has each mail", func() bool { return distinct(s.Mails()[all]) == each })
		}
		waittest.Until(t, "all has each mail", func() bool { return distinct(s.Mails()["all@x.test"]) == workers*each })
		t.Logf("%d answers were lost", maybe)
	})
}

func distinct(ids []string) int {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return len(slices.Compact(ids))
}
