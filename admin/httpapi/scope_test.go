package httpapi_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/activity"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/track"
)

// tracker is what a site says of its operations.
type tracker struct{ *track.Tracker }

func (t tracker) Operations(ctx context.Context, f track.Filter) (track.Page, error) {
	return t.List(ctx, f)
}

// followed is a locked server with operations and an activity log, over a real store.
func followed(t *testing.T) (*fixture, *sqlite.DB) {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	kept := nodestore.New(db, nil)
	l := &activity.Log{Journal: db, Store: kept.Activity, Keep: time.Hour, Every: time.Hour, Logger: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	waittest.Until(t, "the log follows the journal", func() bool {
		list, err := db.Followers(t.Context())
		return err == nil && len(list) == 1
	})
	category := func(string) (holdfast.Category, bool) { return holdfast.CategoryExternalSystem, true }
	return serve(t, locked, func(s *httpapi.Server) {
		s.Outbox, s.Activity, s.Track = db, kept.Activity, tracker{&track.Tracker{Outbox: db, Past: kept.Operations, Category: category}}
	}), db
}

// sent enqueues a message to each destination, m0 and so on, and waits until the activity log has them.
func sent(t *testing.T, db *sqlite.DB, destinations ...string) {
	t.Helper()
	for i, to := range destinations {
		if _, err := db.Enqueue(t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: to, Endpoint: "E"}); err != nil {
			t.Fatal(err)
		}
	}
	waittest.Until(t, "the log has all", func() bool {
		list, err := db.Followers(t.Context())
		return err == nil && list[0].Unread.IsZero()
	})
}

func TestOperationsAndActivitiesKeepToTheScope(t *testing.T) {
	t.Parallel()
	f, db := followed(t)
	sent(t, db, "inventory", "billing", "other", "inventory")
	header := f.token(t, `{"name":"inv","role":"read","destinations":["inventory"]}`)
	f.within(t, header, map[string]int{
		"GET /v1/operations/m0": 200, "GET /v1/operations/m1": 404, "GET /v1/operations/mx": 404,
		"GET /v1/operations?destination=inventory": 200, "GET /v1/operations?destination=billing": 403, "GET /v1/operations?destination=nowhere": 403,
		"GET /v1/activity?destination=inventory": 200, "GET /v1/activity?destination=billing": 403, "GET /v1/activity/stream?destination=billing": 403,
	})
	for _, scope := range []string{`"sites":["plant-4"]`, `"topics":["orders"]`} {
		f.within(t, f.token(t, fmt.Sprintf(`{"name":%q,"role":"read",%s}`, strings.Fields(scope)[0][1:5], scope)), map[string]int{
			"GET /v1/operations": 403, "GET /v1/operations/m0": 404, "GET /v1/activity": 403, "GET /v1/activity/stream": 403,
		})
	}
	two := f.token(t, `{"name":"two","role":"read","sites":["plant-7"],"destinations":["billing","inventory"]}`)
	for name, c := range map[string]struct {
		header     map[string]string
		operations []string
	}{
		"one destination":  {header, []string{"m3", "m0"}},
		"two destinations": {two, []string{"m3", "m1", "m0"}},
		"all":              {f.token(t, `{"name":"all","role":"read"}`), []string{"m3", "m2", "m1", "m0"}},
	} {
		var operations, acts []string
		for path := "/v1/operations?limit=1"; path != ""; {
			page := ok[api.OperationPage](t, f, call{method: "GET", path: path, header: c.header})
			path = ""
			if page.Next != "" {
				path = "/v1/operations?limit=1&after=" + page.Next
			}
			for i := range page.Operations {
				operations = append(operations, page.Operations[i].ID)
			}
		}
		for path := "/v1/activity?limit=1"; path != ""; {
			page := ok[api.ActivityPage](t, f, call{method: "GET", path: path, header: c.header})
			path = ""
			if page.Next != 0 {
				path = fmt.Sprint("/v1/activity?limit=1&after=", page.Next)
			}
			for i := range page.Activities {
				acts = append(acts, page.Activities[i].Message)
			}
		}
		if d := cmp.Diff(operations, c.operations); d != "" {
			t.Errorf("operations of %s (-got +want):\n%s", name, d)
		}
		if d := cmp.Diff(acts, c.operations); d != "" {
			t.Errorf("activities of %s (-got +want):\n%s", name, d)
		}
	}
	if page := ok[api.ActivityPage](t, f, call{method: "GET", path: "/v1/activity?message=m1", header: header}); len(page.Activities) != 0 {
		t.Errorf("got %+v", page.Activities)
	}
}

// What a stream tells is in the scope, too.
func TestAStreamKeepsToTheScope(t *testing.T) {
	t.Parallel()
	f, db := followed(t)
	sent(t, db, "billing", "inventory")
	server := httptest.NewServer(f.handler)
	t.Cleanup(server.Close)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/activity/stream?after=0", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range f.token(t, `{"name":"inv","role":"read","destinations":["inventory"]}`) {
		r.Header.Set(name, value)
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if data, is := strings.CutPrefix(lines.Text(), "data: "); is {
			if !strings.Contains(data, `"m1"`) || strings.Contains(data, `"m0"`) {
				t.Errorf("got %s", data)
			}
			return
		}
	}
	t.Error("the stream ended")
}

func TestTheAuditLogKeepsToTheScope(t *testing.T) {
	t.Parallel()
	f, db := audited(t)
	calls(t, f, db, "x")
	id := ok[api.AuditPage](t, f, call{method: "GET", path: "/v1/audit?target=x"}).Records[0].ID
	f.AuthRequired = true
	f.handler, _ = f.Handler()
	f.within(t, f.token(t, `{"name":"plant","role":"auditor","sites":["plant"]}`), map[string]int{
		"GET /v1/audit": 403, "GET /v1/audit?site=other": 403, "GET /v1/audit?site=plant": 200, "GET /v1/audit/kpis": 403, "GET /v1/audit/" + id: 200, "GET /v1/audit/" + id + "/proof": 200,
		"GET /v1/audit/export": 403, "GET /v1/audit/export?site=other": 403, "GET /v1/audit/export?site=plant": 200,
	})
	for i, scope := range []string{`"sites":["other"]`, `"destinations":["x"]`} {
		f.within(t, f.token(t, fmt.Sprintf(`{"name":"t%d","role":"auditor",%s}`, i, scope)), map[string]int{
			"GET /v1/audit": 403, "GET /v1/audit?site=plant": 403, "GET /v1/audit/" + id: 404, "GET /v1/audit/" + id + "/proof": 404, "GET /v1/audit/export?site=plant": 403,
		})
	}
}

func TestCallsOfSitesKeepToTheScope(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "central.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Side().Change(t.Context(), side.Cost{}, func(tx side.Tx) error {
		var list []rows.Row
		for _, site := range []string{"plant-4", "plant-5"} {
			for _, to := range []string{"erp", "mes"} {
				list = append(list, &rows.SiteCall{Site: site, ID: "to-" + to, Node: "n", Destination: to, Status: "parked", Created: 1, Seen: rows.Now})
			}
		}
		return tx.Put(list...)
	}); err != nil {
		t.Fatal(err)
	}
	f := serve(t, locked, func(s *httpapi.Server) { s.Mirror = nodestore.New(db, nil).SiteCalls })
	four := f.token(t, `{"name":"four","role":"read","sites":["plant-4"]}`)
	f.within(t, four, map[string]int{
		"GET /v1/site-calls": 403, "GET /v1/site-calls?site=plant-4": 200, "GET /v1/site-calls?site=plant-5": 403,
		"GET /v1/site-calls/plant-4/to-erp": 200, "GET /v1/site-calls/plant-5/to-erp": 404,
	})
	f.within(t, f.token(t, `{"name":"erp","role":"read","destinations":["erp"]}`), map[string]int{
		"GET /v1/site-calls": 403, "GET /v1/site-calls?site=plant-4": 403, "GET /v1/site-calls?destination=erp": 200, "GET /v1/site-calls?destination=mes": 403,
		"GET /v1/site-calls/plant-5/to-erp": 200, "GET /v1/site-calls/plant-5/to-mes": 404, "GET /v1/site-calls/kpis": 403,
	})
	counts := ok[api.SiteCallCounts](t, f, call{method: "GET", path: "/v1/site-calls/kpis", header: four}).Counts
	if len(counts) != 1 || counts[0].Site != "plant-4" || counts[0].Parked != 2 {
		t.Errorf("got %+v", counts)
	}
}
