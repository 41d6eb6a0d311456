package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

// conflict ingests a notification that must be refused as a conflict.
func (k *kit) conflict(what string, in incoming) {
	k.t.Helper()
	results, err := k.Ingest(k.ctx(), in)
	if err != nil {
		k.t.Fatal(err)
	}
	if !errors.Is(results[0].Err, holdfast.ErrConflict) {
		k.t.Errorf("%s: got %+v, want a conflict", what, results[0])
	}
}

func ingestConflicts(k *kit) {
	k.ingest(note("n", "plant-1", "mail"))
	other := note("n", "plant-1", "mail")
	other.Hash[31]++
	k.conflict("other content", other)
	k.put(holdfast.Message{ID: copyOf("ordinary", "")}, holdfast.Message{ID: copyOf("copy", "chat")})
	k.conflict("the id of a message", note("ordinary", "plant-1", "mail"))
	k.conflict("the id of a copy's message", note("copy", "plant-1", "mail", "chat"))
	k.unknown("ordinary")
	k.unknown("copy")
	if got := len(k.all(holdfast.Query{})); got != 3 {
		k.t.Errorf("%d messages, want 3", got)
	}
	if got := k.shown("n"); len(got) != 1 || got[0].Notification.Origin.Site != "plant-1" {
		k.t.Errorf("the first one has changed: %+v", got)
	}
}

// ingestOfTwoSites: a notification is identified by its site and its id everywhere, even after its
// message is purged.
func ingestOfTwoSites(k *kit) {
	const id = "tank-4"
	other := note(id, "plant-2", "mail", "chat")
	other.Notification.Subject = "Tank 4 is full"
	k.ingest(note(id, "plant-1", "mail", "chat"))
	k.ingest(other)
	changed := note(id, "plant-2", "mail")
	changed.Hash[31]++
	k.conflict("other content of the second site", changed)
	stands := func(site string, want notify.Status) {
		k.t.Helper()
		list := k.shownOf(site, id)
		if len(list) != 2 || list[0].Notification.Origin.Site != site || list[0].Status != want || list[0].Message != notify.MessageID(site, id, "") || list[0].Notification.Body == "" {
			k.t.Errorf("of %s: %+v, want two copies of which the first is %s", site, list, want)
		}
	}
	all := func(want ...string) {
		k.t.Helper()
		equal(k, "sites", k.sites(id), want, cmpopts.EquateEmpty())
		if _, err := k.Notification(k.ctx(), "plant-3", id); !errors.Is(err, holdfast.ErrNotFound) {
			k.t.Errorf("of a site that has sent nothing: got %v, want ErrNotFound", err)
		}
	}
	all("plant-1", "plant-2")
	for range 2 {
		c := k.oneOf("mail")
		s := delivered()
		if c.Message.Source == "plant-2" {
			s = parked()
		}
		k.wins(c, s)
	}
	stands("plant-1", notify.Delivered)
	stands("plant-2", notify.Parked)
	k.winAll(k.claimOf(notify.LanePrefix+"chat", 10), delivered())
	k.put(holdfast.Message{ID: "newest"})
	k.pass(24 * time.Hour)
	k.purge(holdfast.Retention{Delivered: time.Hour})
	k.reopen()
	all("plant-1", "plant-2")
	stands("plant-1", notify.Delivered)
	results, err := k.Ingest(k.ctx(), note(id, "plant-1", "mail"), note(id, "plant-3", "mail"))
	if err != nil {
		k.t.Fatal(err)
	}
	equal(k, "results", results, []holdfast.Result{
		{Receipt: holdfast.Receipt{ID: id, State: holdfast.Delivered, Duplicate: true}}, {Receipt: holdfast.Receipt{ID: id}},
	})
	if n := k.forget(time.Hour); n != 2 {
		k.t.Errorf("%d copies went, want the two of the one that has ended", n)
	}
	equal(k, "sites that are left", k.sites(id), []string{"plant-2", "plant-3"})
	stands("plant-2", notify.Parked)
}

func conflictInABatch(k *kit) {
	taken := note("n-250", "plant-1", "mail")
	taken.Hash[31]++
	k.ingest(taken)
	list := make([]incoming, 500)
	for i := range list {
		list[i] = note(holdfast.ID(fmt.Sprint("n-", i)), "plant-1", "mail")
	}
	list[7] = note("", "plant-1", "mail")
	results, err := k.Ingest(k.ctx(), list...)
	if err != nil {
		k.t.Fatal(err)
	}
	for i, r := range results {
		switch {
		case i == 7 && errors.Is(r.Err, holdfast.ErrInvalid), i == 250 && errors.Is(r.Err, holdfast.ErrConflict):
		case i == 7 || i == 250 || r.Err != nil || !sameReceipt(r.Receipt, holdfast.Receipt{ID: list[i].Notification.ID}):
			k.t.Errorf("row %d: %+v", i, r)
		}
	}
	if got := len(k.everyNote(notify.Query{Site: "plant-1"})); got != 499 {
		k.t.Errorf("%d are kept, want 499", got)
	}
}

func ingestedAtOnce(k *kit) {
	const callers, each = 16, 8
	var mu sync.Mutex
	firsts, wrong := map[holdfast.ID]int{}, 0 // by the id of the first message
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range each {
				// Every fourth caller is another site with the same ids.
				in := note(holdfast.ID(fmt.Sprint("n-", (i+caller)%each)), "plant-1", "mail", "chat")
				foreign := caller%4 == 3
				if foreign {
					in = note(in.Notification.ID, "plant-2", "mail")
				}
				results, err := k.Ingest(k.ctx(), in)
				mu.Lock()
				switch {
				case err != nil || results[0].Err != nil:
					wrong++
				case !results[0].Receipt.Duplicate:
					firsts[in.Notification.Key()]++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if wrong > 0 || len(firsts) != 2*each {
		k.t.Errorf("%d errors, %d ids were new, want %d", wrong, len(firsts), 2*each)
	}
	for id, n := range firsts {
		if n != 1 {
			k.t.Errorf("%s was new %d times", id, n)
		}
	}
	if got := len(k.all(holdfast.Query{})); got != 3*each {
		k.t.Errorf("%d messages, want %d", got, 3*each)
	}
}

func ingestInvalid(k *kit) {
	twice := note("twice", "plant-1", "mail", "mail")
	twice.Messages[1].ID = twice.Messages[0].ID
	short := note("n", "plant-1", "mail")
	short.Channels = nil
	shout := note("n", "plant-1", "mail")
	shout.Messages[0].Kind = "Shout"
	for name, in := range map[string]incoming{
		"two messages of one id": twice, "no row beside a message": short, "no message": {Notification: notify.Notification{ID: "n"}},
		"a message that is none": shout, "an id that is none": note("two words", "plant-1", "mail"),
	} {
		results, err := k.Ingest(k.ctx(), in, note(holdfast.ID("beside-"+fmt.Sprint(len(name))), "plant-1", "mail"))
		if err != nil {
			k.t.Fatalf("%s: %v", name, err)
		}
		if !errors.Is(results[0].Err, holdfast.ErrInvalid) || results[1].Err != nil {
			k.t.Errorf("%s: got %+v", name, results)
		}
	}
	k.unknown("n")
}
