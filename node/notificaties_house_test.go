package node_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// What is around the API: documents, suffixes, paths and headers.
func TestNotificatiesHousekeeping(t *testing.T) {
	t.Parallel()
	n, _ := newNRC(t, "")
	n.zaken()
	open := n.as("")
	for path, want := range map[string]string{"openapi.yaml": "application/vnd.oai.openapi", "openapi.json": "application/vnd.oai.openapi+json"} {
		got := open.do("GET", path, "", "Accept", "text/html")
		if got.status != 200 || got.header.Get("Content-Type") != want || got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("API-version") != "1.0.0" || !strings.Contains(got.text, n.root+"/api/v1") {
			t.Errorf("%s: %d %v %.80s", path, got.status, got.header, got.text)
		}
		if path == "openapi.json" && !json.Valid([]byte(got.text)) {
			t.Error("openapi.json is no JSON")
		}
	}
	for path, to := range map[string]string{"schema/openapi.yaml": "openapi.yaml", "schema/openapi.json": "openapi.json", "schema/openapi.yaml?format=json": "openapi.json"} {
		if got := open.do("GET", path, ""); got.status != 302 || got.header.Get("Location") != n.root+"/api/v1/"+to {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
	if got := open.do("GET", "/api/v1/schema/", ""); strings.Count(got.text, `href="../openapi.`) != 2 { // also below a path
		t.Errorf("schema: %s", got.text)
	}
	index := fmt.Sprintf(`{"abonnement":%[1]q,"kanaal":%[2]q,"cloudevents":%[3]q}`, n.root+"/api/v1/abonnement", n.root+"/api/v1/kanaal", n.root+"/api/v1/cloudevents")
	if got := open.do("GET", "/api/v1/", ""); got.text != index {
		t.Errorf("index: %s", got.text)
	}
	for _, path := range []string{"/ref/fouten/ValidationError/", "/ref/fouten/PermissionDenied/", "/ref/scopes/", "/api/v1/schema/"} {
		if got := open.do("GET", path, ""); got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
	for _, path := range []string{"/api/v2/kanaal", "/ref/fouten/None/", "/api/x"} {
		if got := n.do("GET", path, ""); got.status != 404 || got.header.Get("API-version") != "" {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
	n.do("GET", "kanaal/", "").fault(t, 404, "not_found")
	n.do("GET", "kanaal/none", "").fault(t, 404, "not_found")
	n.do("GET", "abonnement/none", "").fault(t, 404, "not_found")
	if n.do("GET", "kanaal.json", "").status != 200 || n.do("HEAD", "kanaal", "").status != 200 {
		t.Error("a suffix, and HEAD")
	}
	n.as("").do("GET", "kanaal", "", "Accept", "text/html").fault(t, 406, "not_acceptable") // before who asks
	if got := n.do("GET", "kanaal", "", "Accept", "text/html, application/*;q=0.5"); got.status != 200 {
		t.Errorf("Accept: %s", got.text)
	}
	if got := n.do("GET", "kanaal", "", "Host", "notificaties.example"); got.status != 200 {
		t.Errorf("a foreign name: %d %s", got.status, got.text)
	}
}

// Below a path, and behind a proxy, links are what the configuration says.
func TestNotificatiesBehindAProxy(t *testing.T) {
	t.Parallel()
	n, _ := newNRC(t, ", path: /nrc, url: 'https://notificaties.example/berichten/', callbacks: any")
	got := n.do("POST", "/nrc/api/v1/kanaal", `{"naam":"zaken"}`, "X-Forwarded-For", "192.0.2.1")
	if got.status != 201 || !strings.HasPrefix(got.header.Get("Location"), "https://notificaties.example/berichten/api/v1/kanaal/") {
		t.Errorf("%d %v %s", got.status, got.header, got.text)
	}
	r := newCallback(t)
	r.answers(204, 204)
	n.do("POST", "/nrc/api/v1/abonnement", abonnementBody(r.URL, "")).want(t, 201)
	if seen := r.took(); len(seen) != 1 {
		t.Errorf("probes of any callback: %q", seen)
	}
}

// Case 57: an Autorisaties API has the rights of those who have none here, and says when they change.
func TestNotificatiesAuthority(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	answer, asked := `{"results":[]}`, 0
	ac := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if asked++; r.URL.Query().Get("clientIds") != "nobody" || r.URL.Path != "/api/v1/applicaties" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ey") {
			w.WriteHeader(http.StatusBadRequest)
		}
		if answer == "" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(ac.Close)
	says := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		answer = text
	}
	n, _ := newNRC(t, ", authority: {url: '"+ac.URL+"/api/v1', client: nrc, secret: {env: SECRET}}")
	guest := n.as("Bearer " + mint("nobody", nil))
	changed := func(actie string) {
		t.Helper()
		n.do("POST", "callbacks", `{"kanaal":"autorisaties","hoofd_object":"`+ac.URL+`/api/v1/applicaties/1","resource":"applicatie","resourceUrl":"`+ac.URL+`/api/v1/applicaties/1","actie":"`+actie+`","aanmaakdatum":"2025-01-01T12:00:00Z","kenmerken":{}}`).want(t, 204)
	}
	guest.do("GET", "kanaal", "").fault(t, 403, "permission_denied")
	says(`{"results":[{"clientIds":["x","nobody"],"autorisaties":[{"component":"zrc","scopes":["notificaties.publiceren"]},{"component":"nrc","scopes":["notificaties.consumeren"]}]}]}`)
	guest.do("GET", "kanaal", "").fault(t, 403, "permission_denied") // as it was said
	changed("create")
	if got := guest.do("GET", "kanaal", ""); got.status != 200 {
		t.Errorf("after create: %s", got.text)
	}
	guest.do("POST", "kanaal", `{"naam":"x"}`).fault(t, 403, "permission_denied")
	says(`{"results":[{"clientIds":["nobody"],"heeftAlleAutorisaties":true,"autorisaties":[]}]}`)
	changed("partial_update")
	guest.do("POST", "kanaal", `{"naam":"x"}`).want(t, 201)
	says(`{"results":[{"clientIds":["other"],"heeftAlleAutorisaties":true}]}`)
	changed("destroy")
	guest.do("GET", "kanaal", "").fault(t, 403, "permission_denied")
	says("")
	changed("destroy")
	guest.do("GET", "kanaal", "").fault(t, 403, "not_authenticated_for_ac")
	n.do("POST", "callbacks", `{}`).fault(t, 400, "invalid", "kanaal required", "actie required")
	mu.Lock()
	defer mu.Unlock()
	if asked != 5 {
		t.Errorf("it was asked %d times", asked)
	}
}

// An operator may make an abonnement in the name of a client, with an uuid of its own, and the journal tells who
// has changed what.
func TestNotificatiesSeenByOperators(t *testing.T) {
	t.Parallel()
	n, hub := newNRC(t, "")
	n.zaken()
	const id = "5d3bd6d2-1f2f-4e5a-8d0c-0a1b2c3d4e5f"
	r := newCallback(t)
	_, err := hub.Subscriptions().Put(t.Context(), id, api.SubscriptionSpec{
		URL: r.URL, Authorization: &api.Authorization{Kind: "key", Header: "Authorization", Secret: api.KeptSecret{Value: "Token x"}},
		Abonnement: &api.Abonnement{Owner: "testsuite", Kanalen: []api.FilterGroup{{Naam: "zaken", Filters: map[string]string{"bron": "1"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := n.do("GET", "abonnement/"+id, ""); got.status != 200 || !strings.Contains(got.text, `"kanalen":[{"filters":{"bron":"1"},"naam":"zaken"}]`) {
		t.Errorf("%d %s", got.status, got.text)
	}
	one, err := hub.Subscriptions().Get(t.Context(), id)
	if err != nil || fmt.Sprint(one.Topics) != "[zaken]" || !strings.Contains(string(one.Filter), `"bron":"1"`) {
		t.Errorf("%+v, %v", one, err)
	}
	n.do("PATCH", "abonnement/"+id, `{"kanalen":[{"naam":"zaken","filters":{"zaaktype":"Z"}}]}`).want(t, 200)
	if one, err = hub.Subscriptions().Get(t.Context(), id); err != nil || !strings.Contains(string(one.Filter), `"zaaktype":"Z"`) {
		t.Errorf("%s, %v", one.Filter, err)
	}
	elsewhere := newCallback(t)
	for name, set := range map[string]func(s *api.SubscriptionSpec){
		"header": func(s *api.SubscriptionSpec) { s.Headers = map[string]string{"X-Api-Key": "operator"} },
		"signing": func(s *api.SubscriptionSpec) {
			s.Headers, s.Secrets = nil, []api.SigningSecret{{Value: "whsec_" + nrcSecret}}
		},
	} {
		if one, err = hub.Subscriptions().Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		spec := api.SubscriptionSpec(one)
		set(&spec)
		if _, err = hub.Subscriptions().Put(t.Context(), id, spec); err != nil {
			t.Fatal(name, err)
		}
		n.do("PATCH", "abonnement/"+id, abonnementBody(elsewhere.URL, "")).fault(t, 400, "invalid", "callbackUrl invalid")
		n.do("PATCH", "abonnement/"+id, abonnementBody(r.URL+"/"+name, "")).want(t, 200)
	}
	if seen := elsewhere.took(); len(seen) != 0 {
		t.Errorf("another host got %q", seen)
	}
	n.do("DELETE", "abonnement/"+id, "").want(t, 204)
	waittest.Until(t, "the journal has it", func() bool {
		_, text := ask(t, "GET", n.root+"/v1/audit", "")
		return strings.Contains(text, "notificaties:testsuite") && strings.Contains(text, "delete-abonnement") && strings.Contains(text, id)
	})
}

// What a client does not change is not checked, and what it names is checked before anybody is probed. What failed
// within the node, or on the way to a foreign server, is not for clients.
func TestNotificatiesTellNothingOfTheNode(t *testing.T) {
	t.Parallel()
	c := parse(t, "webhooks: {addresses: [127.0.0.0/8]}\nnotificaties: {clients: "+nrcClients+"}\nsecrets: {key: {env: SECRET}}\n")
	r := newCallback(t)
	url := ""
	t.Run("first key", func(t *testing.T) {
		n, hub := servedNRC(t, withKeys(t, *c, 1))
		kanaal := n.zaken()
		url = fmt.Sprint(n.do("POST", "abonnement", abonnementBody(r.URL, `,"kanalen":[{"naam":"zaken","filters":{"bron":"1"}}]`)).want(t, 201)["url"])
		n.do("PATCH", kanaal, `{"filters":["x"]}`).want(t, 200)
		n.do("PATCH", url, `{"callbackUrl":"`+r.URL+`/later"}`).want(t, 200)
		r.took()
		n.do("POST", "abonnement", abonnementBody(r.URL, `,"kanalen":[{"naam":"none"}]`)).fault(t, 400, "invalid", "naam kanaal_naam")
		if seen := r.took(); len(seen) != 0 {
			t.Errorf("probed before the groups were checked: %q", seen)
		}
		got := n.do("POST", "kanaal", `{"naam":"b","documentatieLink":"http://127.0.0.1:1/"}`)
		if got.fault(t, 400, "invalid", "documentatieLink bad-url"); strings.Contains(got.text, "dial") || !strings.Contains(got.text, "127.0.0.1:1: connect: connection refused") {
			t.Errorf("a link: %s", got.text)
		}
		id := url[strings.LastIndexByte(url, '/')+1:]
		one, err := hub.Subscriptions().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		one.Secrets = []api.SigningSecret{{Value: "whsec_" + nrcSecret}}
		if _, err = hub.Subscriptions().Put(t.Context(), id, api.SubscriptionSpec(one)); err != nil {
			t.Fatal(err)
		}
		url = "abonnement/" + id
	})
	n, _ := servedNRC(t, withKeys(t, *c, 2))
	got := n.do("PATCH", url, abonnementBody(r.URL+"/x", ""))
	if got.fault(t, 500, "error"); strings.Contains(got.text, "secrets") {
		t.Errorf("a secret that cannot be opened: %s", got.text)
	}
}
