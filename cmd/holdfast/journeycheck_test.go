package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/notify"
)

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
	ctx := j.t.Context()
	var diff string
	for end := time.Now().Add(6 * time.Minute); time.Now().Before(end); pause(ctx, 100*time.Millisecond) {
		if diff = cmp.Diff(atSite, j.messages(ctx)) + cmp.Diff(atCentral, j.notifications(ctx)); diff == "" {
			return
		}
	}
	j.t.Fatalf("what became of messages and notifications (-want +got):\n%s\n%s", diff, j.central.tail())
}

func (j *journey) messages(ctx context.Context) map[string]string {
	states := map[string]string{}
	for site := range j.sites {
		page, err := j.clients[site].Messages().List(ctx, client.MessageQuery{Limit: 500})
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
	page, err := j.clients[people].Notifications().List(ctx, client.NotificationQuery{Limit: 500})
	if err != nil && ctx.Err() == nil {
		j.t.Fatal(err)
	}
	for _, n := range page.Notifications {
		states[n.ID] = strings.TrimSpace(n.Site + " " + n.Status + " " + n.Reason)
	}
	return states
}

// counts compares the numbers that sites and central give for themselves, what
// a site tells the author of each notification, and what central hears of its
// sites.
func (j *journey) counts(atSite, atCentral map[string]string) {
	j.t.Helper()
	kpis, err := j.clients[people].Notifications().KPIs(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	got := map[string]api.KPIs{"": kpis.All}
	for _, k := range kpis.Sites {
		got[k.Site] = k
	}
	want := map[string]api.KPIs{}
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
	for id, state := range atCentral {
		site, state, _ := strings.Cut(state, " ")
		s, err := j.clients[site].Notifications().Status(j.t.Context(), id)
		if err != nil || s.Status != strings.Fields(state)[0] {
			j.t.Errorf("%s says of %s: %s, %v; want %s", site, id, s.Status, err, state)
		}
	}
	for site := range j.sites {
		parked := map[string]string{}
		for id, state := range atSite {
			if to, reason, ok := strings.Cut(state, " parked "); ok && strings.HasPrefix(id, site+"-") {
				parked[id] = to + " " + reason
			}
		}
		stats, err := j.clients[site].OutboxStats(j.t.Context())
		if err != nil || stats != (api.OutboxStats{Failed: int64(len(parked))}) {
			j.t.Errorf("%s counts %+v, %v; want %d parked", site, stats, err, len(parked))
		}
		j.listed(site, parked) // also has the site say anew how it fares
		eventually(j.t, "central hears how "+site+" fares", func() bool {
			list, err := j.clients[people].Sites().List(j.t.Context())
			i := slices.IndexFunc(list, func(s api.Site) bool { return s.Name == site })
			return err == nil && list[i].Connected && list[i].Pending == 0 && list[i].Parked == int64(len(parked))
		})
	}
}

// listed asks a site through central for what is parked there, and why.
func (j *journey) listed(site string, want map[string]string) {
	j.t.Helper()
	var page api.MessagePage
	if err := json.Unmarshal([]byte(succeeds(j.t, "sites", "parked", site, "--all", "--json", "--url", j.central.url())), &page); err != nil {
		j.t.Fatal(err)
	}
	got := map[string]string{}
	for _, m := range page.Messages {
		got[m.ID] = m.Destination + " " + m.Reason
		if m.Category != "external-system" { // of the site's destination; central has none of that name
			j.t.Errorf("%s for %s has the category %q", m.ID, m.Destination, m.Category)
		}
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
	ids := map[string]string{} // beginning of the Message-ID → id of the notification
	for _, p := range j.sent {
		if p.to == people {
			ids[string(notify.MessageID(p.site, holdfast.ID(p.id), ""))] = p.id
		}
	}
	var list struct {
		Total    int
		Messages []struct{ MessageID string }
	}
	j.mail.Get(j.t, "messages?limit=1000", &list)
	n := map[string]int{}
	for _, m := range list.Messages {
		key, _, _ := strings.Cut(m.MessageID, ".")
		id, ok := ids[key]
		if !ok {
			j.t.Errorf("a mail has the Message-ID %s, which is of no notification", m.MessageID)
		}
		n[id]++
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
	d, err := j.clients[people].Notifications().Get(j.t.Context(), "", id)
	if err != nil {
		j.t.Fatal(err)
	}
	return slices.ContainsFunc(d.Copies, func(c api.NotificationCopy) bool { return wasMaybe(c.History) })
}

func wasMaybe(history []api.Event) bool {
	return slices.ContainsFunc(history, func(e api.Event) bool { return e.MaybeReceived })
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
		m, err := j.clients[site].Messages().Get(j.t.Context(), id)
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
