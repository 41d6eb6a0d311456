package link_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/link"
)

// AU-08, F1-93: a site is offline after six missed reports, and its last report is shown with its age, also by
// a central that was started anew.
func TestASiteIsOfflineAfterSixMissedReports(t *testing.T) {
	t.Parallel()
	within(t, func(w *world) {
		p := w.site("plant-7", func(c *link.SiteConfig) {
			c.Report = func(context.Context) link.Health { return link.Health{Node: "plant-7-1", Status: "ok"} }
		})
		p.run(false)
		defer func() { p.stop() }()
		w.eventually(time.Minute, "connected", func() bool { return p.Status().Connected })
		is := func(c *link.Central, state link.SiteState, connected bool, silent, age time.Duration) {
			t.Helper()
			list, err := c.Sites(w.t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("%+v, %v", list, err)
			}
			s := list[0]
			if s.State != state || s.Connected != connected || s.Silent > silent || len(s.Nodes) != 1 || s.Nodes[0].Node != "plant-7-1" || s.Nodes[0].Age > age {
				t.Errorf("the site is %s, connected %t, silent for %s, reported %+v; want %s, silent for at most %s", s.State, s.Connected, s.Silent, s.Nodes, state, silent)
			}
		}
		time.Sleep(time.Hour)
		is(w.central, link.Online, true, time.Minute, time.Minute)
		other, err := link.NewCentral(link.CentralConfig{Store: w.store, Receiver: w.inbox, Destination: "central"})
		if err != nil {
			t.Fatal(err)
		}
		is(other, link.Online, false, 2*time.Minute, 2*time.Minute)
		w.away()
		time.Sleep(2 * time.Minute)
		is(w.central, link.Online, false, 3*time.Minute, 3*time.Minute)
		time.Sleep(2 * time.Minute)
		is(w.central, link.Offline, false, 5*time.Minute, 5*time.Minute)
		is(other, link.Offline, false, 6*time.Minute, 6*time.Minute)
		w.start()
		w.eventually(2*time.Minute, "online again", func() bool {
			list, err := w.central.Sites(w.t.Context())
			return err == nil && len(list) == 1 && list[0].State == link.Online && list[0].Connected
		})
	})
}
