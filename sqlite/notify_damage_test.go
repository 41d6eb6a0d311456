package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

const (
	specimenRecipients    = 300
	specimenNotifications = 60
)

func specimenBook() notify.Directory {
	ops := notify.List{Name: "ops", Description: "Operators", Partial: true}
	for i := range specimenRecipients {
		ops.Recipients = append(ops.Recipients, notify.Recipient{Channel: "mail", Address: fmt.Sprintf("%03d@example.org", i), Name: fmt.Sprint("Person ", i), Disabled: i%7 == 0})
	}
	return notify.Directory{
		Channels: map[string]notify.Channel{
			"mail": {Name: "mail", Kind: "email", Settings: []byte(`{"server":"mx"}`), Retry: notify.Retry{Attempts: 10}}, "chat": {Name: "chat", Kind: "ntfy", Disabled: true},
		},
		Lists: map[string]notify.List{"ops": ops, "none": {Name: "none"}},
	}
}

// notify fills the specimen with channels, lists and notifications.
func (s *specimen) notify(t testing.TB, db *sqlite.DB) {
	t.Helper()
	b := specimenBook()
	for _, c := range b.Channels {
		if err := nodestore.New(db, nil).Directory.PutChannel(t.Context(), c, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range b.Lists {
		if err := nodestore.New(db, nil).Directory.PutList(t.Context(), l, ""); err != nil {
			t.Fatal(err)
		}
	}
	for range specimenNotifications {
		in := notification(holdfast.NewID(), "plant-1")
		ingest(t, db, in)
		m := in.Messages[0]
		m.Payload = in.Payload
		s.messages[m.ID], s.states[m.ID] = m, holdfast.Pending
	}
	batch, err := db.Claim(t.Context(), map[string]int{notify.LanePrefix + "mail": specimenNotifications / 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range batch.Claims {
		if err := db.RecordTargets(t.Context(), c.Message.ID, notify.Target{Channel: "mail", Address: "001@example.org", Result: notify.Accepted}); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Settle(t.Context(), settlement(c, holdfast.Delivered)); err != nil {
			t.Fatal(err)
		}
		s.states[c.Message.ID] = holdfast.Delivered
	}
}

func bookOf(t testing.TB, db *sqlite.DB) notify.Directory {
	t.Helper()
	b, err := nodestore.New(db, nil).Directory.Directory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sameBook compares all but the version and the times.
func sameBook() []cmp.Option {
	return []cmp.Option{
		cmpopts.IgnoreFields(notify.Directory{}, "Version"), cmpopts.IgnoreFields(notify.Channel{}, "Changed", "Version"), cmpopts.IgnoreFields(notify.List{}, "Changed", "Version"), cmpopts.EquateEmpty(),
	}
}

// stillNotifies fails unless everything of notifications is there.
func (s *specimen) stillNotifies(t testing.TB, db *sqlite.DB) {
	t.Helper()
	if d := cmp.Diff(bookOf(t, db), specimenBook(), sameBook()...); d != "" {
		t.Errorf("channels and lists (-got +want):\n%s", d)
	}
	p, err := db.Notifications(t.Context(), notify.Query{Limit: 500})
	if err != nil || len(p.Records) != specimenNotifications {
		t.Fatalf("%d notifications, %v, want %d", len(p.Records), err, specimenNotifications)
	}
	for _, r := range p.Records {
		full, err := db.Notification(t.Context(), r.Notification.Origin.Site, r.Notification.ID)
		if err != nil {
			t.Fatal(err)
		}
		if r = full[0]; (r.Status == notify.Delivered) != (len(r.Targets) == 1) || r.Notification.Body == "" {
			t.Errorf("salvaged as %+v", r)
		}
	}
	in := notification(p.Records[0].Notification.ID, "plant-1")
	if results, err := db.Bundle(t.Context(), in); err != nil || !results[0].Receipt.Duplicate {
		t.Errorf("a known id: %+v, %v", results, err)
	}
}

// Lists stand at central only: what a bad sector takes of one is named in the
// log, and the rest of it is kept. OI-12.
func TestRecipientsThatAreLostAreNamed(t *testing.T) {
	t.Parallel()
	s := specimens(t)[0]
	lost := 0
	path := s.write(t, func(_ string, content []byte) []byte {
		for at := 0; at < len(content); at += 4096 {
			page := content[at : at+4096]
			if page[0] == 10 && bytes.Contains(page, []byte("mail150@example.org")) && bytes.Contains(page, []byte("Person 150")) { // a leaf of an index
				lost = bytes.Count(page, []byte("@example.org"))
				copy(page, bytes.Repeat([]byte{0xff}, 4096))
			}
		}
		return content
	})
	if lost == 0 || lost == specimenRecipients {
		t.Fatalf("%d recipients stand on the page", lost)
	}
	var log bytes.Buffer
	o := sqlite.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	db := open(t, path, o)
	r := db.Check(t.Context()) // it meets the page
	_ = db.Close()
	db = open(t, path, o)
	defer shut(t, db)
	if len(db.Damage()) != 1 {
		t.Fatalf("nothing was set aside: %+v", r)
	}
	b := bookOf(t, db)
	if got := len(b.Lists["ops"].Recipients); got < specimenRecipients-lost-2 || got == specimenRecipients || b.Version == 0 {
		t.Errorf("%d recipients are left of %d, and %d stood on the page", got, specimenRecipients, lost)
	}
	if len(b.Channels) != 2 || len(b.Lists) != 2 {
		t.Errorf("left: %+v", b)
	}
	if !strings.Contains(log.String(), "recipients of a list are lost") {
		t.Error("the log does not say what is lost")
	}
	// What was delivered keeps its number, and its message may be gone.
	ingest(t, db, notification(holdfast.NewID(), "plant-2"))
}

// A number that a notification has is given to no message: the one that had it
// may be gone with what a salvage or a copy could not bring. Promise 2.
func TestNumbersOfNotificationsAreNotGivenAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	db := open(t, path, sqlite.Options{})
	enqueue(t, db, message("first"))
	ingest(t, db, notification("n", "plant-1"))
	if err := db.Do(t.Context(), func(ctx context.Context, tx *sqlite.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM hf_message WHERE seq = 2; DELETE FROM hf_body WHERE seq = 2; UPDATE hf_notification SET state = 2, delivered = 1, settled = 1")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	db = open(t, path, sqlite.Options{})
	defer shut(t, db)
	for i := range 3 {
		id := holdfast.ID(fmt.Sprint("m-", i))
		enqueue(t, db, message(id))
		if got, err := db.Get(t.Context(), id); err != nil || got.Seq != int64(3+2*i) {
			t.Errorf("message %d has the number %d, %v", i, got.Seq, err)
		}
		ingest(t, db, notification(holdfast.ID(fmt.Sprint("n-", i)), "plant-1"))
	}
}
