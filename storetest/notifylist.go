package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// notificationLists returns the cases of lists, numbers and purges.
func notificationLists() map[string]func(k *kit) {
	return map[string]func(k *kit){
		// NO-18.
		"each filter narrows the list": filters,
		// NO-18.
		"a list of thousands comes in pages, newest first, once each": notePages,
		// NO-17.
		"the numbers are those of the tables": kpis,
		// NO-15.
		"a purged message leaves what it was": archived,
		// NO-15.
		"notifications are kept for their own time": notesPurged,
		// NO-01, NO-15: the message is gone, the id is known.
		"the id of a purged message is known": func(k *kit) {
			k.ingest(note("n", "plant-1", "mail"), note("newest", "plant-1", "mail"))
			k.wins(k.oneOf("mail"), delivered())
			k.pass(8 * 24 * time.Hour)
			k.purge(holdfast.Retention{Delivered: 7 * 24 * time.Hour})
			results, err := k.Ingest(k.ctx(), note("n", "plant-1", "mail"))
			if err != nil {
				k.t.Fatal(err)
			}
			equal(k, "results", results, []holdfast.Result{{Receipt: holdfast.Receipt{ID: "n", State: holdfast.Delivered, Duplicate: true}}})
			if _, err := k.Get(k.ctx(), copyOf("n", "")); !errors.Is(err, holdfast.ErrNotFound) {
				k.t.Errorf("got %v: there is a message again", err)
			}
		},
		"a position that no page gave is refused": func(k *kit) {
			for _, after := range []string{"!", "-1", "99999999999999999999", "xyz"} {
				if _, err := k.Notifications(k.ctx(), notify.Query{After: after}); !errors.Is(err, holdfast.ErrInvalid) {
					k.t.Errorf("%q: got %v, want ErrInvalid", after, err)
				}
			}
			k.unknown("nobody")
		},
	}
}

// everyNote lists every page.
func (k *kit) everyNote(q notify.Query) (list []notify.Record) {
	k.t.Helper()
	for range 1000 {
		p, err := k.Notifications(k.ctx(), q)
		if err != nil {
			k.t.Fatal(err)
		}
		list = append(list, p.Records...)
		if p.Next == "" {
			return list
		}
		q.After = p.Next
	}
	k.t.Fatal("the list has no end")
	return nil
}

func noteIDs(list []notify.Record) []holdfast.ID {
	ids := []holdfast.ID{}
	for _, r := range list {
		ids = append(ids, r.Notification.ID)
	}
	return ids
}

// stand makes one notification of each status, an hour apart, and returns when each came.
func (k *kit) stand() {
	k.t.Helper()
	for _, s := range []notify.Status{notify.Delivered, notify.Discarded, notify.Parked, notify.Retrying, notify.Pending} {
		in := note(holdfast.ID(s), "plant-1", "mail")
		in.Notification.Subject = "It is " + string(s)
		if s == notify.Retrying || s == notify.Parked {
			in = note(holdfast.ID(s), "plant-2", "mail")
			in.Notification.Type, in.Notification.List, in.Notification.Origin.Script = "Report", "bosses", "daily"
		}
		k.ingest(in)
		if s != notify.Pending {
			k.wins(k.oneOf("mail"), map[notify.Status]holdfast.Settlement{
				notify.Delivered: delivered(), notify.Discarded: parked(), notify.Parked: parked(), notify.Retrying: failed(24 * time.Hour),
			}[s])
		}
		if s == notify.Discarded {
			k.discard(in.Messages[0].ID)
		}
		k.pass(time.Hour)
	}
	k.ingest(note("young", "plant-1", "chat"))
	k.put(holdfast.Message{ID: "ordinary"})
}

func filters(k *kit) {
	k.stand()
	// A little earlier: a time for people is not exact to the microsecond.
	old := func() time.Time { return k.shown("parked")[0].Created.Add(-time.Second) }
	for name, c := range map[string]struct {
		q    notify.Query
		want []holdfast.ID
	}{
		"nothing":            {notify.Query{}, []holdfast.ID{"young", "pending", "retrying", "parked", "discarded", "delivered"}},
		"pending":            {notify.Query{Status: []notify.Status{notify.Pending}}, []holdfast.ID{"young", "pending"}},
		"retrying":           {notify.Query{Status: []notify.Status{notify.Retrying}}, []holdfast.ID{"retrying"}},
		"parked, delivered":  {notify.Query{Status: []notify.Status{notify.Delivered, notify.Parked}}, []holdfast.ID{"parked", "delivered"}},
		"discarded":          {notify.Query{Status: []notify.Status{notify.Discarded}}, []holdfast.ID{"discarded"}},
		"forwarding":         {notify.Query{Status: []notify.Status{notify.Forwarding}}, []holdfast.ID{}},
		"channel":            {notify.Query{Channel: "chat"}, []holdfast.ID{"young"}},
		"list":               {notify.Query{List: "bosses"}, []holdfast.ID{"retrying", "parked"}},
		"type":               {notify.Query{Type: "Report"}, []holdfast.ID{"retrying", "parked"}},
		"script":             {notify.Query{Script: "daily"}, []holdfast.ID{"retrying", "parked"}},
		"site":               {notify.Query{Site: "plant-2"}, []holdfast.ID{"retrying", "parked"}},
		"site and status":    {notify.Query{Site: "plant-2", Status: []notify.Status{notify.Parked}}, []holdfast.ID{"parked"}},
		"words":              {notify.Query{Subject: "DELIVER it"}, []holdfast.ID{"delivered"}},
		"a word that is not": {notify.Query{Subject: "it was"}, []holdfast.ID{}},
		"from":               {notify.Query{From: old()}, []holdfast.ID{"young", "pending", "retrying", "parked"}},
		"to":                 {notify.Query{To: old()}, []holdfast.ID{"discarded", "delivered"}},
		"from and to":        {notify.Query{From: old(), To: old().Add(time.Minute)}, []holdfast.ID{"parked"}},
		"before all":         {notify.Query{To: old().Add(-24 * time.Hour)}, []holdfast.ID{}},
		"stuck":              {notify.Query{OnlyStuck: true, StuckAfter: 90 * time.Minute}, []holdfast.ID{"retrying"}},
		"stuck and status":   {notify.Query{OnlyStuck: true, StuckAfter: 10 * time.Minute, Status: []notify.Status{notify.Pending}}, []holdfast.ID{"pending"}},
	} {
		equal(k, name, noteIDs(k.everyNote(c.q)), c.want)
		c.q.Limit = 1
		equal(k, name+", one by one", noteIDs(k.everyNote(c.q)), c.want)
	}
	for _, r := range k.everyNote(notify.Query{StuckAfter: 10 * time.Minute}) {
		if want := r.Notification.ID == "pending" || r.Notification.ID == "retrying"; r.Stuck != want {
			k.t.Errorf("%s is stuck: %t", r.Notification.ID, r.Stuck)
		}
		if r.Notification.Body != "" || r.History != nil || r.Targets != nil {
			k.t.Errorf("a list shows %+v", r)
		}
	}
}

func notePages(k *kit) {
	const n = 5500
	var list []incoming
	var want []holdfast.ID
	for i := range n {
		in := note(holdfast.ID(fmt.Sprintf("n-%04d", i)), fmt.Sprint("plant-", i%5), "mail")
		in.Notification.Subject = fmt.Sprintf("Number %04d", i)
		if list = append(list, in); len(list) == 500 {
			k.ingest(list...)
			list = list[:0]
		}
		want = append([]holdfast.ID{in.Notification.ID}, want...)
		if i%400 == 0 {
			k.put(holdfast.Message{ID: holdfast.ID(fmt.Sprint("between-", i)), Destination: "z"})
		}
	}
	k.winAll(k.claimOf(notify.LanePrefix+"mail", 1000), delivered())
	equal(k, "all", noteIDs(k.everyNote(notify.Query{Limit: 333})), want)
	equal(k, "not delivered", noteIDs(k.everyNote(notify.Query{Status: []notify.Status{notify.Pending}, Limit: 500})), want[:n-1000])
	equal(k, "delivered", noteIDs(k.everyNote(notify.Query{Status: []notify.Status{notify.Delivered}, Limit: 77})), want[n-1000:])
	if got := k.everyNote(notify.Query{Site: "plant-3", Limit: 50}); len(got) != n/5 {
		k.t.Errorf("%d of one site, want %d", len(got), n/5)
	}
	equal(k, "one of all", noteIDs(k.everyNote(notify.Query{Subject: "number 0007"})), []holdfast.ID{"n-0007"})
	p, err := k.Notifications(k.ctx(), notify.Query{Subject: "number 0007"})
	if err != nil || len(p.Records) > 0 || p.Next == "" || p.LookedUntil.IsZero() {
		k.t.Errorf("got %d records until %v, next %q, %v; want none yet, and how far it looked", len(p.Records), p.LookedUntil, p.Next, err)
	}
	p, err = k.Notifications(k.ctx(), notify.Query{Limit: 9999})
	if err != nil || len(p.Records) != 500 {
		k.t.Errorf("a page has %d records, %v, want 500", len(p.Records), err)
	}
	p, err = k.Notifications(k.ctx(), notify.Query{})
	if err != nil || len(p.Records) != 50 || !p.LookedUntil.IsZero() {
		k.t.Errorf("a page has %d records, %v, want 50", len(p.Records), err)
	}
}

func (k *kit) numbers(want notify.KPIs, sites map[string]notify.KPIs) {
	k.t.Helper()
	all, each, err := k.KPIs(k.ctx(), 90*time.Minute, time.Minute)
	if err != nil {
		k.t.Fatal(err)
	}
	round := func(n *notify.KPIs) { n.Oldest = n.Oldest.Round(time.Minute) }
	round(&all)
	for site, n := range each {
		round(&n)
		each[site] = n
	}
	equal(k, "numbers of all", all, want)
	equal(k, "numbers of each site", each, sites)
}

func kpis(k *kit) {
	k.numbers(notify.KPIs{}, map[string]notify.KPIs{})
	k.ingest(note("first", "plant-1", "mail"))
	k.numbers(notify.KPIs{Depth: 1}, map[string]notify.KPIs{"plant-1": {Depth: 1}})
	k.wins(k.oneOf("mail"), delivered())
	k.numbers(notify.KPIs{Delivered: 1}, map[string]notify.KPIs{"plant-1": {Delivered: 1}})
	k.pass(2 * time.Minute)
	k.numbers(notify.KPIs{}, map[string]notify.KPIs{})
	k.stand()
	k.ingest(note("many", "plant-3", "mail", "chat"))
	sites := map[string]notify.KPIs{
		"plant-1": {Depth: 2, Oldest: time.Hour}, "plant-2": {Depth: 1, Stuck: 1, Parked: 1, Oldest: 2 * time.Hour}, "plant-3": {Depth: 2},
	}
	k.numbers(notify.KPIs{Depth: 5, Stuck: 1, Parked: 1, Oldest: 2 * time.Hour}, sites)
	c := k.claimOf(notify.LanePrefix+"chat", 10)
	k.numbers(notify.KPIs{Depth: 5, Stuck: 1, Parked: 1, Oldest: 2 * time.Hour}, sites)
	k.winAll(c, delivered())
	// A notification that has failed before is not settled like the others.
	k.wins(k.oneOf("mail"), failed(0))
	k.wins(k.oneOf("mail"), delivered())
	sites["plant-1"] = notify.KPIs{Depth: 1, Delivered: 1, Oldest: time.Hour}
	sites["plant-3"] = notify.KPIs{Depth: 1, Delivered: 1}
	all, each, err := k.KPIs(k.ctx(), 90*time.Minute, time.Minute)
	if err != nil || all.Depth != 2 || all.Delivered != 3 || each["plant-1"].Delivered+each["plant-3"].Delivered != 3 {
		k.t.Errorf("got %+v, %+v, %v", all, each, err)
	}
	k.reopen()
	again, _, err := k.KPIs(k.ctx(), 90*time.Minute, time.Minute)
	if again.Oldest, all.Oldest = 0, 0; err != nil || again != all {
		k.t.Errorf("opened again: %+v, %v, want %+v", again, err, all)
	}
}

// retention is so short that everything final is purged.
func retention() holdfast.Retention {
	return holdfast.Retention{Delivered: time.Hour, Expired: time.Hour, Discarded: time.Hour, Parked: time.Hour}
}

func archived(k *kit) {
	k.stand()
	err := k.RecordTargets(k.ctx(), copyOf("delivered", ""), notify.Target{Channel: "mail", Address: "a@example.org", Result: notify.Accepted, Receipt: "Q1"})
	if err != nil {
		k.t.Fatal(err)
	}
	ids := []holdfast.ID{"delivered", "discarded", "parked"}
	before := map[holdfast.ID]notify.Record{}
	for _, id := range ids {
		before[id] = k.shown(id)[0]
	}
	k.pass(24 * time.Hour)
	if n := k.purge(retention()); n != len(ids) {
		k.t.Fatalf("%d messages purged, want %d", n, len(ids))
	}
	for _, id := range ids {
		want, got := before[id], k.shown(id)[0]
		want.History = nil
		for _, at := range []struct{ got, want *time.Time }{
			{&got.Created, &want.Created}, {&got.Ended, &want.Ended}, {&got.LastAttempt, &want.LastAttempt},
		} {
			if d := at.got.Sub(*at.want); d.Abs() > time.Second {
				k.t.Errorf("%s: a time is %s off", id, d)
			}
			*at.got = *at.want
		}
		for i := range got.Targets {
			got.Targets[i].At = want.Targets[i].At
		}
		equal(k, "archive of "+string(id), got, want)
	}
	equal(k, "list", noteIDs(k.everyNote(notify.Query{Status: []notify.Status{notify.Delivered, notify.Discarded, notify.Parked}})),
		[]holdfast.ID{"parked", "discarded", "delivered"})
	equal(k, "list of parked ones", noteIDs(k.everyNote(notify.Query{Status: []notify.Status{notify.Parked}})), []holdfast.ID{"parked"})
	all, _, err := k.KPIs(k.ctx(), time.Minute, time.Minute)
	if err != nil || all.Depth != 3 || all.Parked != 0 {
		k.t.Errorf("numbers: %+v, %v", all, err)
	}
}

// forget purges notifications until none are left to purge.
func (k *kit) forget(keep time.Duration) (total int) {
	k.t.Helper()
	for range 100 {
		n, more, err := k.PurgeNotifications(k.ctx(), keep)
		if err != nil {
			k.t.Fatal(err)
		}
		if total += n; !more {
			return total
		}
	}
	k.t.Fatal("the purge has no end")
	return 0
}

func notesPurged(k *kit) {
	const year = 365 * 24 * time.Hour
	k.stand()
	k.ingest(note("both", "plant-1", "a", "b"))
	k.wins(k.oneOf("a"), delivered())
	err := k.RecordTargets(k.ctx(), copyOf("delivered", ""), notify.Target{Channel: "mail", Address: "a@example.org", Result: notify.Accepted})
	if err != nil {
		k.t.Fatal(err)
	}
	if n := k.forget(time.Nanosecond); n != 0 {
		k.t.Errorf("%d went before their messages", n)
	}
	k.pass(year / 2)
	k.purge(retention())
	if n := k.forget(year); n != 0 {
		k.t.Errorf("%d went too early", n)
	}
	k.pass(year)
	if n := k.forget(0); n != 0 {
		k.t.Errorf("%d went though they are kept for ever", n)
	}
	if n := k.forget(year); n != 3 {
		k.t.Errorf("%d went, want 3: the other copy of one of them waits", n)
	}
	for _, id := range []holdfast.ID{"delivered", "discarded", "parked"} {
		k.unknown(id)
	}
	if got := len(k.shown("both")); got != 2 {
		k.t.Errorf("%d copies of one of which one waits", got)
	}
	k.statusIs("pending", notify.Pending)
	k.wins(k.oneOf("b"), delivered())
	k.put(holdfast.Message{ID: "newest"})
	k.pass(2 * year)
	k.purge(retention())
	if n := k.forget(year); n != 2 {
		k.t.Errorf("%d went, want both copies", n)
	}
	k.ingest(note("delivered", "plant-2", "mail")) // its id is free
	if got := k.shown("delivered")[0]; len(got.Targets) != 0 {
		k.t.Errorf("recipients of its forerunner are left: %v", got.Targets)
	}
}

// books returns the cases of channels and lists.
func books() map[string]func(k *kit) {
	return map[string]func(k *kit){
		"channels and lists are kept as they were put": booksKept,
		// NO-16.
		"who has not seen the present one changes nothing": meanwhile,
		"what has no name, or a recipient twice, is refused": func(k *kit) {
			twice := notify.List{Name: "l", Recipients: []notify.Recipient{{Channel: "mail", Address: "a"}, {Channel: "mail", Address: "a", Name: "again"}}}
			for what, err := range map[string]error{
				"channel without a name": k.PutChannel(k.ctx(), notify.Channel{}, ""), "list without a name": k.PutList(k.ctx(), notify.List{}, ""),
				"recipient twice": k.PutList(k.ctx(), twice, ""),
			} {
				if !errors.Is(err, holdfast.ErrInvalid) {
					k.t.Errorf("%s: got %v, want ErrInvalid", what, err)
				}
			}
			for what, err := range map[string]error{"channel": k.DeleteChannel(k.ctx(), "x", 1, ""), "list": k.DeleteList(k.ctx(), "x", 1, "")} {
				if !errors.Is(err, holdfast.ErrNotFound) {
					k.t.Errorf("%s: got %v, want ErrNotFound", what, err)
				}
			}
			if v, err := k.DirectoryVersion(k.ctx()); v != 0 || err != nil {
				k.t.Errorf("version %d, %v: nothing has changed", v, err)
			}
		},
	}
}
