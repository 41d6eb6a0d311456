package httpapi_test

import (
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// AU-03 and AU-10: what sites said of their calls, through the API and its client.
func TestSiteCallsThroughTheClient(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "central.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := time.Now().UnixMicro()
	var ids []string
	if err := db.Side().Change(t.Context(), side.Cost{}, func(tx side.Tx) error {
		ids = nil
		var list []rows.Row
		for i, status := range []string{"parked", "retrying", "submitted", "delivered"} {
			c := &rows.SiteCall{Site: "plant-7", ID: string(holdfast.NewID()), Node: "n", Status: status, Created: now - int64(time.Hour/time.Microsecond) + int64(i), LastError: fmt.Sprint("error ", i), Seen: rows.Now}
			if status == "delivered" {
				c.Ended = now
			}
			if status == "submitted" {
				c.Created = now
			}
			list, ids = append(list, c), append(ids, c.ID)
		}
		return tx.Put(list...)
	}); err != nil {
		t.Fatal(err)
	}
	kept := nodestore.New(db, nil)
	f := serve(t, func(s *httpapi.Server) { s.Mirror, s.Records = kept.SiteCalls, kept.Audit })
	server := httptest.NewServer(f.handler)
	defer server.Close()
	c, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	calls := c.SiteCalls()
	var got []string
	for q := (client.SiteCallQuery{Site: "plant-7", Limit: 3, From: time.UnixMicro(now).Add(-2 * time.Hour)}); ; {
		p, err := calls.List(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Calls {
			got = append(got, c.Status)
		}
		if q.After = p.Next; q.After == "" {
			break
		}
	}
	if text := strings.Join(got, " "); text != "submitted delivered retrying parked" {
		t.Errorf("listed %s", text)
	}
	if p, err := calls.List(t.Context(), &client.SiteCallQuery{Statuses: []string{"parked"}, Error: "ERROR 0"}); err != nil || len(p.Calls) != 1 || p.Calls[0].ID != ids[0] || p.Calls[0].Stuck {
		t.Errorf("got %+v, %v; want the parked one", p, err)
	}
	if one, err := calls.Get(t.Context(), "plant-7", strings.ToUpper(ids[1])); err != nil || one.Status != "retrying" || !one.Stuck || one.LastError != "error 1" {
		t.Errorf("got %+v, %v", one, err)
	}
	if _, err := calls.Get(t.Context(), "plant-8", ids[1]); err == nil || !strings.Contains(err.Error(), "plant-8") {
		t.Errorf("got %v, want that the site has told of none", err)
	}
	if _, err := calls.List(t.Context(), &client.SiteCallQuery{After: "x"}); err == nil || !strings.Contains(err.Error(), "after") {
		t.Errorf("got %v, want that it is no place", err)
	}
	o, err := c.Overview(t.Context())
	if err != nil || o.SiteCalls == nil || *o.SiteCalls != (api.SiteCallSums{Waiting: 1, Retrying: 1, Parked: 1, Stuck: 1}) || o.Sites == nil || o.Notifications == nil || len(o.Unknown) != 0 {
		t.Errorf("the overview has %+v, %v", o, err)
	}
	n, err := calls.Counts(t.Context())
	if err != nil || len(n.Counts) != 1 || n.Counts[0].Parked != 1 || n.Counts[0].Retrying != 1 || n.Counts[0].Waiting != 1 || n.Counts[0].Stuck != 1 {
		t.Errorf("got %+v, %v", n, err)
	}
}
