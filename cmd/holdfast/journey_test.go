package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin"
)

// TestJourney lets two sites send to people, to a program and to two databases
// while central, the mail server and the program are away, break or say
// nothing. Everything arrives once or is parked with its reason, what is parked
// arrives when a person retries it, and the counts are the same at every place
// (SF-01, SF-02, SF-03, SF-19, NO-01, NO-06, NO-17, NO-20).
func TestJourney(t *testing.T) {
	t.Parallel()
	j := newJourney(t)
	parts := j.plan(4)
	j.during(parts[0], func() {}, func() bool { return true }, func() {})
	j.during(parts[1], func() {
		if err := j.central.end(); err != nil {
			t.Errorf("stop central: %v\n%s", err, j.central.tail())
		}
		j.target.feel(broken)
	}, func() bool {
		return j.target.seen[broken].Load() > 0 && j.waits("plant-1") && j.waits("plant-2")
	}, func() {
		j.target.feel(well)
		j.central.running()
	})
	j.during(parts[2], func() {
		j.mail.Stop()
		j.target.feel(silent)
	}, func() bool {
		page, err := j.clients[people].Notifications(t.Context(), admin.NotificationQuery{Statuses: []string{"retrying"}})
		return err == nil && len(page.Notifications) > 0 && j.target.seen[silent].Load() > 0
	}, func() {
		j.target.feel(well)
		j.mail.Start()
	})
	j.during(parts[3], func() { j.target.feel(broken) }, func() bool { return j.target.seen[refusing].Load() > 0 }, func() { j.target.feel(well) })
	j.agree(true)
	j.mend()
	j.agree(false)
	for _, p := range []*child{j.sites["plant-1"], j.sites["plant-2"], j.central} {
		if err := p.end(); err != nil {
			t.Errorf("stop: %v\n%s", err, p.tail())
		}
	}
}

// plan is what is sent, in parts that follow each other.
func (j *journey) plan(parts int) [][]parcel {
	list := make([][]parcel, parts)
	for i := range 60 {
		for site := range j.sites {
			for to, n := range map[string]int{people: 60, mes: 60, postgres: 40, mariadb: 40, press: 1} {
				if i >= n {
					continue
				}
				p := parcel{site: site, to: to, id: fmt.Sprintf("%s-%s-%d", site, to, i)}
				switch {
				case to == mes && i%10 == 3, to == people && i%30 == 7:
					p.parks = "permanent"
				case to == press:
					p.parks = "exhausted"
				}
				list[i%parts] = append(list[i%parts], p)
			}
		}
	}
	return list
}

// during sends a part, in the middle of which an outage begins, and ends that
// when it was seen.
func (j *journey) during(part []parcel, begin func(), seen func() bool, end func()) {
	j.t.Helper()
	third := len(part) / 3
	j.sendAll(part[:third])
	var meanwhile sync.WaitGroup
	meanwhile.Go(func() { j.sendAll(part[third : 2*third]) })
	begin()
	meanwhile.Wait()
	j.sendAll(part[2*third:])
	eventually(j.t, "an outage is noticed", seen)
	end()
}

func (j *journey) sendAll(list []parcel) {
	var all sync.WaitGroup
	defer all.Wait()
	for w := range 8 {
		all.Go(func() {
			for i := w; i < len(list); i += 8 {
				j.send(j.t.Context(), list[i], i)
			}
		})
	}
}

// waits tells whether notifications of a site cannot go on.
func (j *journey) waits(site string) bool {
	page, err := j.clients[site].Messages(j.t.Context(), admin.MessageQuery{Destination: people, States: []string{"pending"}, Limit: 1})
	return err == nil && len(page.Messages) > 0
}

// mend takes away what was in the way, and retries through central all that is
// parked.
func (j *journey) mend() {
	j.t.Helper()
	j.target.refuse(false)
	for site := range j.sites {
		ids := strings.Fields(succeeds(j.t, "sites", "parked", site, "--all", "-q", "--url", j.central.url()))
		succeeds(j.t, append([]string{"sites", "retry", site, "--url", j.central.url()}, ids...)...)
	}
	if _, err := j.clients[people].PutList(j.t.Context(), "gone", admin.ListSpec{Recipients: []admin.Recipient{{Channel: "mail", Address: "jane@plant.test"}}}); err != nil {
		j.t.Fatal(err)
	}
	ids := strings.Fields(succeeds(j.t, "notifications", "ls", "--status", "parked", "--all", "-q", "--url", j.central.url()))
	succeeds(j.t, append([]string{"notifications", "retry", "--url", j.central.url()}, ids...)...)
}

// agree waits until nothing is under way any more, and compares every place
// with the ledger. parked: what is in the way of some still stands.
func (j *journey) agree(parked bool) {
	j.t.Helper()
	arrives := map[string][]string{} // by destination
	atSite, atCentral := map[string]string{}, map[string]string{}
	for _, p := range j.sent {
		reason := p.parks
		if !parked {
			reason = ""
		}
		if reason == "" {
			arrives[p.to] = append(arrives[p.to], p.id)
		}
		if p.to == people {
			atCentral[p.id] = p.site + " " + stateOf(reason)
			reason = "" // for the site it has arrived
		}
		atSite[p.id] = p.to + " " + stateOf(reason)
	}
	j.settle(atSite, atCentral)
	j.counts(atSite, atCentral)
	j.mails(arrives[people])
	j.effects(append(arrives[mes], arrives[press]...))
	for to, db := range j.rows {
		var ids []string
		rows, err := db.QueryContext(j.t.Context(), "select id from orders")
		if err != nil {
			j.t.Fatal(err)
		}
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				j.t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if err := rows.Err(); err != nil {
			j.t.Fatal(err)
		}
		j.same("rows in "+to, arrives[to], ids)
	}
}

func stateOf(reason string) string {
	if reason == "" {
		return "delivered"
	}
	return "parked " + reason
}

// settle waits until each message and each copy of a notification stands as it
// must.
func (j *journey) settle(atSite, atCentral map[string]string) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), 2*time.Minute)
	defer cancel()
	var diff string
	for ctx.Err() == nil {
		diff = cmp.Diff(atSite, j.messages(ctx)) + cmp.Diff(atCentral, j.notifications(ctx))
		if diff == "" {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
	j.t.Fatalf("what became of messages and notifications (-want +got):\n%s\n%s", diff, j.central.tail())
}

func (j *journey) messages(ctx context.Context) map[string]string {
	states := map[string]string{}
	for site := range j.sites {
		page, err := j.clients[site].Messages(ctx, admin.MessageQuery{Limit: 500})
		if err != nil && ctx.Err() == nil {
			j.t.Fatal(err)
		}
		for _, m := range page.Messages {
			states[m.ID] = strings.TrimSpace(m.Destination + " " + m.State + " " + m.Reason)
		}
	}
	return states
}

func (j *journey) notifications(ctx context.Context) map[string]string {
	states := map[string]string{}
	page, err := j.clients[people].Notifications(ctx, admin.NotificationQuery{Limit: 500})
	if err != nil && ctx.Err() == nil {
		j.t.Fatal(err)
	}
	for _, n := range page.Notifications {
		states[n.ID] = strings.TrimSpace(n.Site + " " + n.Status + " " + n.Reason)
	}
	return states
}

// counts compares the numbers that sites and central give for themselves, and
// what central hears of its sites.
func (j *journey) counts(atSite, atCentral map[string]string) {
	j.t.Helper()
	kpis, err := j.clients[people].NotificationKPIs(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	got := map[string]admin.KPIs{"": kpis.All}
	for _, k := range kpis.Sites {
		got[k.Site] = k
	}
	want := map[string]admin.KPIs{}
	for _, state := range atCentral {
		site, state, _ := strings.Cut(state, " ")
		for _, of := range []string{"", site} {
			k := want[of]
			k.Site = of
			if state == "delivered" {
				k.Delivered++
			} else {
				k.Parked++
			}
			want[of] = k
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		j.t.Errorf("numbers of central (-want +got):\n%s", diff)
	}
	for site := range j.sites {
		parked := map[string]string{}
		for id, state := range atSite {
			if to, reason, ok := strings.Cut(state, " parked "); ok && strings.HasPrefix(id, site+"-") {
				parked[id] = to + " " + reason
			}
		}
		stats, err := j.clients[site].OutboxStats(j.t.Context())
		if err != nil || stats != (admin.OutboxStats{Failed: int64(len(parked))}) {
			j.t.Errorf("%s counts %+v, %v; want %d parked", site, stats, err, len(parked))
		}
		j.listed(site, parked) // also has the site say anew how it fares
		eventually(j.t, "central hears how "+site+" fares", func() bool {
			list, err := j.clients[people].Sites(j.t.Context())
			i := slices.IndexFunc(list, func(s admin.Site) bool { return s.Name == site })
			return err == nil && list[i].State == "connected" && list[i].Pending == 0 && list[i].Parked == int64(len(parked))
		})
	}
}

// listed asks a site through central for what is parked there, and why.
func (j *journey) listed(site string, want map[string]string) {
	j.t.Helper()
	var page admin.MessagePage
	if err := json.Unmarshal([]byte(succeeds(j.t, "sites", "parked", site, "--all", "--json", "--url", j.central.url())), &page); err != nil {
		j.t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range page.Messages {
		got[m.ID] = m.Destination + " " + m.Reason
		status := map[string]string{"permanent": "422", "exhausted": "500"}[m.Reason]
		if !strings.Contains(m.LastError, status) {
			j.t.Errorf("%s is parked with %q, want the status %s in it", m.ID, m.LastError, status)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		j.t.Errorf("parked at %s (-want +got):\n%s", site, diff)
	}
}

// mails compares what the mail server has: once each, or twice with one
// Message-ID where an answer was lost.
func (j *journey) mails(want []string) {
	j.t.Helper()
	var list struct {
		Total    int
		Messages []struct{ MessageID string }
	}
	j.mail.Get(j.t, "messages?limit=1000", &list)
	n := map[string]int{}
	for _, m := range list.Messages {
		n[strings.TrimSuffix(m.MessageID, "@plant.test")]++
	}
	j.same("mails", want, slices.Collect(maps.Keys(n)))
	again := 0
	for id, n := range n {
		again += n - 1
		if n > 1 && !j.maybe(id) {
			j.t.Errorf("%d mails of %s, and no answer was lost", n, id)
		}
	}
	if list.Total != len(want)+again {
		j.t.Errorf("the mail server counts %d mails, want %d and %d again", list.Total, len(want), again)
	}
}

// maybe tells whether an attempt of a notification is marked so at central.
func (j *journey) maybe(id string) bool {
	j.t.Helper()
	d, err := j.clients[people].Notification(j.t.Context(), id)
	if err != nil {
		j.t.Fatal(err)
	}
	return slices.ContainsFunc(d.Copies, func(c admin.NotificationCopy) bool { return wasMaybe(c.History) })
}

func wasMaybe(history []admin.Event) bool {
	return slices.ContainsFunc(history, func(e admin.Event) bool { return e.MaybeReceived })
}

// effects compares what the target has done: a call comes again only where its
// answer was lost.
func (j *journey) effects(want []string) {
	j.t.Helper()
	j.target.mu.Lock()
	defer j.target.mu.Unlock()
	j.same("effects of calls", want, slices.Collect(maps.Keys(j.target.effects)))
	for id, n := range j.target.calls {
		if n == 1 {
			continue
		}
		site, _, _ := strings.Cut(id, "-mes-")
		m, err := j.clients[site].Message(j.t.Context(), id)
		if err != nil || !wasMaybe(m.History) {
			j.t.Errorf("%s was called %d times, and no answer was lost: %v", id, n, err)
		}
	}
}

func (j *journey) same(what string, want, got []string) {
	j.t.Helper()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		j.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
