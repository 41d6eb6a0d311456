package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// mostWaiting is how many notifications may be accepted and not yet mailed:
// producers wait, so that a slow machine is not left with a mountain.
const mostWaiting = 500

// TestKillSiteAndCentral kills two sites and their central with SIGKILL at
// random, under load, while the mail server leaves answers out, and then
// counts what the mail server has: every notification that a site accepted; a
// second mail only where the answer to the first was lost or central was
// killed meanwhile, with the same Message-ID (NO-01, NO-19, NO-20, SF-01,
// SF-19). The number of cycles is half of -cycles, and 12 at least: each
// waits until mails arrive again.
func TestKillSiteAndCentral(t *testing.T) {
	racetest.Without(t, "the step chaos kills them more often")
	dir := t.TempDir()
	box := newPostbox(t)
	central := centralNode(t, dir, box.port, "")
	sites := map[string]*child{}
	for _, name := range []string{"plant-1", "plant-2"} {
		sites[name] = siteNode(t, dir, name, central, "")
	}
	clients := []*client.Client{asked(t, sites["plant-1"]), asked(t, sites["plant-2"])}
	atCentral := asked(t, central)
	ctx, stopProducers := context.WithCancel(t.Context())
	defer stopProducers()
	var producers sync.WaitGroup
	for name, site := range sites {
		for n := range 4 {
			producers.Go(func() { box.notify(ctx, site, fmt.Sprintf("%s-%d", name, n)) })
		}
	}
	kills := map[string]int{}
	for range max(12, *cycles/2) {
		site := []string{"plant-1", "plant-2"}[rand.IntN(2)]
		victims := map[string]*child{"central": central, site: sites[site]}
		switch rand.IntN(3) { // else both
		case 0:
			delete(victims, "central")
		case 1:
			delete(victims, site)
		}
		for name, p := range victims {
			p.kill()
			kills[name]++
		}
		box.afterKill(victims["central"] != nil)
		for _, p := range victims {
			p.start()
		}
		if rand.IntN(4) != 0 { // else it is hit again while it comes up
			before := box.arrived()
			eventuallyWithin(t, "mails arrive again", time.Minute, func() bool { return box.arrived() > before || box.waiting() <= 0 })
		}
		pause(t.Context(), time.Duration(rand.IntN(300))*time.Millisecond)
	}
	stopProducers()
	producers.Wait()
	eventuallyWithin(t, "nothing is under way any more", 3*time.Minute, func() bool { return idle(t, atCentral, clients) })
	box.check(t, kills)
	wantDelivered(t, atCentral, box.accepted)
	for _, p := range []*child{sites["plant-1"], sites["plant-2"], central} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
}

// idle tells whether sites and then central have nothing left.
func idle(t *testing.T, central *client.Client, sites []*client.Client) bool {
	t.Helper()
	for _, site := range sites {
		stats, err := site.OutboxStats(t.Context())
		if err != nil || stats.Pending+stats.Sending > 0 {
			return false
		}
	}
	kpis, err := central.Notifications().KPIs(t.Context())
	return err == nil && kpis.All.Depth == 0
}

// wantDelivered compares what the sites have accepted with the rows of central.
func wantDelivered(t *testing.T, central *client.Client, accepted map[string]string) {
	t.Helper()
	found := map[string]bool{}
	for after, more := "", true; more; more = after != "" {
		page, err := central.Notifications().List(t.Context(), client.NotificationQuery{Limit: 500, After: after})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range page.Notifications {
			if site, ok := accepted[n.ID]; !ok || found[n.ID] || n.Site != site || n.Status != "delivered" {
				t.Errorf("central has %s of %s as %s, want it once, of %q, delivered", n.ID, n.Site, n.Status, site)
			}
			found[n.ID] = true
		}
		after = page.Next
	}
	if len(found) != len(accepted) {
		t.Errorf("central has %d notifications, want %d", len(found), len(accepted))
	}
}

// postbox is a mail server inside the test, which no kill reaches, and the
// ledger of what was accepted. It is used concurrently.
type postbox struct {
	t    *testing.T
	port int

	mu       sync.Mutex
	life     int               // of central, from 0
	accepted map[string]string // notification id → site
	mails    map[string][]taken
	taken    int // mails in all
}

// taken is a mail that the postbox has.
type taken struct {
	life   int  // central's, that it is from
	silent bool // central was not told
}

func newPostbox(t *testing.T) *postbox {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &postbox{t: t, port: l.Addr().(*net.TCPAddr).Port, accepted: map[string]string{}, mails: map[string][]taken{}}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		return &delivery{box: b, conn: c, life: b.life}, nil
	}))
	server.Domain, server.ErrorLog = "mail.test", quiet{}
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = server.Close()
		ended.Wait()
	})
	return b
}

// quiet leaves out what a server says of connections that kills have cut.
type quiet struct{}

func (quiet) Printf(string, ...any) {}

func (quiet) Println(...any) {}

// delivery is a session of one life of central's: whoever begins one after a
// kill is the next.
type delivery struct {
	box  *postbox
	conn *smtp.Conn
	life int
	to   []string
}

func (d *delivery) Reset() { d.to = nil }

func (d *delivery) Logout() error { return nil }

func (d *delivery) Mail(string, *smtp.MailOptions) error { return nil }

func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error {
	d.to = append(d.to, to)
	return nil
}

// Data takes a whole mail, and hangs up instead of an answer to each twentieth.
func (d *delivery) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, m.Body); err != nil {
		return err // cut off in the middle: nobody has that mail
	}
	id, site := m.Header.Get("X-Notification-Id"), m.Header.Get("X-Source-Site")
	want := fmt.Sprintf("<%s.", notify.MessageID(site, holdfast.ID(id), ""))
	if got := m.Header.Get("Message-Id"); !strings.HasPrefix(got, want) || !strings.HasPrefix(id, site+"-") || len(d.to) != 2 {
		d.box.t.Errorf("notification %s of %s came as %s to %v", id, site, got, d.to)
	}
	d.box.mu.Lock()
	d.box.taken++
	silent := d.box.taken%20 == 0
	d.box.mails[id] = append(d.box.mails[id], taken{d.life, silent})
	d.box.mu.Unlock()
	if silent {
		_ = d.conn.Conn().Close()
	}
	return nil
}

// notify sends notifications one after the other, each until it is accepted:
// an id without an answer is sent again.
func (b *postbox) notify(ctx context.Context, site *child, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("%s-%d", name, n)
		body := fmt.Sprintf(`{"id": %q, "list": "operators", "subject": "Batch %s"}`, id, id)
		for !submitTo(site.url()+"/v1/notifications", body) {
			// Goes on after the stop of the producers until the answer is there.
			if pause(b.t.Context(), 5*time.Millisecond); b.t.Context().Err() != nil {
				return
			}
		}
		b.mu.Lock()
		b.accepted[id] = name[:strings.LastIndexByte(name, '-')]
		b.mu.Unlock()
		pause(ctx, time.Duration(rand.IntN(15))*time.Millisecond)
		for b.waiting() >= mostWaiting && ctx.Err() == nil {
			pause(ctx, 20*time.Millisecond)
		}
	}
}

// afterKill is called between a kill and the next start.
func (b *postbox) afterKill(ofCentral bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ofCentral {
		b.life++
	}
}

func (b *postbox) arrived() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mails)
}

// waiting counts those that were accepted and not mailed.
func (b *postbox) waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.accepted) - len(b.mails)
}

// check compares the ledger with the mails.
func (b *postbox) check(t *testing.T, kills map[string]int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	silent, cut := 0, 0
	for id := range b.accepted {
		if len(b.mails[id]) == 0 {
			t.Errorf("%s was accepted and is lost", id)
		}
	}
	for id, list := range b.mails {
		if _, ok := b.accepted[id]; !ok {
			t.Errorf("%s was mailed and never accepted", id)
		}
		for i, m := range list[:len(list)-1] {
			switch {
			case m.silent:
				silent++
			case list[i+1].life > m.life:
				cut++
			default:
				t.Errorf("%s was mailed again, and its answer was not lost: %+v", id, list)
			}
		}
	}
	// Central has four mails in hand at most, over one channel.
	if cut > 4*kills["central"] {
		t.Errorf("%d mails came again after %d kills of central, want 4 each at most", cut, kills["central"])
	}
	if silent == 0 || len(kills) < 2 || len(b.accepted) < 100 {
		t.Errorf("%d answers were lost, kills %v, %d notifications: the test did not test", silent, kills, len(b.accepted))
	}
	t.Logf("kills %v, %d notifications accepted, %d mailed; again: %d whose answer was lost, %d in hand at a kill", kills, len(b.accepted), len(b.mails), silent, cut)
}
