package httpapi_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
)

func locked(s *httpapi.Server) { s.AuthRequired = true }

// tokens makes one token per role through a server that asks for none.
func tokens(tb testing.TB, f *fixture) map[api.Role]string {
	tb.Helper()
	open := *f.Server
	open.AuthRequired = false
	handler, err := open.Handler()
	if err != nil {
		tb.Fatal(err)
	}
	local := &fixture{Server: &open, store: f.store, handler: handler}
	secrets := map[api.Role]string{}
	for _, role := range []api.Role{api.RoleRead, api.RoleOperate, api.RoleAuditor, api.RoleAdmin} {
		created := ok[api.CreatedToken](tb, local, call{method: "POST", path: "/v1/tokens", body: `{"name":"the-` + string(role) + `","role":"` + string(role) + `"}`})
		secrets[role] = created.Secret
	}
	return secrets
}

func bearer(secret string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + secret}
}

// may is what the roles have always opened, and nothing of it by chance: it does not ask them.
func may(role api.Role, need api.Right) bool {
	switch role {
	case api.RoleRead:
		return need == api.Read || need == api.AnyToken
	case api.RoleOperate:
		return need != api.Admin && need != api.AuditRead && need != api.AuditExport
	case api.RoleAuditor:
		return need == api.AuditRead || need == api.AuditExport || need == api.AnyToken
	case api.RoleAdmin:
	}
	return role == api.RoleAdmin
}

func TestRolesOpenTheirRoutes(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	secrets := tokens(t, f)
	cases := map[string]api.Right{
		"GET /v1/messages":             api.Read,
		"GET /v1/messages/x":           api.Read,
		"GET /v1/inbox":                api.Read,
		"GET /v1/destinations":         api.Read,
		"GET /_rf/health":              api.Read,
		"GET /v1/health":               api.Read,
		"GET /_rf/outbox/stats":        api.Read,
		"GET /_rf/outbox/failed":       api.Read,
		"GET /_rf/inbox/stats":         api.Read,
		"POST /v1/messages":            api.Send,
		"POST /v1/messages/x/retry":    api.Operate,
		"POST /v1/messages/x/discard":  api.Operate,
		"POST /_rf/outbox/x/retry":     api.Operate,
		"POST /v1/inbox/x/done":        api.Operate,
		"GET /v1/tokens":               api.Admin,
		"POST /v1/tokens":              api.Admin,
		"DELETE /v1/tokens/x":          api.Admin,
		"GET /v1/tokens/self":          api.AnyToken,
		"GET /openapi.json":            "",
		"GET /healthz":                 "",
		"GET /mounted":                 api.Read,
		"GET /no-such-route-for-these": "",
	}
	f = serve(t, locked, func(s *httpapi.Server) {
		s.Outbox, s.Enqueuer, s.Inbox, s.Tokens = f.store, f.store, f.store, f.store
		s.Mounts = []httpapi.Mount{
			{Pattern: "GET /healthz", Handler: http.NotFoundHandler(), Open: true},
			{Pattern: "GET /mounted", Handler: http.NotFoundHandler(), Right: api.Read},
		}
	})
	for route, need := range cases {
		method, path, _ := strings.Cut(route, " ")
		w := f.do(t, call{method: method, path: path})
		if refused := w.Code == 401; refused != (need != "") {
			t.Errorf("%s without a token: got %d", route, w.Code)
		}
		for role, secret := range secrets {
			w := f.do(t, call{method: method, path: path, header: bearer(secret)})
			if w.Code == 401 || (w.Code == 403) != (need != "" && !may(role, need)) {
				t.Errorf("%s as %s: got %d, needs %s", route, role, w.Code, need)
			}
			if w.Code == 403 {
				p := problem(t, w)
				if !strings.Contains(p.Detail, "right "+string(need)) || !strings.Contains(p.Detail, `"the-`+string(role)+`"`) {
					t.Errorf("%s as %s: got %q, want the right needed and the token's name", route, role, p.Detail)
				}
			}
		}
	}
}

func TestATokenThatDoesNotCountIsChallenged(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	secret := tokens(t, f)[api.RoleRead]
	cases := map[string]struct{ header, says string }{
		"none":      {"", "send a token"},
		"basic":     {"Basic YTpi", "must have the form"},
		"empty":     {"Bearer ", "mistyped"},
		"cut":       {"Bearer " + secret[:len(secret)-1], "mistyped"},
		"mistyped":  {"Bearer " + secret[:10] + "!" + secret[11:], "mistyped"},
		"unknown":   {"Bearer " + api.NewSecret(), "not known here"},
		"two words": {"Bearer " + secret + " x", "mistyped"},
	}
	for name, c := range cases {
		header := map[string]string{}
		if c.header != "" {
			header["Authorization"] = c.header
		}
		w := f.do(t, call{method: "GET", path: "/v1/messages", header: header})
		p := problem(t, w)
		if w.Code != 401 || !strings.Contains(p.Detail, c.says) || !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), `Bearer realm="holdfast"`) {
			t.Errorf("%s: got %d %q and challenge %q", name, w.Code, p.Detail, w.Header().Get("WWW-Authenticate"))
		}
		if strings.Contains(w.Body.String(), "hf_"+secret[3:12]) {
			t.Errorf("%s: got the token back in %s", name, w.Body)
		}
	}
	if w := f.do(t, call{method: "GET", path: "/v1/messages", header: map[string]string{"Authorization": "bearer  " + secret}}); w.Code != 200 {
		t.Errorf("lower case scheme: got %d, want 200", w.Code)
	}
}

func TestADecisionBearsTheTokensName(t *testing.T) {
	t.Parallel()
	for _, required := range []bool{true, false} {
		f := serve(t, func(s *httpapi.Server) { s.AuthRequired = required })
		secret := tokens(t, f)[api.RoleOperate]
		if _, err := f.store.Enqueue(t.Context(), holdfast.Message{ID: "m", Destination: "inventory", Endpoint: "x"}); err != nil {
			t.Fatal(err)
		}
		f.put(t, "m", park)
		ok[api.Message](t, f, call{method: "POST", path: "/v1/messages/m/retry", header: bearer(secret)})
		f.put(t, "m", park)
		ok[api.Message](t, f, call{method: "POST", path: "/v1/messages/m/discard", header: bearer(secret)})
		r, err := f.store.Get(t.Context(), "m")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range r.History[1:] {
			if e.Actor != "the-operate" {
				t.Errorf("required %t: got %s by %q, want the-operate", required, e.Kind, e.Actor)
			}
		}
	}
}

func TestTokensAreMadeListedAndDeleted(t *testing.T) {
	t.Parallel()
	f := serve(t)
	tokens(t, f)
	list := ok[api.TokenList](t, f, call{method: "GET", path: "/v1/tokens"}).Tokens
	if len(list) != 4 || list[0].Name != "the-admin" || list[0].Role != api.RoleAdmin || list[0].Created == nil || list[0].LastUsed != nil {
		t.Errorf("got %+v, want four tokens", list)
	}
	if w := f.do(t, call{method: "GET", path: "/v1/tokens"}); strings.Contains(w.Body.String(), "hf_") {
		t.Errorf("got a secret in %s", w.Body)
	}
	w := f.do(t, call{method: "POST", path: "/v1/tokens", body: `{"name":"the-read","role":"read"}`})
	if p := problem(t, w); w.Code != 409 || !strings.Contains(p.Detail, "delete it first") {
		t.Errorf("the name again: got %d %q, want 409", w.Code, p.Detail)
	}
	if w := f.do(t, call{method: "DELETE", path: "/v1/tokens/the-read"}); w.Code != 204 || w.Body.Len() != 0 {
		t.Errorf("delete: got %d %q, want 204 and nothing", w.Code, w.Body)
	}
	if list := ok[api.TokenList](t, f, call{method: "GET", path: "/v1/tokens"}).Tokens; len(list) != 3 {
		t.Errorf("got %+v, want three tokens", list)
	}
}

func TestANodeWithoutTokensSaysSo(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) { s.Tokens = nil })
	for _, c := range []call{
		{method: "GET", path: "/v1/tokens"},
		{method: "POST", path: "/v1/tokens", body: `{"name":"a","role":"read"}`},
		{method: "DELETE", path: "/v1/tokens/a"},
	} {
		w := f.do(t, c)
		if p := problem(t, w); w.Code != 501 || p.Type != "urn:holdfast:problem:unsupported" {
			t.Errorf("%s: got %d %s, want 501", c.method, w.Code, p.Type)
		}
	}
	// What is not asked for is not looked at.
	if w := f.do(t, call{method: "GET", path: "/v1/messages", header: bearer("nonsense")}); w.Code != 200 {
		t.Errorf("got %d, want 200", w.Code)
	}
}

func TestSecretsAreLongAndChecked(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		s := api.NewSecret()
		if len(s) != 52 || !api.WellFormed(s) || seen[s] {
			t.Fatalf("got %q, want a new one of 52 characters that checks", s)
		}
		seen[s] = true
	}
}

// F1-04: what a proxy passes on comes from this machine only by its look.
func TestWhatAProxyPassesOnNeedsAToken(t *testing.T) {
	t.Parallel()
	open, anybody := serve(t), serve(t, func(s *httpapi.Server) { s.Anybody = true })
	for name, value := range map[string]string{"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.7", "Via": "1.1 proxy", "x-forwarded-for": ""} {
		c := call{method: "GET", path: "/v1/messages", header: map[string]string{name: value}}
		p := problem(t, open.do(t, c))
		if p.Status != 401 || !strings.Contains(p.Detail, "proxy") {
			t.Errorf("%s: got %+v", name, p)
		}
		if w := anybody.do(t, c); w.Code != 200 {
			t.Errorf("%s, nobody needs a token: got %d", name, w.Code)
		}
	}
}

// F1-02: the check of the host stays, whatever else is given up.
func TestForeignPagesAreKeptOut(t *testing.T) {
	t.Parallel()
	open := serve(t)
	named := serve(t, func(s *httpapi.Server) { s.AllowedHosts = []string{"Plant-7.lan"} })
	secure := serve(t, locked)
	cases := map[string]struct {
		f    *fixture
		call call
		want int
	}{
		"loopback v4":          {open, call{host: "127.0.0.1:8420"}, 200},
		"another loopback":     {open, call{host: "127.8.8.8"}, 200},
		"loopback v6":          {open, call{host: "[::1]:8420"}, 200},
		"bare loopback v6":     {open, call{host: "[::1]"}, 200},
		"localhost":            {open, call{host: "LocalHost.:8420"}, 200},
		"below localhost":      {open, call{host: "holdfast.localhost"}, 200},
		"rebound name":         {open, call{host: "evil.example:8420"}, 403},
		"looks like localhost": {open, call{host: "localhost.evil.example"}, 403},
		"looks like loopback":  {open, call{host: "127.0.0.1.evil.example"}, 403},
		"another address":      {open, call{host: "10.0.0.7:8420"}, 403},
		"allowed name":         {named, call{host: "plant-7.lan:8420"}, 200},
		"not the allowed name": {named, call{host: "plant-8.lan:8420"}, 403},
		"an address, named":    {named, call{host: "10.0.0.7:8420"}, 200},
		"a token protects":     {secure, call{host: "plant-7.lan"}, 401},
		"cross-site post":      {open, call{method: "POST", header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 403},
		"same-site post":       {open, call{method: "POST", header: map[string]string{"Sec-Fetch-Site": "same-site"}}, 403},
		"same-origin post":     {open, call{method: "POST", header: map[string]string{"Sec-Fetch-Site": "same-origin"}}, 422},
		"old browser's post":   {open, call{method: "POST", header: map[string]string{"Origin": "http://evil.example"}}, 403},
		"a program's post":     {open, call{method: "POST"}, 422},
		"cross-site get":       {open, call{header: map[string]string{"Sec-Fetch-Site": "cross-site"}}, 200},
	}
	for name, c := range cases {
		c.call.path = "/v1/messages"
		if c.call.method == "" {
			c.call.method = "GET"
		}
		w := c.f.do(t, c.call)
		if w.Code != c.want {
			t.Errorf("%s: got %d %s, want %d", name, w.Code, w.Body, c.want)
		}
		if w.Code == 403 {
			problem(t, w)
		}
	}
}

func TestMountsAreBehindTheSameGuard(t *testing.T) {
	t.Parallel()
	f := serve(t, func(s *httpapi.Server) {
		s.Mounts = []httpapi.Mount{{Pattern: "GET /metrics", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("up 1\n"))
		}), Open: true}}
	})
	if w := f.do(t, call{method: "GET", path: "/metrics"}); w.Code != 200 || w.Body.String() != "up 1\n" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	if w := f.do(t, call{method: "GET", path: "/metrics", host: "evil.example"}); w.Code != 403 {
		t.Errorf("a foreign name: got %d, want 403", w.Code)
	}
	if w := f.do(t, call{method: "POST", path: "/metrics"}); w.Code != 405 {
		t.Errorf("a wrong method: got %d, want 405", w.Code)
	}
}

// ADR 0030: whatever the document has of the API asks for a token where tokens are
// asked for. The routes of the tag node are others', and say for whom they are.
func TestEveryOperationOfTheDocumentAsksForAToken(t *testing.T) {
	t.Parallel()
	f := serve(t, locked)
	var doc document
	if err := json.Unmarshal(f.do(t, call{method: "GET", path: "/openapi.json"}).Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	asked, parameter := 0, regexp.MustCompile(`{[^}]+}`)
	for path, operations := range doc.Paths {
		for method, operation := range operations {
			if slices.Contains(operation.Tags, "node") {
				continue
			}
			asked++
			path := parameter.ReplaceAllString(path, "x")
			if w := f.do(t, call{method: strings.ToUpper(method), path: path}); w.Code != http.StatusUnauthorized {
				t.Errorf("%s %s without a token: got %d", method, path, w.Code)
			}
		}
	}
	if asked == 0 {
		t.Error("the document has no operations")
	}
}

// ADR 0030: programs outside the module can write what a server is given.
func TestAServerHasNoTypesThatOthersCannotName(t *testing.T) {
	t.Parallel()
	for _, of := range []reflect.Type{reflect.TypeFor[httpapi.Server](), reflect.TypeFor[httpapi.Mount](), reflect.TypeFor[admin.Service]()} {
		for field := range of.Fields() {
			has := field.Type
			for has.Kind() == reflect.Slice || has.Kind() == reflect.Pointer {
				has = has.Elem()
			}
			if field.IsExported() && strings.Contains(has.PkgPath(), "/internal/") {
				t.Errorf("%s.%s is of %s", of, field.Name, has)
			}
		}
	}
}
