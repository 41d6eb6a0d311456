package storecopy_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
)

const mail = notify.LanePrefix + "mail"

// notes is the store as one of notifications.
func notes(t testing.TB, db full) notify.Store {
	t.Helper()
	s, ok := db.(notify.Store)
	if !ok {
		t.Fatalf("%T is no store of notifications", db)
	}
	return s
}

// first is the id of the message of a notification's first copy.
func first(id holdfast.ID) holdfast.ID { return notify.MessageID("plant-1", id, "") }

func note(id holdfast.ID) holdfast.Bundle {
	payload := []byte(`{"list":"ops","subject":"s","body":"Text","data":{"a":1}}`)
	n := notify.Notification{
		ID: id, Type: "Alarm", List: "ops", Subject: "Pump Ü \x00\xff",
		Origin: notify.Origin{Site: "plant-1", Instance: "b", Script: "s", Execution: "e", ParentExecution: "p", Enqueued: time.UnixMicro(1700000000000001).UTC()},
	}
	return notify.BundleOf(&n, sha256.Sum256([]byte(id)), payload, []holdfast.Message{
		{ID: first(id), Source: "plant-1", Destination: mail, Endpoint: notify.Endpoint},
		{ID: notify.MessageID("plant-1", id, "chat"), Source: "plant-1", Destination: notify.LanePrefix + "chat", Endpoint: notify.Endpoint},
	}, []string{"mail", "chat"})
}

func ingest(t testing.TB, db full, id holdfast.ID) holdfast.Receipt {
	t.Helper()
	results, err := notes(t, db).Bundle(t.Context(), note(id))
	must(t, err)
	must(t, results[0].Err)
	return results[0].Receipt
}

func purge(t testing.TB, db full) {
	t.Helper()
	time.Sleep(5 * time.Millisecond) // nothing is older than itself
	for more := true; more; {
		var err error
		_, more, err = db.Purge(t.Context(), holdfast.Retention{Delivered: time.Microsecond, Discarded: time.Microsecond})
		must(t, err)
	}
}

// filledNotes makes a store with channels, lists, and notifications of each
// status, some of which have lost their messages.
func filledNotes(t testing.TB, db full) {
	t.Helper()
	ctx, s := t.Context(), notes(t, db)
	must(t, nodestore.New(db, nil).Directory.PutChannel(ctx, notify.Channel{
		Name: "mail", Kind: "email", Settings: []byte(`{"a":1}`), Workers: 3, Retry: notify.Retry{Attempts: 5, Interval: time.Minute, Waits: []time.Duration{time.Second, time.Hour}},
	}, ""))
	must(t, nodestore.New(db, nil).Directory.PutChannel(ctx, notify.Channel{Name: "chat", Kind: "ntfy", Disabled: true}, ""))
	must(t, nodestore.New(db, nil).Directory.PutList(ctx, notify.List{Name: "none"}, ""))
	must(t, nodestore.New(db, nil).Directory.PutList(ctx, notify.List{Name: "ops", Description: "Ü", Partial: true, Recipients: []notify.Recipient{
		{Channel: "mail", Address: "z@example.org", Name: "Z"}, {Channel: "chat"}, {Channel: "mail", Address: "a@example.org", Disabled: true},
	}}, ""))
	failure := holdfast.Settlement{State: holdfast.Pending, RetryIn: 30 * time.Minute, Outcome: holdfast.Transient, Charged: true, Error: "later"}
	parked := holdfast.Settlement{State: holdfast.Parked, Reason: holdfast.ReasonPermanent, Outcome: holdfast.Permanent, Error: "no"}
	done := holdfast.Settlement{State: holdfast.Delivered, Outcome: holdfast.Succeeded}
	for _, id := range []holdfast.ID{"purged", "discarded"} {
		ingest(t, db, id)
	}
	must(t, s.RecordTargets(ctx, first("purged"), notify.Target{
		Channel: "mail", Address: "z@example.org", Name: "Z", Result: notify.Accepted, Code: "250", Text: "ok \x00", Receipt: "Q", Maybe: true, Attempts: 2, Cycle: 3, Server: "mx", TLS: "1.3", Truncated: true,
	}, notify.Target{Channel: "chat", Result: notify.Refused}))
	ends(t, db, mail, map[holdfast.ID]holdfast.Settlement{first("purged"): done, first("discarded"): parked})
	_, err := db.Discard(ctx, first("discarded"), "mo")
	must(t, err)
	ingest(t, db, "newest")
	purge(t, db)
	for _, id := range []holdfast.ID{"delivered", "parked", "retrying"} {
		ingest(t, db, id)
	}
	ends(t, db, mail, map[holdfast.ID]holdfast.Settlement{first("newest"): {Outcome: holdfast.NotStarted}, first("delivered"): done, first("parked"): parked, first("retrying"): failure})
	ingest(t, db, "pending")
}

// allNotes is what can be read of notifications.
type allNotes struct {
	Book  notify.Directory
	Notes [][]notify.Record
	All   notify.KPIs
}

func readNotes(t testing.TB, db full) (a allNotes) {
	t.Helper()
	ctx, s := t.Context(), notes(t, db)
	var err error
	a.Book, err = nodestore.New(db, nil).Directory.Directory(ctx)
	must(t, err)
	for _, id := range []holdfast.ID{"purged", "discarded", "newest", "delivered", "parked", "retrying", "pending"} {
		list, err := s.Notification(ctx, "plant-1", id)
		must(t, err)
		for i := range list {
			for j := range list[i].History {
				list[i].History[j].Seq = 0
			}
		}
		a.Notes = append(a.Notes, list)
	}
	a.All, _, err = s.KPIs(ctx, time.Hour, time.Hour)
	must(t, err)
	a.All.Oldest = 0
	return a
}

// Channels and lists stand at central only: a move brings them, and all
// notifications, also those of which only the archive is left.
func TestNotificationsAreMoved(t *testing.T) {
	t.Parallel()
	one, second, third := newFile(t), pgtest.Shared(t).Database(t), newFile(t)
	db := open(t, one)
	filledNotes(t, db)
	want := readNotes(t, db)
	shut(t, db)
	for i := range want.Notes { // what not every store can keep is replaced
		for j := range want.Notes[i] {
			want.Notes[i][j].Notification.Subject = "Pump Ü ��"
			for k := range want.Notes[i][j].Targets {
				if text := &want.Notes[i][j].Targets[k].Text; *text != "" {
					*text = "ok �"
				}
			}
		}
	}
	from := one
	for _, to := range []string{second, third, pgtest.Shared(t).Database(t)} {
		copied(t, from, to)
		db := open(t, to)
		if diff := gocmp.Diff(want, readNotes(t, db), about()); diff != "" {
			t.Errorf("in %s (-want +got):\n%s", to, diff)
		}
		if r := ingest(t, db, "purged"); !r.Duplicate || r.State != holdfast.Delivered {
			t.Errorf("in %s a known id: %+v", to, r)
		}
		shut(t, db)
		from = to
	}
}

// The last numbers may be those of notifications whose messages are purged: no
// new message gets one of them. Promise 2.
func TestNumbersOfPurgedNotificationsAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	from := pgtest.Shared(t).Database(t)
	db := open(t, from)
	ingest(t, db, "n")
	for _, lane := range []string{mail, notify.LanePrefix + "chat"} {
		b, err := db.Claim(t.Context(), map[string]int{lane: 1})
		must(t, err)
		_, err = db.Settle(context.WithoutCancel(t.Context()), holdfast.Settlement{Seq: b.Claims[0].Seq, Token: b.Claims[0].Token, State: holdfast.Delivered, Outcome: holdfast.Succeeded})
		must(t, err)
	}
	purge(t, db)
	shut(t, db)
	for turn, to := range []string{newFile(t), pgtest.Shared(t).Database(t)} {
		copied(t, from, to)
		db := open(t, to)
		for i := range 4 {
			if r := ingest(t, db, holdfast.ID(fmt.Sprint("m-", turn, "-", i))); r.Duplicate {
				t.Errorf("%+v", r)
			}
		}
		if n := len(readNote(t, db, "n")); n != 2 {
			t.Errorf("%d copies are left", n)
		}
		shut(t, db)
		from = to
	}
}

func readNote(t testing.TB, db full, id holdfast.ID) []notify.Record {
	t.Helper()
	list, err := notes(t, db).Notification(t.Context(), "plant-1", id)
	must(t, err)
	return list
}
