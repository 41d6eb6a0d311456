package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/link"
)

// SF-28: what central asks of a site, through the API and its client.
func TestSitesThroughTheClient(t *testing.T) {
	t.Parallel()
	f := serve(t)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	c, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	made, err := c.Sites().Add(t.Context(), "plant-7")
	if err != nil || !strings.HasPrefix(made.Token, "hfe_") || made.Name != "plant-7" || time.Until(made.Expires) < 23*time.Hour {
		t.Fatalf("got %+v, %v", made, err)
	}
	if _, err := c.Sites().Add(t.Context(), "plant-7"); err == nil || !strings.Contains(err.Error(), "plant-7") {
		t.Errorf("got %v, want that the name is taken", err)
	}
	if again, err := c.Sites().Rotate(t.Context(), "plant-7", false); err != nil || again.Token == made.Token {
		t.Errorf("got %+v, %v", again, err)
	}
	store := f.sites.At("plant-7")
	for _, id := range []holdfast.ID{"a", "b", "c"} {
		if _, err := store.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: "erp", Endpoint: "E", Payload: []byte(`{"a": 1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []holdfast.ID{"a", "b"} {
		if err := store.Change(id, park); err != nil {
			t.Fatal(err)
		}
	}
	site := c.At("plant-7")
	page, err := site.Messages().List(t.Context(), client.MessageQuery{})
	if err != nil || len(page.Messages) != 2 {
		t.Errorf("got %+v, %v; want the two that are parked", page, err)
	}
	if page, err = site.Messages().List(t.Context(), client.MessageQuery{States: []string{"pending"}}); err != nil || len(page.Messages) != 1 {
		t.Errorf("got %+v, %v; want the one that waits", page, err)
	}
	if d, err := site.Messages().Get(t.Context(), "a"); err != nil || string(d.Payload) != `{"a": 1}` || d.WaitsFor != "" {
		t.Errorf("got %+v, %v", d, err)
	}
	if m, err := site.Messages().Retry(t.Context(), "a", api.RetryRequest{}); err != nil || m.State != "pending" {
		t.Errorf("got %+v, %v", m, err)
	}
	if m, err := site.Messages().Discard(t.Context(), "b"); err != nil || m.State != "discarded" {
		t.Errorf("got %+v, %v", m, err)
	}
	if err := c.Sites().Revoke(t.Context(), "plant-7"); err != nil {
		t.Error(err)
	}
	sites, err := c.Sites().List(t.Context())
	if err != nil || len(sites) != 1 || sites[0].State != "revoked" || sites[0].Revoked == nil {
		t.Errorf("got %+v, %v", sites, err)
	}
	if _, err := site.Messages().Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("got %v, want that it is revoked", err)
	}
}

// The category is the site's: central may have another destination of that
// name, or none.
func TestTheCategoryIsTheSites(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Destinations = func() []admin.Destination {
			return []admin.Destination{{Name: "mes", Category: holdfast.CategoryExternalSystem}}
		}
	})
	server := httptest.NewServer(f.handler)
	defer server.Close()
	c, err := client.New(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Sites().Add(t.Context(), "plant-7"); err != nil {
		t.Fatal(err)
	}
	store, site := f.sites.At("plant-7"), c.At("plant-7")
	for id, category := range map[holdfast.ID]holdfast.Category{"mes": holdfast.CategoryCachedDBWrite, "erp": holdfast.CategoryExternalSystem, "peer": ""} {
		destination := string(id)
		if id == "peer" {
			destination = "mes"
		}
		if _, err := store.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: destination, Endpoint: "E", Payload: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		if err := store.Change(id, func(r *holdfast.Record) { park(r); r.Category = category }); err != nil {
			t.Fatal(err)
		}
		shown, err := site.Messages().Get(t.Context(), string(id))
		if err != nil || shown.Category != string(category) {
			t.Errorf("%s is shown as %q (%v), want %q", id, shown.Category, err, category)
		}
		page, err := site.Messages().List(t.Context(), client.MessageQuery{})
		if err != nil || page.Messages[0].ID != string(id) || page.Messages[0].Category != string(category) {
			t.Errorf("%s is listed as %+v (%v), want %q", id, page.Messages, err, category)
		}
		if m, err := site.Messages().Retry(t.Context(), string(id), api.RetryRequest{}); err != nil || m.Category != string(category) {
			t.Errorf("%s is retried as %q (%v), want %q", id, m.Category, err, category)
		}
		if err := store.Change(id, park); err != nil {
			t.Fatal(err)
		}
		if m, err := site.Messages().Discard(t.Context(), string(id)); err != nil || m.Category != string(category) {
			t.Errorf("%s is discarded as %q (%v), want %q", id, m.Category, err, category)
		}
	}
}

func TestASiteIsShown(t *testing.T) {
	t.Parallel()
	f := serve(t)
	ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"plant-7"}`})
	s := ok[api.Site](t, f, call{method: "GET", path: "/v1/sites/plant-7"})
	if s.State != "online" || !s.Connected || s.Pending != 3 || s.Parked != 2 || s.OldestMs != 60_000 || s.Version != "1.2.3" || s.LastSeen == nil {
		t.Errorf("got %+v", s)
	}
}

// Every refusal says what to do; a site that is away and one that does not
// answer are told apart.
func TestSitesRefuse(t *testing.T) {
	t.Parallel()
	f := serve(t)
	ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"plant-7"}`})
	ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"plant-8"}`})
	ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"plant-9"}`})
	f.sites.Away("plant-8", &link.ErrNotReachable{Site: "plant-8", LastSeen: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)})
	f.sites.Away("plant-9", link.ErrNoAnswer)
	for trouble, want := range map[link.Trouble]struct {
		status     int
		sort, says string
	}{
		link.Busy:        {http.StatusServiceUnavailable, "site-busy", "ask again in a moment"},
		link.DiskFull:    {http.StatusInsufficientStorage, "disk-full", "free some space there"},
		link.Unavailable: {http.StatusServiceUnavailable, "site-unavailable", "doctor there"},
		link.TooLarge:    {http.StatusBadGateway, "site-failed", "ask for fewer"},
		link.Unknown:     {http.StatusNotImplemented, "unsupported", "update it"},
		link.Failed:      {http.StatusBadGateway, "site-failed", "its log says why"},
	} {
		name := "in-trouble-" + strings.ReplaceAll(string(trouble), "_", "-")
		ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"` + name + `"}`})
		f.sites.Away(name, fmt.Errorf("ask: %w", &link.ErrSite{Site: name, Trouble: trouble, Text: "x"}))
		for _, c := range []call{
			{method: "GET", path: "/v1/sites/" + name + "/messages"},
			{method: "GET", path: "/v1/sites/" + name + "/messages/m"},
			{method: "POST", path: "/v1/sites/" + name + "/messages/m/retry"},
			{method: "POST", path: "/v1/sites/" + name + "/messages/m/discard"},
		} {
			w := f.do(t, c)
			if p := problem(t, w); w.Code != want.status || !strings.HasSuffix(p.Type, ":"+want.sort) ||
				!strings.Contains(p.Detail, "site "+name) || !strings.Contains(p.Detail, want.says) {
				t.Errorf("%s, %s %s: got %d %s %s, want %d %s that names the site, and %q", trouble, c.method, c.path, w.Code, p.Type, p.Detail, want.status, want.sort, want.says)
			}
		}
	}
	for _, c := range []struct {
		call
		status int
		want   string
	}{
		{call{method: "POST", path: "/v1/sites", body: `{"name":"a/b"}`}, http.StatusUnprocessableEntity, "letters"},
		{call{method: "POST", path: "/v1/sites", body: `{}`}, http.StatusUnprocessableEntity, "name"},
		{call{method: "POST", path: "/v1/sites", body: `{"name":"plant-7"}`}, http.StatusConflict, "plant-7"},
		{call{method: "GET", path: "/v1/sites/none"}, http.StatusNotFound, "no site"},
		{call{method: "DELETE", path: "/v1/sites/none"}, http.StatusNotFound, "no site"},
		{call{method: "POST", path: "/v1/sites/none/rotate"}, http.StatusNotFound, "no site"},
		{call{method: "GET", path: "/v1/sites/none/messages"}, http.StatusNotFound, "no site"},
		{call{method: "GET", path: "/v1/sites/plant-7/messages?state=odd"}, http.StatusUnprocessableEntity, "state"},
		{call{method: "GET", path: "/v1/sites/plant-7/messages?odd=1"}, http.StatusUnprocessableEntity, "odd"},
		{call{method: "GET", path: "/v1/sites/plant-7/messages/m"}, http.StatusNotFound, "no message m"},
		{call{method: "POST", path: "/v1/sites/plant-7/messages/m/discard"}, http.StatusNotFound, "no message m"},
		{call{method: "POST", path: "/v1/sites/plant-7/messages/m/retry", body: `{"ttl":"1"}`}, http.StatusUnprocessableEntity, "unit"},
		{call{method: "GET", path: "/v1/sites/plant-8/messages"}, http.StatusServiceUnavailable, "last seen 2026-11-28T12:00:00Z"},
		{call{method: "GET", path: "/v1/sites/plant-8/messages/m"}, http.StatusServiceUnavailable, "nothing was done"},
		{call{method: "POST", path: "/v1/sites/plant-9/messages/m/retry"}, http.StatusGatewayTimeout, "may have done it"},
	} {
		w := f.do(t, c.call)
		if p := problem(t, w); w.Code != c.status || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s %s: got %d %s, want %d and %q", c.method, c.path, w.Code, p.Detail, c.status, c.want)
		}
	}
}

// A node that is no central has no such routes.
func TestOnlyACentralHasSites(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Central = nil })
	if w := f.do(t, call{method: "GET", path: "/v1/sites"}); w.Code != http.StatusNotFound {
		t.Errorf("got %d", w.Code)
	}
	if w := f.do(t, call{method: "GET", path: "/openapi.json"}); strings.Contains(w.Body.String(), `"/v1/sites"`) {
		t.Error("they are in the document")
	}
}
