package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/track"
)

// operations tests that it stays known what became of a call when its message is purged, for the time of
// tracking and no longer (SF-21 to SF-23).
func operations(t *testing.T, m Maker) {
	t.Helper()
	const day = 24 * time.Hour
	keep := func(tracking time.Duration) holdfast.Retention {
		return holdfast.Retention{
			Delivered: time.Hour, Expired: time.Hour, Discarded: time.Hour, Parked: time.Hour, Tracking: tracking,
			Track: map[string]holdfast.Category{"a": holdfast.CategoryExternalSystem, "never met": holdfast.CategoryCachedDBWrite},
		}
	}
	tracker := func(k *kit) *track.Tracker {
		return &track.Tracker{Outbox: k.Full, Past: k.past, Node: "here", Category: func(to string) (holdfast.Category, bool) {
			return holdfast.CategoryExternalSystem, to == "a" || to == "also"
		}}
	}
	status := func(k *kit, id holdfast.ID) track.Operation {
		k.t.Helper()
		o, err := tracker(k).Status(k.ctx(), id)
		if err != nil {
			k.t.Fatal(err)
		}
		return o
	}
	list := func(k *kit, f track.Filter) (ids []holdfast.ID) {
		k.t.Helper()
		for {
			p, err := tracker(k).List(k.ctx(), f)
			if err != nil {
				k.t.Fatal(err)
			}
			for _, o := range p.Operations {
				ids = append(ids, o.ID)
			}
			if f.After = p.Next; p.Next == "" {
				return ids
			}
		}
	}
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	from := notify.Origin{Instance: "mixer-3", Script: "recipe.lua", Execution: "run 1", ParentExecution: "run 0", Trace: holdfast.Trace{Parent: trace}}
	m.run(t, map[string]func(k *kit){
		"an operation is known as well without its message": func(k *kit) {
			headers := from.Headers()
			headers["secret"] = "of the sender"
			id := k.put(holdfast.Message{ID: "{0190C5A2-7B1E-7C3D-9A4F-1D2E3F405162}", Headers: headers, Retry: &holdfast.RetryPolicy{Attempts: 3}})[0]
			s := failed(time.Second)
			s.Code, s.Error = "http_503", "the endpoint answered 503"
			k.wins(k.one(id), s)
			k.pass(2 * time.Second)
			k.wins(k.one(id), delivered())
			k.put(holdfast.Message{ID: "newest", Destination: "b"})
			k.pass(2 * time.Hour)
			before := status(k, id)
			k.purge(keep(day))
			k.fails(func() error { _, err := k.Get(k.ctx(), id); return err }(), holdfast.ErrNotFound)
			k.reopen()
			after := status(k, "0190c5a27b1e7c3d9a4f1d2e3f405162") // a UUID in any form
			if !after.Purged || before.Purged {
				k.t.Errorf("purged before: %t, after: %t", before.Purged, after.Purged)
			}
			after.Purged = false
			if diff := cmp.Diff(before, after); diff != "" {
				k.t.Errorf("the record says something else than the message (-message +record):\n%s", diff)
			}
			want := from
			want.Site = Source
			if after.Status != track.Delivered || after.HTTPStatus() != 503 || after.Retries != 1 || after.Origin != want || after.Node != "here" || after.Retry.Attempts != 3 {
				k.t.Errorf("got %+v", after)
			}
		},
		"each end is kept as it was, if it is of a call": func(k *kit) {
			made := k.standing("a")
			k.standing("b")
			k.put(holdfast.Message{ID: "newest", Destination: "c"})
			k.pass(2 * time.Hour)
			k.purge(keep(day))
			for state, id := range made {
				if o := status(k, id); o.Purged != state.Final() && state != holdfast.Parked {
					k.t.Errorf("%s: %+v", id, o)
				}
			}
			want := []holdfast.ID{"a-pending", "a-claimed", "a-expired", "a-discarded", "a-parked", "a-delivered"}
			if diff := cmp.Diff(want, list(k, track.Filter{})); diff != "" {
				k.t.Errorf("all (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(want, list(k, track.Filter{Limit: 1})); diff != "" {
				k.t.Errorf("all, one a page (-want +got):\n%s", diff)
			}
			for id, f := range map[holdfast.ID]track.Filter{
				"a-failed":    {Statuses: []track.Status{track.Failed}},
				"a-expired":   {Statuses: []track.Status{track.Expired}, Destination: "a", Category: holdfast.CategoryExternalSystem},
				"a-discarded": {Statuses: []track.Status{track.Discarded}},
				"a-delivered": {Statuses: []track.Status{track.Delivered}},
				"a-parked":    {Error: "REFUSED", Statuses: []track.Status{track.Failed}},
			} {
				if id == "a-failed" {
					id = "a-parked" // refused by the first attempt
				}
				if got := list(k, f); len(got) != 1 || got[0] != id {
					k.t.Errorf("%+v: got %v, want %s", f, got, id)
				}
			}
			for _, f := range []track.Filter{{Destination: "b"}, {Category: "x"}, {Instance: "x"}, {Script: "x"}, {Execution: "x"}, {Trace: "x"}, {Error: "x"}, {To: k.now().Add(-day)}, {From: k.now().Add(day)}} {
				if got := list(k, f); len(got) != 0 {
					k.t.Errorf("%+v: got %v", f, got)
				}
			}
		},
		"a record goes when the time of tracking is over, and none is written after": func(k *kit) {
			known := func(id holdfast.ID) bool {
				k.t.Helper()
				_, err := tracker(k).Status(k.ctx(), id)
				if err != nil && !errors.Is(err, holdfast.ErrNotFound) {
					k.t.Fatal(err)
				}
				return err == nil
			}
			k.put(holdfast.Message{ID: "early"}, holdfast.Message{ID: "newest", Destination: "b"})
			k.wins(k.one("early"), delivered())
			k.pass(12 * time.Hour)
			k.purge(keep(day))
			if !known("early") {
				k.t.Fatal("it is forgotten before its time")
			}
			k.put(holdfast.Message{ID: "late"})
			k.wins(k.one("late"), delivered())
			k.put(holdfast.Message{ID: "last", Destination: "b"})
			k.pass(13 * time.Hour)
			k.purge(keep(day))
			if known("early") || !known("late") {
				k.t.Errorf("after a day early is known: %t, late: %t", known("early"), known("late"))
			}
			k.put(holdfast.Message{ID: "over"}, holdfast.Message{ID: "end", Destination: "b"})
			k.wins(k.one("over"), delivered())
			k.pass(2 * time.Hour)
			k.purge(keep(time.Hour)) // the message stays as long as the record would
			if known("over") || known("late") {
				k.t.Error("a record was written that is not kept, or is kept for too long")
			}
		},
		"those of several destinations are in one order, over messages, records and pages": func(k *kit) {
			var want []holdfast.ID
			for i := range 12 {
				id := holdfast.ID(fmt.Sprint("m", i))
				k.put(holdfast.Message{ID: id, Destination: []string{"a", "b", "also", "a", "a", "also"}[i%6]})
				if i%6 != 1 {
					want = append([]holdfast.ID{id}, want...)
				}
				if i == 5 {
					k.wins(k.one("m0"), delivered())
					k.wins(k.one("m3"), delivered())
					k.pass(2 * time.Hour)
					k.purge(keep(day)) // m0 and m3 are records now
				}
			}
			for _, limit := range []int{1, 2, 500} {
				if diff := cmp.Diff(want, list(k, track.Filter{Among: []string{"also", "a"}, Limit: limit})); diff != "" {
					k.t.Errorf("%d a page (-want +got):\n%s", limit, diff)
				}
			}
		},
		"the latest of an id is shown, and its message before any record": func(k *kit) {
			for range 2 {
				k.put(holdfast.Message{ID: "m"})
				k.wins(k.one("m"), delivered())
				k.put(holdfast.Message{Destination: "b"})
				k.pass(2 * time.Hour)
				k.purge(keep(day))
			}
			if o := status(k, "m"); o.Created.Before(k.now().Add(-3 * time.Hour)) {
				k.t.Errorf("got the one of %s", o.Created)
			}
			k.put(holdfast.Message{ID: "m"})
			if o := status(k, "m"); o.Status != track.Submitted || o.Purged {
				k.t.Errorf("got %+v", o)
			}
			if got := list(k, track.Filter{}); len(got) != 3 {
				k.t.Errorf("listed are %v", got)
			}
		},
		"a list of a time begins at that time": func(k *kit) {
			var ids []holdfast.ID
			for i := range 6 {
				ids = append(ids, many(6, "m", holdfast.Message{})[i].ID)
				k.put(holdfast.Message{ID: ids[i]})
				k.wins(k.one(ids[i]), delivered())
				k.put(holdfast.Message{Destination: "b"})
				k.pass(2 * time.Hour)
				if i == 3 {
					k.purge(keep(30 * day))
				}
			}
			got := list(k, track.Filter{From: k.now().Add(-11 * time.Hour), To: k.now().Add(-3 * time.Hour), Limit: 2})
			if diff := cmp.Diff([]holdfast.ID{ids[4], ids[3], ids[2], ids[1]}, got); diff != "" {
				k.t.Errorf("(-want +got):\n%s", diff)
			}
		},
	})
}
