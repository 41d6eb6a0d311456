package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// notifications tests what notifications need from a store.
func notifications(t *testing.T, m Maker) {
	t.Helper()
	m.meet(t, map[string]func(k *kit){
		// NO-01: the first answer was lost, and the site sends again.
		"one of many that ingest the same id at once is first": ingestedAtOnce,
	})
	m.run(t, map[string]func(k *kit){
		"what was ingested is shown and claimed": ingestedAsItWas,
		// NO-01.
		"an id that is known is a duplicate, with its present state": ingestedTwice,
		// NO-01; SF-19.
		"the same id with other content is a conflict": ingestConflicts,
		// F1-05.
		"the same id from another site is another notification":  ingestOfTwoSites,
		"a conflict in the middle of a batch stops nothing else": conflictInABatch,
		"what no store takes is refused by itself":               ingestInvalid,
		"no notifications are no error": func(k *kit) {
			if r, err := k.Ingest(k.ctx()); err != nil || len(r) != 0 {
				k.t.Errorf("got %v, %v", r, err)
			}
		},
		"a cancelled context stores nothing": func(k *kit) {
			ctx, cancel := cancelled(k.t)
			defer cancel()
			if _, err := k.Ingest(ctx, note("n", "plant-1", "mail")); err == nil {
				k.t.Error("no error")
			}
			k.unknown("n")
		},
		// NO-03, NO-16.
		"the status is that of the message": statusFollowsTheMessage,
		// F1-44, F1-80.
		"what a person decides about copies": decidedAboutCopies,
		// NO-02, NO-06.
		"recipients are kept, and one that has accepted stays so": targetsStay,
		"hostile texts are kept or cleaned, and break nothing":    hostileTexts,
	})
	m.run(t, notificationLists())
	m.run(t, books())
}

// incoming is a notification that is to be stored.
type incoming struct {
	Notification notify.Notification
	Hash         [32]byte
	Payload      []byte
	Messages     []holdfast.Message // one for each channel
	Channels     []string
}

func (in *incoming) bundle() holdfast.Bundle {
	return notify.BundleOf(&in.Notification, in.Hash, in.Payload, in.Messages, in.Channels)
}

// note is a notification of a site, with a copy for each channel.
func note(id holdfast.ID, site string, channels ...string) incoming {
	return copiesOf(notify.Notification{
		ID: id, Type: "Alarm", List: "ops", Subject: "Pump 3 stopped", Body: "It stopped.\nÄ",
		Origin: notify.Origin{Site: site, Script: "pumps"},
	}, channels...)
}

func copiesOf(n notify.Notification, channels ...string) incoming {
	payload, err := notify.Encode(n)
	if err != nil {
		panic(err)
	}
	in := incoming{Notification: n, Payload: payload, Channels: channels, Hash: sha256.Sum256([]byte(n.List + "\x00" + n.Subject + "\x00" + n.Body))}
	for i, c := range channels {
		m := holdfast.Message{
			ID: n.Key(), Source: n.Origin.Site, Destination: notify.LanePrefix + c, Endpoint: notify.Endpoint, Kind: holdfast.Command,
		}
		if i > 0 {
			m.ID = notify.MessageID(n.Origin.Site, n.ID, c)
		}
		in.Messages = append(in.Messages, m)
	}
	return in
}

// Ingest stores notifications.
func (k *kit) Ingest(ctx context.Context, list ...incoming) ([]holdfast.Result, error) {
	bundles := make([]holdfast.Bundle, len(list))
	for i := range list {
		bundles[i] = list[i].bundle()
	}
	return k.Bundle(ctx, bundles...)
}

// ingest stores notifications and fails unless each is new.
func (k *kit) ingest(list ...incoming) {
	k.t.Helper()
	results, err := k.Ingest(k.ctx(), list...)
	if err != nil {
		k.t.Fatal(err)
	}
	for i, r := range results {
		if want := (holdfast.Receipt{ID: list[i].Notification.ID}); r.Err != nil || !sameReceipt(r.Receipt, want) {
			k.t.Fatalf("ingest %s: %+v", list[i].Notification.ID, r)
		}
	}
}

func sameReceipt(a, b holdfast.Receipt) bool {
	return a.ID == b.ID && a.State == b.State && a.Duplicate == b.Duplicate
}

// copyOf returns the id of the message of a copy, of site plant-1; the first copy has no channel.
func copyOf(id holdfast.ID, channel string) holdfast.ID {
	return notify.MessageID("plant-1", id, channel)
}

// shown returns the copies of a notification, of the only site that has its id.
func (k *kit) shown(id holdfast.ID) []notify.Record {
	k.t.Helper()
	sites := k.sites(id)
	if len(sites) != 1 {
		k.t.Fatalf("sites of %s are %v, want one", id, sites)
	}
	return k.shownOf(sites[0], id)
}

func (k *kit) sites(id holdfast.ID) []string {
	k.t.Helper()
	sites, err := k.NotificationSites(k.ctx(), id)
	if err != nil {
		k.t.Fatal(err)
	}
	return sites
}

func (k *kit) shownOf(site string, id holdfast.ID) []notify.Record {
	k.t.Helper()
	list, err := k.Notification(k.ctx(), site, id)
	if err != nil {
		k.t.Fatal(err)
	}
	return list
}

func (k *kit) unknown(id holdfast.ID) {
	k.t.Helper()
	if sites := k.sites(id); len(sites) != 0 {
		k.t.Errorf("sites of %s are %v, want none", id, sites)
	}
	if got, err := k.Notification(k.ctx(), "plant-1", id); !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("got %v, %v, want that %s is unknown", got, err, id)
	}
}

// statusIs fails unless the first copy has this status.
func (k *kit) statusIs(id holdfast.ID, want notify.Status) notify.Record {
	k.t.Helper()
	r := k.shown(id)[0]
	if r.Status != want {
		k.t.Errorf("%s is %s, want %s", id, r.Status, want)
	}
	return r
}

// oneOf claims the next message of a channel.
func (k *kit) oneOf(channel string) holdfast.Claim {
	k.t.Helper()
	got := k.claimOf(notify.LanePrefix+channel, 1)
	if len(got) != 1 {
		k.t.Fatalf("channel %s has no message to give", channel)
	}
	return got[0]
}

func ingestedAsItWas(k *kit) {
	n := notify.Notification{
		ID: "0190a7c2-6f5e-7b1a-8c3d-4e5f60718293", Type: "Alarm", List: "ops", Subject: "Pumpe 3 steht – Ü", Body: "Text\n", Data: json.RawMessage(`{"a":1}`),
		Origin: notify.Origin{
			Site: "plant-1", Instance: "b", Script: "pumps", Execution: "e1", ParentExecution: "e0",
			Enqueued: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		},
	}
	k.ingest(copiesOf(n, "mail", "chat"), note("empty", "plant-1", ""))
	for _, from := range []string{"memory", "disk"} {
		list := k.shown(n.ID)
		if len(list) != 2 {
			k.t.Fatalf("from %s: %d copies", from, len(list))
		}
		for i, want := range []struct {
			channel string
			message holdfast.ID
		}{{"mail", copyOf(n.ID, "")}, {"chat", copyOf(n.ID, "chat")}} {
			r := list[i]
			equal(k, "notification from "+from, r.Notification, n)
			if r.Channel != want.channel || r.Message != want.message || r.Status != notify.Pending || r.Cycle != 1 || r.NextAttempt.IsZero() {
				k.t.Errorf("from %s: copy %d is %+v", from, i, r)
			}
			if d := k.now().Sub(r.Created); d < -time.Second || d > time.Minute {
				k.t.Errorf("from %s: created %s ago", from, d)
			}
			if len(r.History) != 1 || r.History[0].Kind != holdfast.Enqueued {
				k.t.Errorf("from %s: history %v", from, r.History)
			}
			m := k.get(want.message)
			if m.Seq != r.Seq || m.Message.Destination != notify.LanePrefix+want.channel || m.Message.Source != "plant-1" {
				k.t.Errorf("from %s: the message is %+v", from, m)
			}
		}
		k.statusIs("empty", notify.Pending)
		c := k.oneOf("chat")
		if c.Message.ID != copyOf(n.ID, "chat") || !strings.Contains(string(c.Message.Payload), `"subject":"Pumpe 3 steht – Ü"`) {
			k.t.Errorf("from %s: claimed %+v", from, c.Message)
		}
		k.reopen() // nobody settled: it comes back
	}
}

func ingestedTwice(k *kit) {
	in := note("n", "plant-1", "mail", "chat")
	k.ingest(in)
	expect := func(want holdfast.State) {
		k.t.Helper()
		results, err := k.Ingest(k.ctx(), in)
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "result of the "+want.String()+" one", results, []holdfast.Result{{Receipt: holdfast.Receipt{ID: "n", State: want, Duplicate: true}}})
	}
	expect(holdfast.Pending)
	c := k.oneOf("mail")
	expect(holdfast.Claimed)
	k.wins(c, parked())
	expect(holdfast.Parked)
	k.requeue(copyOf("n", ""))
	k.wins(k.oneOf("mail"), delivered())
	expect(holdfast.Delivered)
	k.reopen()
	expect(holdfast.Delivered)
	if got := len(k.shown("n")); got != 2 {
		k.t.Errorf("%d copies", got)
	}
	// The second time the list may have other channels: the first time decides.
	in.Messages, in.Channels = in.Messages[:1], in.Channels[:1]
	expect(holdfast.Delivered)
	twice := note("twice", "plant-1", "mail")
	results, err := k.Ingest(k.ctx(), twice, twice)
	if err != nil {
		k.t.Fatal(err)
	}
	equal(k, "twice in one call", results, []holdfast.Result{{Receipt: holdfast.Receipt{ID: "twice"}}, {Receipt: holdfast.Receipt{ID: "twice", Duplicate: true}}})
}

func statusFollowsTheMessage(k *kit) {
	k.ingest(note("n", "plant-1", "mail", "chat"))
	c := k.oneOf("mail")
	if r := k.statusIs("n", notify.Pending); !r.NextAttempt.IsZero() {
		k.t.Errorf("in hand: %+v", r)
	}
	k.wins(c, failed(time.Minute))
	r := k.statusIs("n", notify.Retrying)
	if r.Failures != 1 || r.Tries != 1 || r.LastError != "it is busy" || r.LastAttempt.IsZero() || r.NextAttempt.Sub(r.LastAttempt) < 59*time.Second || !r.Ended.IsZero() {
		k.t.Errorf("retrying: %+v", r)
	}
	k.pass(2 * time.Minute)
	k.wins(k.oneOf("mail"), parked())
	r = k.statusIs("n", notify.Parked)
	if r.Reason != holdfast.ReasonPermanent || r.Ended.IsZero() || !r.NextAttempt.IsZero() || len(r.History) != 3 {
		k.t.Errorf("parked: %+v", r)
	}
	k.requeue(copyOf("n", ""))
	r = k.statusIs("n", notify.Pending)
	if r.Cycle != 2 || r.Tries != 0 || !r.Ended.IsZero() {
		k.t.Errorf("retried by a person: %+v", r)
	}
	k.wins(k.oneOf("mail"), delivered())
	r = k.statusIs("n", notify.Delivered)
	if r.Ended.IsZero() || r.LastAttempt.IsZero() || r.Tries != 1 {
		k.t.Errorf("delivered: %+v", r)
	}
	k.wins(k.oneOf("chat"), parked())
	if other := k.shown("n")[1]; other.Status != notify.Parked {
		k.t.Errorf("the other copy: %+v", other)
	}
	k.discard(copyOf("n", "chat"))
	k.reopen()
	if other := k.shown("n")[1]; other.Status != notify.Discarded || other.History[len(other.History)-1].Actor != "anna" {
		k.t.Errorf("the other copy: %+v", other)
	}
}

func targetsStay(k *kit) {
	k.ingest(note("n", "plant-1", "mail", "chat"))
	put := func(id holdfast.ID, list ...notify.Target) {
		k.t.Helper()
		if err := k.RecordTargets(k.ctx(), id, list...); err != nil {
			k.t.Fatal(err)
		}
	}
	expect := func(id holdfast.ID, want ...notify.Target) {
		k.t.Helper()
		got, err := k.Targets(k.ctx(), id)
		if err != nil {
			k.t.Fatal(err)
		}
		equal(k, "recipients of "+string(id), got, want, cmpopts.IgnoreFields(notify.Target{}, "At"), cmpopts.EquateEmpty())
		for _, t := range got {
			if d := k.now().Sub(t.At); d < -time.Second || d > time.Hour {
				k.t.Errorf("%s was reached %s ago", t.Address, d)
			}
		}
	}
	expect(copyOf("n", ""))
	a := notify.Target{
		Channel: "mail", Address: "a@example.org", Name: "Änne", Result: notify.Accepted, Code: "250 2.0.0", Text: "queued", Receipt: "Q1",
		Attempts: 1, Cycle: 1, Server: "mx.example.org:25", TLS: "TLS 1.3", Truncated: true,
	}
	b := notify.Target{Channel: "mail", Address: "b@example.org", Result: notify.Deferred, Code: "451", Text: "later", Maybe: true, Attempts: 1}
	put(copyOf("n", ""), a, b)
	put(copyOf("n", ""))
	expect(copyOf("n", ""), a, b)
	expect(copyOf("n", "chat"))
	late := a
	late.Result, late.Text = notify.Refused, "no"
	b.Result, b.Code, b.Text, b.Maybe, b.Attempts, b.Cycle = notify.Refused, "550 5.1.1", "unknown", false, 2, 7
	put(copyOf("n", ""), late, b)
	expect(copyOf("n", ""), a, b)
	b.Result, b.Attempts = notify.Accepted, 3
	put(copyOf("n", ""), b)
	put(copyOf("n", "chat"), notify.Target{Channel: "chat", Address: "", Result: notify.Waiting})
	k.reopen()
	expect(copyOf("n", ""), a, b)
	list := k.shown("n")
	if len(list[0].Targets) != 2 || len(list[1].Targets) != 1 || list[0].Targets[0].Receipt != "Q1" {
		k.t.Errorf("shown with %+v and %+v", list[0].Targets, list[1].Targets)
	}
	if err := k.RecordTargets(k.ctx(), "nobody", a); !errors.Is(err, holdfast.ErrNotFound) {
		k.t.Errorf("got %v, want ErrNotFound", err)
	}
	many := make([]notify.Target, 3000)
	for i := range many {
		many[i] = notify.Target{Channel: "mail", Address: fmt.Sprintf("%05d@example.org", i), Result: notify.Accepted, Attempts: 1}
	}
	put(copyOf("n", "chat"), many...)
	got, err := k.Targets(k.ctx(), copyOf("n", "chat"))
	if err != nil || len(got) != len(many)+1 {
		k.t.Errorf("%d recipients, %v", len(got), err)
	}
}

func hostileTexts(k *kit) {
	bad := "a'b\"c%_\\\x00\xff\n" + strings.Repeat("é", 1000)
	in := note("n", "plant-1", "mail")
	n := &in.Notification
	n.Subject, n.Type, n.List, n.Origin.Instance, n.Origin.Script = bad, bad, bad, bad, bad
	in.Payload = []byte(`{"list":"l","subject":"s","body":"a\u0000'b","data":{"a":"\u0000"}}`)
	none := note("none", "plant-1", "mail")
	none.Payload = []byte{'{', 0xff}
	k.ingest(in, none)
	if r := k.shown("none")[0]; r.Notification.Body != "" || r.Notification.Data != nil {
		k.t.Errorf("what is no payload of a notification is shown as %+v", r.Notification)
	}
	t := notify.Target{Channel: "mail", Address: "a'b%", Name: bad, Code: bad, Text: bad, Receipt: bad, Server: bad, TLS: bad}
	if err := k.RecordTargets(k.ctx(), copyOf("n", ""), t); err != nil {
		k.t.Fatal(err)
	}
	r := k.shown("n")[0]
	if !strings.HasPrefix(r.Notification.Subject, "a'b\"c%_\\") || r.Notification.Body != "a 'b" || string(r.Notification.Data) != `{"a":"\u0000"}` || len(r.Targets) != 1 {
		k.t.Errorf("shown as %+v", r)
	}
	for _, words := range []string{"%", "_", `\`, "'b\"", "É"} {
		if got := k.everyNote(notify.Query{Subject: words}); len(got) != 1 {
			k.t.Errorf("%q finds %d", words, len(got))
		}
	}
	for _, words := range []string{"%%", "a_b", "x"} {
		if got := k.everyNote(notify.Query{Subject: words}); len(got) != 0 {
			k.t.Errorf("%q finds %d", words, len(got))
		}
	}
}
