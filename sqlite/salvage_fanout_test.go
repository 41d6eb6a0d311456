package sqlite_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A salvage brings events with their deliveries, also one that nobody asked for. What comes again is a
// duplicate, a message keeps its payload, and no number is given twice.
func TestASalvageBringsEvents(t *testing.T) {
	t.Parallel()
	s := specimen{files: map[string][]byte{}}
	path := s.write(t, nil)
	db := open(t, path, sqlite.Options{Reserve: -1})
	publish := func(db *sqlite.DB, id holdfast.ID) (fanout.Published, error) {
		b := fanout.NewBook(nodestore.New(db, nil).Fanout, nil)
		p := &fanout.Publisher{Bundles: db, Book: b, Source: "plant-1"}
		return p.Publish(t.Context(), fanout.Event{ID: id, Topic: "orders", Data: []byte(`{"id":"` + id + `"}`)})
	}
	kept := nodestore.New(db, nil).Fanout
	_, topic := kept.PutTopic(t.Context(), fanout.Topic{Name: "orders"}, "anna")
	_, first := publish(db, "nobody")
	_, subscription := kept.PutSubscription(t.Context(), fanout.Subscription{ID: "shop", Topics: []string{"orders"}, Settings: fanout.Settings{URL: "https://example.com"}}, "anna")
	_, second := publish(db, "somebody")
	resend := func(db *sqlite.DB) (fanout.Resent, error) {
		kept := nodestore.New(db, nil).Fanout
		e, err := kept.EventsOf(t.Context(), "somebody")
		if err != nil || len(e) != 1 {
			t.Fatalf("%+v, %v", e, err)
		}
		p := &fanout.Publisher{Bundles: db, Book: fanout.NewBook(kept, nil), Source: "plant-1"}
		return p.Resend(t.Context(), &e[0], fanout.Resend{ID: "r", Actor: "anna"})
	}
	sent, third := resend(db)
	_, last := publish(db, "damaged")
	if err := errors.Join(topic, first, subscription, second, third, last); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`UPDATE hf_bundle SET source = 'plant-x' WHERE seq = 2`, `DELETE FROM hf_event WHERE id = 'damaged'`, `PRAGMA wal_checkpoint(TRUNCATE)`} {
		if _, err := db.SQL(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	shut(t, db)
	s.files[""] = contents(t, path)[0]
	db = open(t, s.write(t, func(_ string, content []byte) []byte {
		headless(content)
		return content
	}), sqlite.Options{})
	defer shut(t, db)
	audit(t, db)
	for id, want := range map[holdfast.ID]fanout.Published{
		"nobody":   {ID: "nobody", Source: "plant-1", Duplicate: true},
		"somebody": {ID: "somebody", Source: "plant-1", Matched: 1, Duplicate: true},
		"damaged":  {ID: "damaged", Source: "plant-1", Matched: 1},
	} {
		if got, err := publish(db, id); err != nil || got != want {
			t.Errorf("sent again: %+v, %v, want %+v", got, err, want)
		}
	}
	if again, err := resend(db); err != nil || !again.Duplicate || len(again.Deliveries) != 1 || again.Deliveries[0].Message != sent.Deliveries[0].Message || again.Deliveries[0].Actor != "anna" {
		t.Errorf("the resend is %+v, %v, was %+v", again, err, sent)
	}
	var got []string
	batch, err := db.Claim(t.Context(), map[string]int{fanout.Lane("shop"): 9})
	for _, c := range batch.Claims {
		got = append(got, string(c.Message.Payload))
	}
	if d := cmp.Diff(got, []string{`{"id":"somebody"}`, `{"id":"somebody"}`, `{"id":"damaged"}`, `{"id":"damaged"}`}); err != nil || d != "" {
		t.Errorf("%v (-got +want):\n%s", err, d)
	}
	audit(t, db)
}
