package httpapi_test

import (
	"context"
	"log/slog"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/bulk"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// bulkRig is a fixture with bulk actions, which run gives a minute.
type bulkRig struct {
	t   *testing.T // of the bubble
	f   *fixture
	run func()
}

func withBulk(t *testing.T, test func(r bulkRig)) {
	t.Helper()
	racetest.Bubble(t, func(t *testing.T) {
		db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		}()
		f := serve(t, func(s *httpapi.Server) { s.Bulks = nodestore.New(db, nil).Bulks })
		test(bulkRig{t, f, func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_ = (&bulk.Runner{Store: f.Bulks, Do: admin.Bulk{Service: f.Service}.Do, Holder: string(holdfast.NewID()), Logger: slog.New(slog.DiscardHandler)}).Run(ctx)
		}})
	})
}

// A bulk action does what its filter found, and says of each row what became of it.
func TestBulkRetriesWhatTheFilterFound(t *testing.T) {
	t.Parallel()
	withBulk(t, func(r bulkRig) {
		t, f, run := r.t, r.f, r.run
		var parked []holdfast.ID
		for _, to := range []string{"inventory", "inventory", "inventory", "billing"} {
			id := f.send(t, `{"destination": "`+to+`", "endpoint": "E", "payload": {}}`)
			f.put(t, id, park)
			parked = append(parked, id)
		}
		f.send(t, `{"destination": "inventory", "endpoint": "E", "payload": {}}`) // pending
		const of = `{"list": "messages", "verb": "retry", "filter": {"destination": "inventory"}, `
		dry := ok[api.Bulk](t, f, call{method: http.MethodPost, path: "/v1/bulk", body: of + `"dryRun": true}`})
		if d := cmp.Diff(dry.Counts, []api.BulkCount{{Of: "inventory", Status: "parked", Count: 3}}); d != "" || dry.ID != "" || dry.Total != 3 {
			t.Errorf("dry run %+v (-got +want):\n%s", dry, d)
		}
		added := ok[api.Bulk](t, f, call{method: http.MethodPost, path: "/v1/bulk", body: of + `"paused": true}`})
		if added.State != "paused" || added.Total != 3 {
			t.Fatalf("added %+v", added)
		}
		path := "/v1/bulk/" + added.ID
		run()
		f.put(t, parked[1], func(r *holdfast.Record) { r.State = holdfast.Delivered })
		ok[api.Bulk](t, f, call{method: http.MethodPost, path: path + "/resume"})
		run()
		if got := ok[api.Bulk](t, f, call{method: http.MethodGet, path: path}); got.State != "done" || got.Done != 2 || got.Refused != 1 || got.Actor != "local" || got.Ended == nil {
			t.Errorf("got %+v, want it done but for one row", got)
		}
		rows := ok[api.BulkRowPage](t, f, call{method: http.MethodGet, path: path + "/rows?limit=2"})
		if d := cmp.Diff(rows, api.BulkRowPage{Next: 2, Rows: []api.BulkRow{
			{Seq: 1, Item: string(parked[0]), Outcome: "done"},
			{Seq: 2, Item: string(parked[1]), Outcome: "refused", Detail: "message " + string(parked[1]) + " is delivered; only a message that is parked, expired or discarded can be retried"},
		}}); d != "" {
			t.Errorf("rows (-got +want):\n%s", d)
		}
		for i, want := range []string{"pending", "delivered", "pending", "parked"} {
			if m := ok[api.MessageDetail](t, f, call{method: http.MethodGet, path: "/v1/messages/" + string(parked[i])}); m.State != want {
				t.Errorf("message %d is %s, want %s", i, m.State, want)
			}
		}
		w := f.do(t, call{method: http.MethodPost, path: path + "/cancel"})
		if p := problem(t, w); w.Code != http.StatusConflict || p.Type != "urn:holdfast:problem:state" {
			t.Errorf("cancel of what is done: %d %s", w.Code, w.Body)
		}
		if page := ok[api.BulkPage](t, f, call{method: http.MethodGet, path: "/v1/bulk"}); len(page.Actions) != 1 || page.Actions[0].Request.Filter.Destination != "inventory" {
			t.Errorf("list %+v", page)
		}
	})
}

// A request that makes no sense names each fault, and does nothing.
func TestBulkRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	withBulk(t, func(r bulkRig) {
		t, f := r.t, r.f
		for body, field := range map[string]string{
			`{"list": "sites", "verb": "retry", "filter": {}}`:                                  "list",
			`{"list": "messages", "verb": "resend", "filter": {}}`:                              "verb",
			`{"list": "messages", "verb": "retry", "filter": {"channel": "mail"}}`:              "filter.channel",
			`{"list": "notifications", "verb": "retry", "filter": {"destination": "x"}}`:        "filter.destination",
			`{"list": "messages", "verb": "retry", "filter": {}, "channel": "mail"}`:            "channel",
			`{"list": "messages", "verb": "retry", "filter": {}, "rate": -1}`:                   "rate",
			`{"list": "messages", "verb": "retry", "filter": {}, "in": "2h"}`:                   "verb",
			`{"list": "messages", "verb": "reschedule", "filter": {}}`:                          "in",
			`{"list": "messages", "verb": "discard", "filter": {}, "force": true}`:              "force",
			`{"list": "messages", "verb": "discard", "filter": {"status": ["lost"]}}`:           "state",
			`{"list": "messages", "verb": "discard", "filter": {}, "colour": "red"}`:            "colour",
			`{"list": "notifications", "verb": "discard", "filter": {"from": "the other day"}}`: "from",
		} {
			w := f.do(t, call{method: http.MethodPost, path: "/v1/bulk", body: body})
			if p := problem(t, w); w.Code != http.StatusUnprocessableEntity || len(p.Errors) != 1 || p.Errors[0].Field != field {
				t.Errorf("%s: got %d %s, want a fault of %s", body, w.Code, w.Body, field)
			}
		}
		if page := ok[api.BulkPage](t, f, call{method: http.MethodGet, path: "/v1/bulk"}); len(page.Actions) != 0 {
			t.Errorf("list %+v", page)
		}
		w := f.do(t, call{method: http.MethodPost, path: "/v1/bulk/nobody/pause"})
		if p := problem(t, w); w.Code != http.StatusNotFound || p.Errors[0].Field != "id" {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}
