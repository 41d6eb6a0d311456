package httpapi_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// If a node dies after a row was done and before that was recorded, the row is done again, and its event is sent
// once all the same.
func TestARowThatIsDoneAgainSendsItsEventOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast.db")
	const request = `{"list":"events","verb":"resend"}`
	for i, action := range []string{"a", "a", "b"} {
		db, err := sqlite.Open(t.Context(), path, sqlite.Options{Source: "n"})
		if err != nil {
			t.Fatal(err)
		}
		book := fanout.NewBook(nodestore.New(db, nil).Fanout, nil)
		hub := &admin.Hub{Book: book, Publisher: &fanout.Publisher{Bundles: db, Book: book, Source: "n"}}
		if i == 0 {
			_, err = book.Store().PutTopic(t.Context(), fanout.Topic{Name: "orders"}, "ana")
			if err == nil {
				_, err = book.Store().PutSubscription(t.Context(), fanout.Subscription{ID: "shop", Topics: []string{"*"}, Settings: fanout.Settings{URL: "https://example.com"}}, "ana")
			}
			for _, id := range []holdfast.ID{"e1", "e2"} {
				if err == nil {
					_, err = hub.Publisher.Publish(t.Context(), fanout.Event{ID: id, Topic: "orders", Data: []byte("1")})
				}
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		rows := admin.Bulk{Service: &admin.Service{Hub: hub}}
		for _, item := range []string{"n e1", "n e2"} {
			if refusal, err := rows.Do(t.Context(), &bulk.Action{ID: action, List: "events", Verb: "resend", Request: request, Actor: "ana"}, item); err != nil || refusal != "" {
				t.Errorf("row %s of %s: %q, %v", item, action, refusal, err)
			}
		}
		e, err := book.Store().EventsOf(t.Context(), "e1")
		if err != nil || len(e) != 1 {
			t.Fatal(e, err)
		}
		list, err := book.Store().Deliveries(t.Context(), e[0].Seq, 0, 10)
		who := []string{}
		for _, d := range list {
			who = append(who, d.Actor)
		}
		if d := cmp.Diff(who, [][]string{{"", "ana"}, {"", "ana"}, {"", "ana", "ana"}}[i]); err != nil || d != "" {
			t.Errorf("after action %s: %v (-got +want):\n%s", action, err, d)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
