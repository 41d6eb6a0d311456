package httpapi_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/notify"
)

// aSite has two foreign systems, a database, a peer and the way to central.
func aSite(s *httpapi.Server) {
	s.Destinations = func() []admin.Destination {
		return []admin.Destination{
			{Name: "erp", Category: holdfast.CategoryExternalSystem},
			{Name: "mes", Category: holdfast.CategoryExternalSystem},
			{Name: "history", Category: holdfast.CategoryCachedDBWrite},
			{Name: "billing"},
			{Name: notify.Central, Category: holdfast.CategoryNotification},
		}
	}
}

// SF-02, SF-04, SF-13, SF-30: a message says its category and where it comes
// from; both are shown with it, and lists can be narrowed.
func TestAMessageKeepsItsProvenance(t *testing.T) {
	t.Parallel()
	f := serve(t, aSite)
	f.send(t, `{"id":"m","category":"external-system","destination":"erp","endpoint":"Book","headers":{"lot":"9"},"originInstance":"mixer-3",
		"sourceScript":"recipe.lua","executionId":"run 1","parentExecutionId":"run 0"}`)
	w := f.do(t, call{method: "GET", path: "/v1/messages/m"})
	for _, want := range []string{
		`"category":"external-system"`, `"originInstance":"mixer-3","sourceScript":"recipe.lua","executionId":"run 1","parentExecutionId":"run 0"`, `"headers":{"lot":"9"}`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("got %s, want %s in it", w.Body, want)
		}
	}
	if w := f.do(t, call{method: "GET", path: "/v1/destinations"}); !strings.Contains(w.Body.String(), `{"name":"erp","category":"external-system","configured":true`) {
		t.Errorf("the destinations are %s", w.Body)
	}
	list := ok[api.MessagePage](t, f, call{method: "GET", path: "/v1/messages?category=external-system"})
	want := api.Provenance{OriginInstance: "mixer-3", SourceScript: "recipe.lua", ExecutionID: "run 1", ParentExecutionID: "run 0"}
	if len(list.Messages) != 1 || list.Messages[0].Provenance != want || list.Messages[0].Category != "external-system" {
		t.Errorf("listed as %+v", list.Messages)
	}
	r, err := f.store.Get(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{
		"lot": "9", notify.HeaderInstance: "mixer-3", notify.HeaderScript: "recipe.lua", notify.HeaderExecution: "run 1", notify.HeaderParentExecution: "run 0",
	}, r.Message.Headers); diff != "" {
		t.Errorf("it travels with (-want +got):\n%s", diff)
	}
}

// SF-12: the parked of a category, of all its destinations, one page after the
// other and each once.
func TestTheListOfACategory(t *testing.T) {
	t.Parallel()
	f := serve(t, aSite)
	for i, to := range []string{"erp", "mes", "history", "billing", "erp", "mes", "erp"} {
		id := f.send(t, fmt.Sprintf(`{"id":"m%d","destination":%q,"endpoint":"x"}`, i, to))
		if i != 6 {
			f.put(t, id, park)
		}
	}
	f.put(t, "m2", func(r *holdfast.Record) { r.HeldUntil = time.Now().Add(time.Hour) })
	for i, lane := range []string{"channel:mail", "channel:room", "channel:mail"} { // as a node has them that tells people
		id := holdfast.ID(fmt.Sprint("n", i))
		if _, err := f.store.Enqueue(t.Context(), holdfast.Message{ID: id, Destination: lane, Endpoint: "operators"}); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]string{
		"category=external-system":                       "m6 m4 m0 m5 m1",
		"category=external-system&state=parked":          "m4 m0 m5 m1",
		"category=external-system&state=parked&limit=1":  "m4 | m0 | m5 | m1",
		"category=external-system&state=parked&limit=2":  "m4 m0 | m5 m1",
		"category=external-system&state=parked&limit=3":  "m4 m0 m5 | m1",
		"category=external-system&state=expired&limit=3": "",
		"category=external-system&id=m0":                 "m0",
		"category=external-system&id=m2":                 "",
		"category=cached-db-write":                       "m2",
		"category=notification":                          "n2 n0 n1",
		"category=notification&state=parked":             "",
		"state=parked":                                   "m5 m4 m3 m2 m1 m0",
		"held=true":                                      "m2", // F1-51
		"held=true&category=cached-db-write":             "m2",
		"held=true&category=external-system":             "",
		"held=false&state=parked":                        "m5 m4 m3 m2 m1 m0",
	} {
		var pages []string
		after := ""
		for range 9 {
			page := ok[api.MessagePage](t, f, call{method: "GET", path: "/v1/messages?" + query + "&after=" + url.QueryEscape(after)})
			var ids []string
			for _, m := range page.Messages {
				ids = append(ids, m.ID)
			}
			if len(ids) > 0 {
				pages = append(pages, strings.Join(ids, " "))
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if got := strings.Join(pages, " | "); got != want || after != "" {
			t.Errorf("%s: got %q, then %q, want %q", query, got, after, want)
		}
	}
	for query, want := range map[string]string{
		"category=calls":                        "is not a category of this node; its categories are cached-db-write, external-system, notification",
		"category=external-system&after=3":      "is not a position",
		"category=external-system&after=%40":    "is not a position", // F1-47: the first page again, once
		"category=notification&destination=erp": "leave one of them out",
	} {
		w := f.do(t, call{method: "GET", path: "/v1/messages?" + query})
		if p := problem(t, w); w.Code != 422 || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: got %d %s, want %q", query, w.Code, p.Detail, want)
		}
	}
}

// SF-03, SF-04: what a request says wrongly is named; nothing is taken.
func TestAWrongRequestOfASite(t *testing.T) {
	t.Parallel()
	f := serve(t, aSite)
	for body, want := range map[string]string{
		`{"category":"cached-db-write","destination":"erp","endpoint":"x"}`:                      `category "cached-db-write" does not match destination erp, which is of category external-system`,
		`{"category":"external-system","destination":"billing","endpoint":"x"}`:                  "which is a peer",
		`{"category":"external-system","destination":"epr","endpoint":"x"}`:                      "known are",
		`{"category":"external-system","endpoint":"x"}`:                                          "destination",
		`{"destination":"erp","endpoint":"x","headers":{"Hf-Script":"x"}}`:                       "use another name",
		`{"destination":"erp","endpoint":"x","originInstance":"a\nb"}`:                           "originInstance",
		`{"destination":"erp","endpoint":"x","sourceScript":"` + strings.Repeat("x", 257) + `"}`: "at most 256 bytes",
		`{"destination":"erp","endpoint":"x","retryInterval":"30"}`:                              "has no unit",
		`{"destination":"erp","endpoint":"x","retryInterval":"0s"}`:                              "is 0",
		`{"destination":"erp","endpoint":"x","retryInterval":"5000d"}`:                           "is longer than",
		`{"destination":"erp","endpoint":"x","attemptImmediately":"no"}`:                         "must be true or false",
		`{"destination":"erp","endpoint":"x","attemptImmediately":false,"wait":"5s"}`:            "leave one of them out",
		`{"category":"notification","payload":{"list":"l","subject":"s"},"source":"elsewhere"}`:  "comes from this site",
		`{"category":"notification","payload":{"list":"l","subject":"s"},"endpoint":"mail"}`:     "endpoint",
		`{"category":"notification","payload":{"list":"l","to":"x"}}`:                            "payload is not a notification",
		`{"category":"notification","payload":{"list":"a b","subject":"s"}}`:                     "payload.list",
		`{"category":"notification"}`:                                                            "payload.list",
		`{"category":"notification","destination":"erp","endpoint":"x","payload":{}}`:            "does not match destination erp",
	} {
		w := f.do(t, call{method: "POST", path: "/v1/messages", body: body})
		p := problem(t, w)
		unknown := strings.Contains(body, "epr")
		if w.Code != 422 || !strings.Contains(p.Detail, want) || (p.Cause == "unknown_destination") != unknown {
			t.Errorf("%s: got %d %s, cause %q, want %q", body, w.Code, p.Detail, p.Cause, want)
		}
	}
	if n := f.store.Counts().Pending; n != 0 {
		t.Errorf("%d were taken all the same", n)
	}
}

// SF-04, SF-07, SF-29, F1-97: retries and interval are converted where they are
// read, and shown as they were sent.
func TestAMessageBringsItsRetries(t *testing.T) {
	t.Parallel()
	f := serve(t, aSite)
	for fields, want := range map[string]*holdfast.RetryPolicy{
		``:                                     nil,
		`,"maxRetries":0`:                      {Attempts: holdfast.Unlimited},
		`,"maxRetries":50`:                     {Attempts: 51},
		`,"retryInterval":"30s"`:               {First: 30 * time.Second, Max: 30 * time.Second, Factor: 1},
		`,"maxRetries":1,"retryInterval":"1m"`: {First: time.Minute, Max: time.Minute, Factor: 1, Attempts: 2},
		`,"attemptImmediately":false,"wait":"0s"`: nil,
		`,"attemptImmediately":true`:              nil,
	} {
		id := f.send(t, `{"destination":"erp","endpoint":"x"`+fields+`}`)
		r, err := f.store.Get(t.Context(), id)
		if diff := cmp.Diff(want, r.Message.Retry); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", fields, err, diff)
		}
		if strings.Contains(fields, "etr") {
			shown := fields[1:]
			for _, path := range []string{"/v1/messages/" + string(id), "/v1/messages?limit=1"} {
				if body := f.do(t, call{method: "GET", path: path}).Body.String(); !strings.Contains(strings.ReplaceAll(body, " ", ""), shown) {
					t.Errorf("%s: want %s in %s", path, shown, body)
				}
			}
		}
	}
}

// F1-97: what only a Go program can ask for is not shown as something else.
func TestRetriesThatOnlyAProgramCanAskFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy   holdfast.RetryPolicy
		retries  *int
		interval string
	}{
		"no retry":      {policy: holdfast.RetryPolicy{Attempts: 1}, retries: new(-1)},
		"growing waits": {policy: holdfast.RetryPolicy{First: time.Second, Factor: 2, Attempts: 3}, retries: new(2)},
		"listed waits":  {policy: holdfast.RetryPolicy{List: []time.Duration{time.Second, time.Hour}}},
		"fixed waits":   {policy: holdfast.RetryPolicy{First: 90 * time.Second, Factor: 1}, interval: "1m30s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t)
			f.send(t, `{"id":"m","destination":"inventory","endpoint":"x"}`)
			f.put(t, "m", func(r *holdfast.Record) { r.Message.Retry = &c.policy })
			m := ok[api.MessageDetail](t, f, call{method: "GET", path: "/v1/messages/m"})
			if diff := cmp.Diff(api.OwnRetry{MaxRetries: c.retries, RetryInterval: c.interval}, m.OwnRetry); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
