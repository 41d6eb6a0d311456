package node_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/node"
)

// callback answers 401 without Authorization and 204 with it, unless it is told something else, and keeps
// what it got.
type callback struct {
	*httptest.Server

	mu   sync.Mutex
	seen []string // Authorization and body
	open int      // status without Authorization
	shut int      // status with it
}

func newCallback(t *testing.T) *callback {
	t.Helper()
	c := &callback{open: http.StatusUnauthorized, shut: http.StatusNoContent}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Method == http.MethodGet {
		switch {
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/doc", http.StatusMovedPermanently)
		case r.URL.Path != "/doc":
			w.WriteHeader(http.StatusNotFound)
		}
		return
	}
	c.seen = append(c.seen, r.Header.Get("Authorization")+" "+r.Header.Get("Content-Type")+" "+string(body))
	if r.Header.Get("Authorization") == "" {
		w.WriteHeader(c.open)
		return
	}
	w.WriteHeader(c.shut)
}

func (c *callback) answers(open, shut int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.shut = open, shut
}

func (c *callback) took() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.seen
	c.seen = nil
	return taken
}

// nrc is a node that serves the Notificaties API, as a client sees it.
type nrc struct {
	t    *testing.T
	root string
	auth string
}

const nrcClients = `{testsuite: {secret: {env: SECRET}, superuser: true}, other: {secret: {env: SECRET}, superuser: true}, reader: {secret: {env: SECRET}, scopes: [consumeren]}, writer: {secret: {env: SECRET}, scopes: [publiceren]}, nobody: {secret: {env: SECRET}}}`

const nrcSecret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

func newNRC(t *testing.T, more string) (*nrc, *client.Client) {
	t.Helper()
	return nrcOf(t, "webhooks: {addresses: [127.0.0.0/8]}\nnotificaties: {clients: "+nrcClients+more+"}\nsecrets: {key: {env: SECRET}}\n")
}

func nrcOf(t *testing.T, text string) (*nrc, *client.Client) {
	t.Helper()
	c := withKeys(t, *parse(t, text), 1)
	return servedNRC(t, c)
}

func servedNRC(t *testing.T, c *config.Config) (*nrc, *client.Client) {
	t.Helper()
	root := serveWith(t, c, node.Options{})
	hub, err := client.New(root, "")
	if err != nil {
		t.Fatal(err)
	}
	return &nrc{t, root, "Bearer " + mint("testsuite", nil)}, hub
}

// mint returns a token, with these claims in place of the usual ones; a nil one is left out.
func mint(id string, other map[string]any) string {
	claims := map[string]any{"iss": id, "client_id": id, "iat": time.Now().Unix(), "user_id": "u", "user_representation": "U"}
	maps.Copy(claims, other)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	return signedBy(nrcSecret, `{"alg":"HS256","typ":"JWT"}`, claims)
}

func signedBy(secret, header string, claims map[string]any) string {
	text, _ := json.Marshal(claims)
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(header)) + "." + encode(text)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// as is the same API for another caller.
func (n *nrc) as(auth string) *nrc { return &nrc{n.t, n.root, auth} }

// nrcAnswer is an answer.
type nrcAnswer struct {
	status int
	header http.Header
	text   string
}

func (n *nrc) do(method, path, body string, headers ...string) nrcAnswer {
	n.t.Helper()
	url := path
	if strings.HasPrefix(path, "/") {
		url = n.root + path
	} else if !strings.HasPrefix(path, "http") {
		url = n.root + "/api/v1/" + path
	}
	req, err := http.NewRequestWithContext(n.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if n.auth != "" {
		req.Header.Set("Authorization", n.auth)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	stay := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := stay.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return nrcAnswer{resp.StatusCode, resp.Header, string(text)}
}

// want reads an answer of the wanted status.
func (a nrcAnswer) want(t *testing.T, status int) map[string]any {
	t.Helper()
	if a.status != status {
		t.Fatalf("got %d %s, want %d", a.status, a.text, status)
	}
	out := map[string]any{}
	if a.text != "" && json.Unmarshal([]byte(a.text), &out) != nil {
		t.Fatalf("no object: %s", a.text)
	}
	return out
}

// fault demands a refusal with these codes: of the problem, then "name code" of each invalid parameter.
func (a nrcAnswer) fault(t *testing.T, status int, codes ...string) {
	t.Helper()
	var p struct {
		Type          string `json:"type"`
		Code          string `json:"code"`
		Title         string `json:"title"`
		Detail        string `json:"detail"`
		Instance      string `json:"instance"`
		Status        int    `json:"status"`
		InvalidParams []struct {
			Name string `json:"name"`
			Code string `json:"code"`
		} `json:"invalidParams"`
	}
	if err := json.Unmarshal([]byte(a.text), &p); err != nil {
		t.Errorf("%d %q: %v", a.status, a.text, err)
		return
	}
	got := []string{p.Code}
	for _, f := range p.InvalidParams {
		got = append(got, f.Name+" "+f.Code)
	}
	if d := cmp.Diff(codes, got); d != "" || a.status != status || p.Status != status || a.header.Get("Content-Type") != "application/problem+json" || a.header.Get("API-version") != "1.0.0" ||
		!strings.Contains(p.Type, "/ref/fouten/") || !strings.HasPrefix(p.Instance, "urn:uuid:") || p.Title == "" || p.Detail == "" {
		t.Errorf("got %d %v %s, want %d (-want +got):\n%s", a.status, a.header, a.text, status, d)
	}
}

// kanaal makes a kanaal, and returns its URL.
func (n *nrc) kanaal(naam string, filters ...string) string {
	n.t.Helper()
	list, _ := json.Marshal(append([]string{}, filters...))
	made := n.do("POST", "kanaal", fmt.Sprintf(`{"naam":%q,"filters":%s}`, naam, list)).want(n.t, 201)
	return fmt.Sprint(made["url"])
}

// zaken is kanaal Z of the cases.
func (n *nrc) zaken() string {
	return n.kanaal("zaken", "bron", "zaaktype", "vertrouwelijkheidaanduiding")
}

func abonnementBody(url, more string) string {
	return fmt.Sprintf(`{"callbackUrl":%q,"auth":"Token abc"%s}`, url, more)
}

// Cases 1 to 9 of the channels.
func TestNotificatiesChannels(t *testing.T) {
	t.Parallel()
	n, hub := newNRC(t, "")
	r := newCallback(t)
	one := n.do("POST", "kanaal", `{"naam":"zaken","documentatieLink":"`+r.URL+`/moved"}`)
	made := one.want(t, 201)
	url := fmt.Sprint(made["url"])
	if one.header.Get("Location") != url || one.header.Get("API-version") != "1.0.0" || one.header.Get("Content-Type") != "application/json" ||
		one.text != fmt.Sprintf(`{"url":%q,"naam":"zaken","documentatieLink":%q,"filters":[]}`, url, r.URL+"/moved") || !strings.HasPrefix(url, n.root+"/api/v1/kanaal/") {
		t.Errorf("case 1: %v %s", one.header, one.text)
	}
	n.do("POST", "kanaal", `{"naam":"zaken"}`).fault(t, 400, "invalid", "naam unique")                                           // 2
	n.do("POST", "kanaal", `{"naam":"b","documentatieLink":"`+r.URL+`/x"}`).fault(t, 400, "invalid", "documentatieLink bad-url") // 3
	n.do("POST", "kanaal", `{"naam":"b","documentatieLink":"http://127.0.0.1:1/"}`).fault(t, 400, "invalid", "documentatieLink bad-url")
	n.do("POST", "kanaal", `{"naam":"b","documentatieLink":"http://169.254.169.254/"}`).fault(t, 400, "invalid", "documentatieLink bad-url")
	n.do("POST", "kanaal", `{"naam":"snake","documentatie_link":"`+r.URL+`/doc","filters":["object_type"]}`).want(t, 201) // 4
	if got := n.do("PUT", url, `{"naam":"zaken","documentatieLink":"`+r.URL+`/doc","filters":["zaaktype","zaaktype.catalogus","object_type"]}`).want(t, 200); fmt.Sprint(got["filters"]) != "[zaaktype zaaktype.catalogus object_type]" {
		t.Errorf("case 5: %v", got)
	}
	if got := n.do("PATCH", url, `{"filters":["a"]}`).want(t, 200); fmt.Sprint(got["filters"]) != "[a]" || got["documentatieLink"] != r.URL+"/doc" {
		t.Errorf("case 6: %v", got)
	}
	n.do("PATCH", url, `{"naam":"other"}`).fault(t, 400, "invalid", "naam wijzigen-niet-toegelaten") // 7
	n.do("PUT", url, `{}`).fault(t, 400, "invalid", "naam required")
	gone := n.do("DELETE", url, "")
	if gone.fault(t, 405, "method_not_allowed"); gone.header.Get("Allow") != "GET, PATCH, PUT" { // 8
		t.Error(gone.header)
	}
	if got := n.do("GET", "kanaal?naam=zaken", ""); got.status != 200 || strings.Count(got.text, `"naam"`) != 1 { // 9
		t.Errorf("case 9: %s", got.text)
	}
	if got := n.do("GET", "kanaal?naam=none", ""); got.text != "[]" {
		t.Errorf("no such kanaal: %s", got.text)
	}
	n.do("GET", "kanaal?foo=1", "").fault(t, 400, "invalid", "nonFieldErrors unknown-parameters")
	n.do("POST", "kanaal?foo=1", `{"naam":"x"}`).fault(t, 400, "invalid", "nonFieldErrors unknown-parameters")
	n.do("GET", url+"?naam=zaken", "").fault(t, 400, "invalid", "nonFieldErrors unknown-parameters")
	for body, codes := range map[string][]string{
		`{}`: {"naam required"}, `{"naam":null}`: {"naam null"}, `{"naam":" "}`: {"naam blank"}, `{"naam":true}`: {"naam invalid"}, `[]`: {"nonFieldErrors invalid"},
		`{"naam":"` + strings.Repeat("é", 51) + `"}`: {"naam max_length"}, `{"naam":"een twee"}`: {"naam invalid"}, `{"naam":"cloudevents"}`: {"naam invalid"},
		`{"naam":"x","filters":{}}`: {"filters not_a_list"}, `{"naam":"x","filters":["` + strings.Repeat("a", 101) + `"]}`: {"filters.0 max_length"},
		`{"naam":"x","documentatieLink":"urn:x"}`: {"documentatieLink invalid"},
	} {
		n.do("POST", "kanaal", body).fault(t, 400, append([]string{"invalid"}, codes...)...)
	}
	n.do("POST", "kanaal", `{"naam":`).fault(t, 400, "parse_error")
	n.do("POST", "kanaal", strings.Repeat("[", 1000)).fault(t, 400, "parse_error")
	n.do("POST", "kanaal", `{"naam":"`+strings.Repeat("a", 1<<20)+`"}`).fault(t, 413, "too_large")
	n.do("POST", "kanaal", "naam=x", "Content-Type", "application/x-www-form-urlencoded").fault(t, 415, "unsupported_media_type")
	topic, err := hub.Topics().Get(t.Context(), "zaken")
	if err != nil || !slices.Equal(topic.Attributes, []string{"a"}) {
		t.Errorf("an operator sees %+v, %v", topic, err)
	}
}

// Cases 10 to 14: who is let in.
func TestNotificatiesAuth(t *testing.T) {
	t.Parallel()
	n, _ := newNRC(t, "")
	url := n.zaken()
	whole := mint("testsuite", nil)
	now := time.Now().Unix()
	for name, x := range map[string]struct{ auth, code string }{
		"no header":         {"", "permission_denied"}, // 10
		"another scheme":    {"bearer " + whole, "permission_denied"},
		"cut off":           {"Bearer " + whole[:len(whole)-10], "jwt-decode-error"},
		"no JWT":            {"Bearer abc", "jwt-decode-error"},
		"no client":         {"Bearer " + mint("testsuite", map[string]any{"client_id": nil}), "missing-client-identifier"},
		"an unknown client": {"Bearer " + mint("stranger", nil), "invalid-client-identifier"},
		"another secret":    {"Bearer " + signedBy("x", `{"alg":"HS256"}`, map[string]any{"client_id": "testsuite", "iat": now}), "invalid-jwt-signature"},
		"no algorithm":      {"Bearer " + signedBy(nrcSecret, `{"alg":"none"}`, map[string]any{"client_id": "testsuite", "iat": now}), "jwt-invalidalgorithmerror"},
		"no iat":            {"Bearer " + mint("testsuite", map[string]any{"iat": nil}), "jwt-missing-iat-claim"}, // 13
		"iat of text":       {"Bearer " + mint("testsuite", map[string]any{"iat": "timestamp"}), "permission_denied"},
		"too old":           {"Bearer " + mint("testsuite", map[string]any{"iat": now - 3601}), "jwt-expired"}, // 12
		"not yet":           {"Bearer " + mint("testsuite", map[string]any{"nbf": now + 30}), "jwt-immaturesignatureerror"},
		"over":              {"Bearer " + mint("testsuite", map[string]any{"exp": now - 1}), "jwt-expiredsignatureerror"},
		"no scope":          {"Bearer " + mint("nobody", nil), "permission_denied"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newNRCOnce(t, n)
			c.as(x.auth).do("POST", "kanaal", `{"naam":"x"}`).fault(t, 403, x.code)
		})
	}
	for _, auth := range []string{"", "Bearer " + mint("nobody", nil)} {
		for _, ask := range [][2]string{{"POST", "abonnement"}, {"POST", "kanaal"}, {"GET", "abonnement"}, {"GET", "kanaal"}, {"GET", url}, {"POST", "callbacks"}} {
			n.as(auth).do(ask[0], ask[1], map[bool]string{true: "{", false: ""}[ask[0] == "POST"]).fault(t, 403, "permission_denied") // before the body is read
		}
	}
	for _, claims := range []map[string]any{{"iat": now + 5}, {"iat": now - 3590}} {
		if got := n.as("Bearer "+mint("testsuite", claims)).do("GET", "kanaal", ""); got.status != 200 {
			t.Errorf("%v: %d %s", claims, got.status, got.text)
		}
	}
	reader, writer := n.as("Bearer "+mint("reader", nil)), n.as("Bearer "+mint("writer", nil))
	reader.do("POST", "kanaal", `{"naam":"x"}`).fault(t, 403, "permission_denied")
	writer.do("POST", "abonnement", `{}`).fault(t, 403, "permission_denied")
	if reader.do("GET", "kanaal", "").status != 200 || writer.do("GET", "abonnement", "").status != 200 {
		t.Error("each scope may read")
	}
}

// newNRCOnce is the same API below another test.
func newNRCOnce(t *testing.T, n *nrc) (*nrc, struct{}) {
	t.Helper()
	return &nrc{t, n.root, n.auth}, struct{}{}
}

// Cases 12 and 13 with a leeway.
func TestNotificatiesLeeway(t *testing.T) {
	t.Parallel()
	n, _ := newNRC(t, ", leeway: 30s")
	now := time.Now().Unix()
	for _, x := range []struct {
		claims map[string]any
		status int
	}{
		{map[string]any{"iat": now - 3610}, 200},
		{map[string]any{"iat": now - 3631}, 403},
		{map[string]any{"nbf": now + 20}, 200},
		{map[string]any{"nbf": now + 60}, 403},
		{map[string]any{"exp": now - 10}, 200},
		{map[string]any{"exp": now - 31}, 403},
	} {
		if got := n.as("Bearer "+mint("testsuite", x.claims)).do("GET", "kanaal", ""); got.status != x.status {
			t.Errorf("%v: %d %s", x.claims, got.status, got.text)
		}
	}
}

// Cases 14 to 26: subscriptions.
func TestNotificatiesSubscriptions(t *testing.T) {
	t.Parallel()
	n, hub := newNRC(t, "")
	r := newCallback(t)
	n.zaken()
	n.kanaal("informatieobjecten")
	n.kanaal("besluiten")
	post := func(more string) nrcAnswer { return n.do("POST", "abonnement", abonnementBody(r.URL+"/hook", more)) }
	const groups = `,"kanalen":[{"naam":"zaken","filters":{"bron":"082096752011","zaaktype":"X","vertrouwelijkheidaanduiding":"*"}},{"naam":"informatieobjecten","filters":{"bron":"1"}},{"naam":"besluiten"}]`
	made := post(groups)
	url := fmt.Sprint(made.want(t, 201)["url"])
	want := fmt.Sprintf(`{"url":%q,"callbackUrl":%q,"kanalen":[{"filters":{"bron":"082096752011","vertrouwelijkheidaanduiding":"*","zaaktype":"X"},"naam":"zaken"},{"filters":{"bron":"1"},"naam":"informatieobjecten"},{"filters":{},"naam":"besluiten"}],"sendCloudevents":false,"cloudeventFilters":[]}`, url, r.URL+"/hook")
	if got := n.do("GET", url, ""); got.text != want || made.text != want || made.header.Get("Location") != url { // 16
		t.Errorf("case 16: %s\nwant %s", got.text, want)
	}
	const probe = `{"kanaal":"test","hoofdObject":"https://ref.tst.vng.cloud/zrc/api/v1/zaken/d7a22","resource":"some_resource","resourceUrl":"https://ref.tst.vng.cloud/zrc/api/v1/statussen/d7a22/721c9","actie":"create","aanmaakdatum":"2019-01-01T12:00:00Z","kenmerken":{}}`
	if d := cmp.Diff([]string{" application/json " + probe, "Token abc application/json " + probe}, r.took()); d != "" { // 20
		t.Errorf("probes (-want +got):\n%s", d)
	}
	other := n.as("Bearer " + mint("other", nil))
	if got := other.do("GET", url, ""); got.status != 200 { // 14
		t.Errorf("case 14: %s", got.text)
	}
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		other.do(method, url, `{}`).fault(t, 403, "permission_denied")
	}
	post(`,"kanalen":[{"naam":"none"}]`).fault(t, 400, "invalid", "naam kanaal_naam")                                                        // 17
	post(`,"kanalen":[{"naam":"zaken","filters":{"bron":"1","x":"2"}}]`).fault(t, 400, "invalid", "filters inconsistent-abonnement-filters") // 18
	post(`,"kanalen":[{"naam":"zaken","filters":{"zaaktype":"X","#actie":"create"}}]`).want(t, 201)
	post(`,"kanalen":[{"naam":"zaken","filters":{"zaaktype":"X"}}]`).want(t, 201) // 22: the same callback
	r.answers(http.StatusNoContent, http.StatusNoContent)
	post("").fault(t, 400, "invalid", "callbackUrl no-auth-on-callback-url")
	for status := 199; status <= 210; status++ {
		r.answers(http.StatusForbidden, max(status, 200))
		if got := post(""); (status <= 209) != (got.status == 201) {
			t.Errorf("probe %d: %d %s", status, got.status, got.text)
		}
	}
	for _, status := range []int{302, 400, 401, 500} {
		r.answers(http.StatusForbidden, status)
		post("").fault(t, 400, "invalid", "nonFieldErrors invalid-callback-url")
	}
	r.answers(http.StatusUnauthorized, http.StatusNoContent)
	n.do("POST", "abonnement", abonnementBody("http://127.0.0.1:1/x", "")).fault(t, 400, "invalid", "callbackUrl no-auth-on-callback-url") // 21
	for bad, code := range map[string]string{"nonsense": "invalid", "ftp://x/y": "invalid", "http://169.254.169.254/": "invalid", "": "blank"} {
		n.do("POST", "abonnement", abonnementBody(bad, "")).fault(t, 400, "invalid", "callbackUrl "+code)
	}
	for more, codes := range map[string][]string{
		`,"kanalen":{}`: {"kanalen not_a_list"}, `,"kanalen":[{}]`: {"kanalen.0.naam required"}, `,"kanalen":[1]`: {"kanalen.0.nonFieldErrors invalid"},
		`,"kanalen":[{"naam":"zaken","filters":null}]`: {"kanalen.0.filters null"}, `,"kanalen":[{"naam":"zaken","filters":{"bron":""}}]`: {"kanalen.0.filters.bron blank"},
		`,"kanalen":[{"naam":"zaken","filters":[]}]`: {"kanalen.0.filters not_a_dict"}, `,"sendCloudevents":3`: {"sendCloudevents invalid"},
		`,"cloudeventFilters":[{"typeSubstring":""}]`: {"cloudeventFilters.0.typeSubstring blank"},
	} {
		post(more).fault(t, 400, append([]string{"invalid"}, codes...)...)
	}
	n.do("POST", "abonnement", `{}`).fault(t, 400, "invalid", "callbackUrl required", "auth required")
	long := fmt.Sprintf(`{"callbackUrl":%q,"auth":"Bearer %s"}`, r.URL+"/"+strings.Repeat("p", 800), strings.Repeat("a", 4000))
	n.do("POST", "abonnement", long).want(t, 201) // 26
	r.took()
	moved := n.do("PATCH", url, `{"callbackUrl":"`+r.URL+`/elsewhere"}`).want(t, 200) // 25
	if seen := r.took(); fmt.Sprint(moved["kanalen"]) == "[]" || len(seen) != 2 || !strings.HasPrefix(seen[1], "Token abc ") {
		t.Errorf("case 25: %v, probes %q", moved, seen)
	}
	second := newCallback(t) // on another host, which never gets the auth of the first
	n.do("PATCH", url, `{"callback_url":"`+second.URL+`/x"}`).fault(t, 400, "invalid", "auth required")
	if seen := second.took(); len(seen) != 0 {
		t.Errorf("another host got %q", seen)
	}
	n.do("PATCH", url, `{"callback_url":"`+second.URL+`/x","auth":"Token abc"}`).want(t, 200)
	if seen := second.took(); len(seen) != 2 || !strings.HasPrefix(seen[1], "Token abc ") {
		t.Errorf("on another host: %q", seen)
	}
	n.operates(hub, url)
	n.do("PUT", url, abonnementBody(r.URL+"/hook", "")).want(t, 200)
	if got := n.do("GET", url, "").want(t, 200); fmt.Sprint(got["kanalen"]) != "[]" {
		t.Errorf("a PUT without groups: %v", got)
	}
	if got := n.do("DELETE", url, ""); got.status != 204 { // 24
		t.Errorf("case 24: %d %s", got.status, got.text)
	}
	n.do("GET", url, "").fault(t, 404, "not_found")
}

// operates changes an abonnement as an operator does, which leaves it one.
func (n *nrc) operates(hub *client.Client, url string) {
	n.t.Helper()
	id := url[strings.LastIndexByte(url, '/')+1:]
	before := n.do("GET", url, "").text
	one, err := hub.Subscriptions().Get(n.t.Context(), id)
	if err != nil || one.Abonnement == nil || one.Abonnement.Owner != "testsuite" || one.Authorization == nil || one.Authorization.Secret.Mark == "" {
		n.t.Fatalf("an operator sees %+v, %v", one, err)
	}
	one.Concurrency = 3
	one.Abonnement = nil
	if one, err = hub.Subscriptions().Put(n.t.Context(), id, api.SubscriptionSpec(one)); err != nil || one.Abonnement == nil || one.Concurrency != 3 {
		n.t.Fatalf("changed by an operator: %+v, %v", one, err)
	}
	if after := n.do("GET", url, "").text; after != before {
		n.t.Errorf("after an operator's change %s, before %s", after, before)
	}
	entries, err := json.Marshal(one)
	if err != nil || bytes.Contains(entries, []byte("Token abc")) {
		n.t.Errorf("%s, %v", entries, err)
	}
}
