package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/notify"
)

// token makes a token on a server that asks for one, and returns its header.
func (f *fixture) token(tb testing.TB, body string) map[string]string {
	tb.Helper()
	open := *f.Server
	open.AuthRequired = false
	handler, err := open.Handler()
	if err != nil {
		tb.Fatal(err)
	}
	made := ok[api.CreatedToken](tb, &fixture{handler: handler}, call{method: "POST", path: "/v1/tokens", body: body})
	return bearer(made.Secret)
}

// operations returns what the document says of each operation, by method and path.
func (f *fixture) operations(tb testing.TB) map[string]operation {
	tb.Helper()
	var doc document
	if err := json.Unmarshal(f.do(tb, call{method: "GET", path: "/openapi.json"}).Body.Bytes(), &doc); err != nil {
		tb.Fatal(err)
	}
	all, parameter := map[string]operation{}, regexp.MustCompile(`{[^}]+}`)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.Right != "" || !slices.Contains(op.Tags, "node") {
				all[strings.ToUpper(method)+" "+parameter.ReplaceAllString(path, "x")] = operation{op.Right, op.Scoped}
			}
		}
	}
	return all
}

type operation struct {
	right  api.Right
	scoped bool
}

// mounted adds the metrics, which the document has as well.
func mounted(s *httpapi.Server) {
	s.Mounts = []httpapi.Mount{{Pattern: "GET /metrics", Handler: http.NotFoundHandler(), Right: api.Read}}
}

// ofPerson reports whether a route is about one person: a token that is no administrator's is refused there
// (TestOnesOwn).
func ofPerson(path string) bool {
	return strings.Contains(path, "/v1/people/x") || strings.Contains(path, "/v1/sessions/x")
}

// Issue 14: each right opens its routes and no others; a route that names none fails here.
func TestEveryRouteAsksForItsRight(t *testing.T) {
	t.Parallel()
	f := serve(t, locked, mounted)
	sets := map[string][]api.Right{
		`"rights":["read"]`: {api.Read}, `"rights":["send"]`: {api.Send}, `"rights":["operate"]`: {api.Operate}, `"rights":["audit-read"]`: {api.AuditRead}, `"rights":["audit-read","audit-hold"]`: {api.AuditRead, api.AuditKeep},
		`"role":"read"`: {api.Read}, `"role":"operate"`: {api.Read, api.Send, api.Operate}, `"role":"auditor"`: {api.AuditRead, api.AuditExport},
		`"role":"admin"`: {api.Read, api.Send, api.Operate, api.AuditRead, api.AuditExport, api.AuditKeep, api.Admin},
	}
	all, n := f.operations(t), 0
	for says, set := range sets {
		header := f.token(t, fmt.Sprintf(`{"name":"t%d",%s}`, n, says))
		n++
		for route, op := range all {
			if !op.right.Known() {
				t.Errorf("%s needs the right %q, which there is not", route, op.right)
			}
			method, path, _ := strings.Cut(route, " ")
			w := f.do(t, call{method: method, path: path, header: header})
			lets := op.right == api.AnyToken && !ofPerson(path) || slices.Contains(set, op.right) || slices.Contains(set, api.Admin)
			if w.Code == http.StatusUnauthorized || (w.Code == http.StatusForbidden) == lets {
				t.Errorf("%s with %s: got %d, it needs %s", route, says, w.Code, op.right)
			}
		}
	}
	if len(all) < 40 {
		t.Errorf("got %d operations only", len(all))
	}
}

// What does not keep to a scope is closed to who has one.
func TestARouteThatKeepsToNoScopeRefusesOne(t *testing.T) {
	t.Parallel()
	f := serve(t, locked, mounted)
	for i, scope := range []string{`"sites":["plant-7"]`, `"destinations":["inventory"]`, `"topics":["orders"]`} {
		header := f.token(t, fmt.Sprintf(`{"name":"t%d","rights":["read","send","operate","audit-read","audit-export","audit-hold"],%s}`, i, scope))
		for route, op := range f.operations(t) {
			if op.right == api.Admin || op.right == api.AnyToken && ofPerson(route) {
				continue
			}
			method, path, _ := strings.Cut(route, " ")
			w := f.do(t, call{method: method, path: path, header: header})
			if whole := strings.Contains(w.Body.String(), "the whole node"); whole == op.scoped || whole && w.Code != http.StatusForbidden {
				t.Errorf("%s of a token with %s: got %d %s", route, scope, w.Code, w.Body)
			}
		}
	}
}

// Whoever asks is told what they may do.
func TestACallerIsToldItsRights(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	header := f.token(t, `{"name":"erp","rights":["send","read","send"],"destinations":["inventory","billing","billing"],"sites":["plant-7"]}`)
	got := f.do(t, call{method: "GET", path: "/v1/tokens/self", header: header}).Body.String()
	if want := `{"name":"erp","rights":["read","send"],"sites":["plant-7"],"destinations":["billing","inventory"]}` + "\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	open := serve(t)
	got = open.do(t, call{method: "GET", path: "/v1/tokens/self"}).Body.String()
	if want := `{"name":"local","role":"admin","rights":["read","send","operate","audit-read","audit-export","audit-hold","admin"]}` + "\n"; got != want {
		t.Errorf("without a token: got %s, want %s", got, want)
	}
}

func TestATokenOfNoSenseIsNotMade(t *testing.T) {
	t.Parallel()
	f := serve(t)
	for body, field := range map[string]string{
		`{"name":"a"}`: "rights", `{"name":"a","rights":[]}`: "rights", `{"name":"a","role":"king"}`: "role", `{"name":"a","rights":["look"]}`: "rights[0]",
		`{"name":"a","rights":["any"]}`: "rights[0]", `{"name":"a","role":"read","rights":["send"]}`: "rights", `{"name":"a","rights":["audit-export"]}`: "rights", `{"name":"a","rights":["audit-hold"]}`: "rights",
		`{"name":"a","rights":["admin"]}`: "rights", `{"name":"a","role":"admin","sites":["plant-7"]}`: "rights", `{"name":"a","role":"read","sites":[""]}`: "sites[0]",
		`{"name":"a","role":"read","topics":["a\nb"]}`: "topics[0]", `{"name":"a","role":"read","for":"0s"}`: "for", `{"name":"a","role":"read","for":"4000d"}`: "for",
		`{"name":"a","role":"read","for":"soon"}`: "for", `{"name":"a","role":"read","scope":{}}`: "scope",
		`{"name":"a","role":"read","destinations":[` + strings.Repeat(`"d",`, 100) + `"d"]}`: "destinations",
	} {
		w := f.do(t, call{method: "POST", path: "/v1/tokens", body: body})
		if p := problem(t, w); w.Code != 422 || len(p.Errors) != 1 || p.Errors[0].Field != field {
			t.Errorf("%.100s: got %d %+v, want a fault of %s", body, w.Code, p.Errors, field)
		}
	}
	if list := ok[api.TokenList](t, f, call{method: "GET", path: "/v1/tokens"}).Tokens; len(list) != 0 {
		t.Errorf("got %+v", list)
	}
}

// A token ends. The last token of role admin that does not end stays, whatever others there are for a while.
func TestATokenEnds(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		f := serve(t, locked)
		boss := f.token(t, `{"name":"boss","role":"admin"}`)
		ends := f.token(t, `{"name":"deputy","role":"admin","for":"2h"}`)
		if w := f.do(t, call{method: "DELETE", path: "/v1/tokens/boss", header: ends}); w.Code != http.StatusConflict {
			t.Errorf("the last that does not end: got %d %s", w.Code, w.Body)
		}
		time.Sleep(2*time.Hour - time.Second)
		if w := f.do(t, call{method: "GET", path: "/v1/tokens", header: ends}); w.Code != 200 {
			t.Errorf("before its end: got %d", w.Code)
		}
		time.Sleep(time.Second)
		if w := f.do(t, call{method: "GET", path: "/v1/tokens", header: ends}); w.Code != 401 {
			t.Errorf("after its end: got %d", w.Code)
		}
		list := ok[api.TokenList](t, f, call{method: "GET", path: "/v1/tokens", header: boss}).Tokens
		if len(list) != 2 || list[0].Until != nil || list[0].Ended || list[1].Until == nil || !list[1].Ended {
			t.Errorf("got %+v", list)
		}
		if w := f.do(t, call{method: "DELETE", path: "/v1/tokens/deputy", header: boss}); w.Code != 204 {
			t.Errorf("delete it: got %d %s", w.Code, w.Body)
		}
	})
}

// within asks each route and compares the statuses.
func (f *fixture) within(t *testing.T, header map[string]string, want map[string]int) {
	t.Helper()
	for request, status := range want {
		method, rest, _ := strings.Cut(request, " ")
		path, body, _ := strings.Cut(rest, " ")
		if w := f.do(t, call{method: method, path: path, body: body, header: header}); w.Code != status {
			t.Errorf("%s: got %d %s, want %d", request, w.Code, w.Body, status)
		}
	}
}

func TestMessagesKeepToTheScope(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	all := f.token(t, `{"name":"all","role":"operate"}`)
	for i, to := range []string{"inventory", "billing", "inventory", "other"} {
		if _, err := f.store.Enqueue(t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: to, Endpoint: "E"}); err != nil {
			t.Fatal(err)
		}
	}
	f.put(t, "m1", park)
	f.put(t, "m2", park)
	header := f.token(t, `{"name":"inv","role":"operate","destinations":["inventory"]}`)
	f.within(t, header, map[string]int{
		"GET /v1/messages/m0": 200, "GET /v1/messages/m1": 404, "GET /v1/messages/none": 404, "POST /v1/messages/m1/retry {}": 404, "POST /v1/messages/m1/discard": 404,
		"POST /v1/messages/m0/run": 200, "POST /_rf/outbox/m1/retry {}": 404, "GET /v1/messages?destination=billing": 403, "GET /v1/messages?destination=nowhere": 403,
		`POST /v1/messages {"destination":"billing","endpoint":"E","payload":1}`:   403,
		`POST /v1/messages {"destination":"nowhere","endpoint":"E","payload":1}`:   403,
		`POST /v1/messages {"destination":"inventory","endpoint":"E","payload":1}`: 202,
		`POST /v1/notifications {"list":"ops","subject":"s","body":"b"}`:           501, // a node that takes none
		"GET /v1/destinations/inventory":                                           200, "GET /v1/destinations/billing": 403, "GET /v1/destinations/nowhere": 403, "POST /v1/destinations/billing/pause": 403,
		"GET /v1/notifications": 403, "GET /v1/sites": 200, "GET /v1/sites/plant-4": 403,
	})
	ask := func(path string, header map[string]string) string {
		t.Helper()
		return strings.Trim(f.do(t, call{method: "GET", path: path, header: header}).Body.String(), "\n")
	}
	ids := func(page api.MessagePage) (list []string) {
		for i := range page.Messages {
			list = append(list, page.Messages[i].ID+" "+page.Messages[i].Destination)
		}
		return list
	}
	// The answer about what is out of scope is that about what is not there.
	if got, want := ask("/v1/messages/m1", header), strings.ReplaceAll(ask("/v1/messages/mx", header), "mx", "m1"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r, err := f.store.Get(t.Context(), "m1"); err != nil || r.State != holdfast.Parked {
		t.Errorf("a message out of scope is %s, %v", r.State, err)
	}
	two := f.token(t, `{"name":"two","role":"read","destinations":["inventory","billing"]}`)
	var got []string
	for path := "/v1/messages?limit=2"; path != ""; {
		page := ok[api.MessagePage](t, f, call{method: "GET", path: path, header: two})
		got, path = append(got, ids(page)...), ""
		if page.Next != "" {
			path = "/v1/messages?limit=2&after=" + page.Next
		}
	}
	if d := cmp.Diff(got[:1], []string{"m1 billing"}); d != "" || len(got) != 4 || got[3] != "m0 inventory" {
		t.Errorf("got %v, want those to billing, then those to inventory", got)
	}
	if page := ok[api.MessagePage](t, f, call{method: "GET", path: "/_rf/outbox/failed", header: header}); len(page.Messages) != 1 || page.Messages[0].ID != "m2" {
		t.Errorf("parked: got %v", ids(page))
	}
	if list := ok[api.DestinationList](t, f, call{method: "GET", path: "/v1/destinations", header: header}).Destinations; len(list) != 1 || list[0].Name != "inventory" {
		t.Errorf("destinations: got %+v", list)
	}
	if page := ok[api.MessagePage](t, f, call{method: "GET", path: "/v1/messages", header: all}); len(page.Messages) != 5 {
		t.Errorf("without a scope: got %v", ids(page))
	}
	f.within(t, f.token(t, `{"name":"plant","role":"operate","sites":["plant-4"]}`), map[string]int{
		"GET /v1/messages": 403, "GET /v1/messages/m0": 404, "POST /v1/messages/m0/run": 404, `POST /v1/messages {"destination":"inventory","endpoint":"E","payload":1}`: 403,
	})
	f.within(t, f.token(t, `{"name":"topic","role":"operate","topics":["orders"]}`), map[string]int{
		"GET /v1/messages": 403, "GET /v1/messages/m0": 404, "GET /v1/notifications": 403, "GET /v1/destinations/inventory": 403,
	})
}

func TestSitesKeepToTheScope(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	admin := f.token(t, `{"name":"boss","role":"admin"}`)
	for _, site := range []string{"plant-4", "plant-5"} {
		ok[api.SiteToken](t, f, call{method: "POST", path: "/v1/sites", body: `{"name":"` + site + `"}`, header: admin})
		for i, to := range []string{"erp", "mes"} {
			if _, err := f.sites.At(site).Enqueue(t.Context(), holdfast.Message{ID: holdfast.ID(fmt.Sprint("m", i)), Destination: to, Endpoint: "E"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	four := f.token(t, `{"name":"four","role":"operate","sites":["plant-4"]}`)
	f.within(t, four, map[string]int{
		"GET /v1/sites/plant-4": 200, "GET /v1/sites/plant-5": 403, "GET /v1/sites/none": 403, "GET /v1/sites/plant-4/messages": 200, "GET /v1/sites/plant-5/messages": 403,
		"GET /v1/sites/plant-4/messages/m0": 200, "GET /v1/sites/plant-5/messages/m0": 403, "POST /v1/sites/plant-4/messages/m0/run": 200, "POST /v1/sites/plant-5/messages/m0/run": 403,
	})
	if list := ok[api.SiteList](t, f, call{method: "GET", path: "/v1/sites", header: four}).Sites; len(list) != 1 || list[0].Name != "plant-4" {
		t.Errorf("got %+v", list)
	}
	erp := f.token(t, `{"name":"erp","role":"operate","destinations":["erp"]}`)
	f.within(t, erp, map[string]int{
		"GET /v1/sites/plant-4": 403, "GET /v1/sites/plant-5/messages/m0": 200, "GET /v1/sites/plant-5/messages/m1": 404, "POST /v1/sites/plant-5/messages/m1/discard": 404,
		"GET /v1/sites/plant-5/messages?destination=mes": 403,
	})
	page := ok[api.MessagePage](t, f, call{method: "GET", path: "/v1/sites/plant-5/messages?state=pending", header: erp})
	if len(page.Messages) != 1 || page.Messages[0].Destination != "erp" {
		t.Errorf("got %+v", page.Messages)
	}
}

func TestNotificationsKeepToTheScope(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	for i, site := range []string{"plant-4", "plant-5", "plant-4", "plant-6", "plant-5"} {
		id := holdfast.ID(fmt.Sprint("n", i/2)) // n0 comes from two sites
		f.notified(t, notify.Notification{ID: id, Subject: "s", Origin: notify.Origin{Site: site}}, "mail")
	}
	four := f.token(t, `{"name":"four","role":"operate","sites":["plant-4"]}`)
	f.within(t, four, map[string]int{
		"GET /v1/notifications/n0": 200, "GET /v1/notifications/n0?site=plant-4": 200, "GET /v1/notifications/n0?site=plant-5": 403, "GET /v1/notifications/n2": 404,
		"POST /v1/notifications/n2/discard": 404, "POST /v1/notifications/n0/discard?site=plant-5": 403, "POST /v1/notifications/n0/run": 200,
		"GET /v1/notifications?site=plant-5": 403, "GET /v1/notifications/kpis": 403, "GET /v1/channels": 403, "GET /v1/lists": 403,
		`POST /v1/notifications {"list":"ops","subject":"s","body":"b"}`: 501,
	})
	sites := func(path string, header map[string]string) (list []string) {
		for {
			page := ok[api.NotificationPage](t, f, call{method: "GET", path: path, header: header})
			for i := range page.Notifications {
				list = append(list, page.Notifications[i].ID+" "+page.Notifications[i].Site)
			}
			if page.Next == "" {
				return list
			}
			base, _, _ := strings.Cut(path, "&after=")
			path = base + "&after=" + page.Next
		}
	}
	both := f.token(t, `{"name":"both","role":"read","sites":["plant-5","plant-4"]}`)
	for _, c := range []struct {
		path   string
		header map[string]string
		want   []string
	}{
		{"/v1/notifications?limit=1", four, []string{"n1 plant-4", "n0 plant-4"}},
		{"/v1/notifications?limit=1", both, []string{"n1 plant-4", "n0 plant-4", "n2 plant-5", "n0 plant-5"}},
		{"/v1/notifications?limit=3", both, []string{"n1 plant-4", "n0 plant-4", "n2 plant-5", "n0 plant-5"}},
		{"/v1/notifications?site=plant-5", both, []string{"n2 plant-5", "n0 plant-5"}},
		{"/v1/notifications?id=n0&limit=1", four, []string{"n0 plant-4"}},
	} {
		if d := cmp.Diff(sites(c.path, c.header), c.want); d != "" {
			t.Errorf("%s (-got +want):\n%s", c.path, d)
		}
	}
}

// Issue 14: who is refused stands in the journal, and cannot fill it. What was only counted is told as well, if
// the caller does not come again. Neither keeps what others do out of it (AU-09).
func TestRefusalsAreToldOfOnceAMinute(t *testing.T) {
	t.Parallel()
	racetest.Bubble(t, func(t *testing.T) {
		log := &callLog{}
		f := serve(t, locked, func(s *httpapi.Server) { s.Calls = log })
		header := f.token(t, `{"name":"eve","rights":["read","operate"],"destinations":["inventory"]}`)
		whole := f.token(t, `{"name":"bob","rights":["read","operate"]}`)
		f.do(t, call{method: "POST", path: "/v1/messages", body: `{"id":"m","destination":"inventory","endpoint":"E","payload":{}}`, header: f.token(t, `{"name":"sender","rights":["send"]}`)})
		log.lines = nil
		for range 3 {
			for range 50 {
				f.do(t, call{method: "GET", path: "/v1/tokens", header: header})
				f.do(t, call{method: "GET", path: "/v1/destinations/billing", header: header})
				f.do(t, call{method: "POST", path: "/v1/messages/none/discard", header: header})
				f.do(t, call{method: "POST", path: "/v1/messages", body: `{}`, header: header})
				f.do(t, call{method: "POST", path: "/v1/messages/none/discard", header: whole})
			}
			f.do(t, call{method: "POST", path: "/v1/messages/m/discard", header: whole})
			f.do(t, call{method: "POST", path: "/v1/messages/m/retry", header: whole})
			time.Sleep(time.Minute)
		}
		var want []string
		for range 3 {
			want = append(want, "called list-tokens  eve permanent", "called get-destination billing eve permanent", "called discard-message none eve permanent", "called send-message  eve permanent",
				"called discard-message none bob permanent", "called discard-message m bob delivered", "called retry-message m bob delivered")
		}
		f.do(t, call{method: "POST", path: "/v1/messages/m/discard", header: whole})
		time.Sleep(time.Minute)
		f.do(t, call{method: "POST", path: "/v1/messages/m/retry", header: whole})
		want = append(want, "called discard-message m bob delivered", "called discard-message  bob permanent", "called discard-message  eve permanent", "called get-destination  eve permanent",
			"called list-tokens  eve permanent", "called send-message  eve permanent", "called retry-message m bob delivered")
		slices.Sort(log.lines[len(want)-6 : len(want)-1])
		if d := cmp.Diff(log.lines, want); d != "" {
			t.Errorf("(-got +want):\n%s", d)
		}
	})
}
