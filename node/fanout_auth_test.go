package node_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log" //nolint:depguard // http.Server wants one
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/certtest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

const givenCredential = "credential-of-the-test-that-nobody-sees"

// strict is a subscriber that demands a certificate and, at the path of each kind, an authorization of this
// kind. It is the token endpoint, too.
type strict struct {
	*httptest.Server

	subscriber
	tls  api.SubscriberTLS // with which it can be reached
	part string            // of the key in that
}

func newStrict(t *testing.T) *strict {
	t.Helper()
	ours := certtest.New(t, time.Hour)
	key, err := os.ReadFile(ours.Key)
	if err != nil {
		t.Fatal(err)
	}
	s := &strict{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ours.PEM)
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	s.tls = api.SubscriberTLS{CA: ca, Cert: string(ours.PEM), Key: &api.KeptSecret{Value: string(key)}}
	s.part = strings.Split(string(key), "\n")[1]
	return s
}

func (s *strict) serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	ok := false
	switch got := r.Header.Get("Authorization"); r.URL.Path {
	case "/token":
		w.Header().Set("Content-Type", "application/json")
		if user == "ours" && password == givenCredential && r.FormValue("scope") == "a b" {
			_, _ = io.WriteString(w, `{"access_token":"token-of-the-endpoint","expires_in":3600}`)
			return
		}
	case "/bearer":
		ok = got == "Bearer "+givenCredential
	case "/basic":
		ok = user == "us" && password == givenCredential
	case "/key":
		ok = r.Header.Get("X-Api-Key") == givenCredential
	case "/oauth2":
		ok = got == "Bearer token-of-the-endpoint"
	case "/zgw":
		parts := strings.Split(got, ".")
		claims, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
		ok = err == nil && strings.Contains(string(claims), `"client_id":"ours"`)
	}
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	s.ServeHTTP(w, r)
}

func authorizations(endpoint string) map[string]*api.Authorization {
	secret := api.KeptSecret{Value: givenCredential}
	return map[string]*api.Authorization{
		"bearer": {Kind: "bearer", Secret: secret},
		"basic":  {Kind: "basic", User: "us", Secret: secret},
		"key":    {Kind: "key", Header: "X-Api-Key", Secret: secret},
		"oauth2": {Kind: "oauth2", URL: endpoint, Client: "ours", Scopes: []string{"a", "b"}, Secret: secret},
		"zgw":    {Kind: "zgw", Client: "ours", Secret: secret},
	}
}

// Each kind of authorization, and a certificate, reach a subscriber that demands them. Their secrets are never
// shown, stand sealed, stay when a subscription is sent back as it was shown, and are sealed anew with a new key.
func TestASubscriberThatDemandsAuthorization(t *testing.T) {
	t.Parallel()
	s, c, reload := newStrict(t), parse(t, "webhooks: {addresses: [127.0.0.0/8]}"), make(chan *config.Config)
	url := serveWith(t, withKeys(t, *c, 1), node.Options{Reload: reload})
	hub, err := client.New(url, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hub.Topics().Put(t.Context(), "orders", api.TopicSpec{}); err != nil {
		t.Fatal(err)
	}
	all := authorizations(s.URL + "/token")
	for kind, a := range all {
		made, err := hub.Subscriptions().Put(t.Context(), kind, api.SubscriptionSpec{Topics: []string{"*"}, URL: s.URL + "/" + kind, Authorization: a, TLS: &s.tls})
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		made.Description = "as it was shown"
		if made, err = hub.Subscriptions().Put(t.Context(), kind, api.SubscriptionSpec(made)); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if text, err := json.Marshal(made); err != nil || made.Authorization.Secret.Mark == "" || made.TLS.Key.Mark == "" || strings.Contains(string(text), givenCredential) || strings.Contains(string(text), s.part[:30]) {
			t.Errorf("%s: shown as %s, %v", kind, text, err)
		}
		x, err := hub.Subscriptions().Test(t.Context(), kind, api.NewEvent{Topic: "orders"})
		if err != nil || !x.Delivered || strings.Contains(fmt.Sprint(x), givenCredential) {
			t.Errorf("%s: %+v, %v", kind, x, err)
		}
	}
	reload <- withKeys(t, *c, 2, 1)
	waittest.Until(t, "the node has the new key", func() bool { return keysOf(t, url).Keys[0].ID == keyID(2) })
	if p, err := hub.Keys().Rotate(t.Context(), "", 100); err != nil || p.Resealed != 2*len(all) || len(p.Problems) > 0 {
		t.Errorf("rotate: %+v, %v", p, err)
	}
	reload <- withKeys(t, *c, 2)
	waittest.Until(t, "the former key is away", func() bool { return len(keysOf(t, url).Keys) == 1 })
	if list := keysOf(t, url); list.Broken != 0 || list.Keys[0].Values != 2*len(all) {
		t.Errorf("keys: %+v", list)
	}
	before := len(s.bodies())
	publish(t, hub, api.NewEvent{Topic: "orders", Data: json.RawMessage(`{"a": 1}`)})
	waittest.Until(t, "all have it", func() bool { return len(s.bodies()) == before+len(all) })
	files, err := filepath.Glob(filepath.Join(c.Data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil && (strings.Contains(string(text), givenCredential) || strings.Contains(string(text), s.part)) {
			t.Errorf("%s holds a secret", filepath.Base(name))
		}
	}
}

// An authorization goes only to where it was given for, and a fault of it is named.
func TestFaultsOfAnAuthorization(t *testing.T) {
	t.Parallel()
	c := parse(t, "webhooks: {addresses: [127.0.0.0/8]}")
	url := serve(t, withKeys(t, *c, 1))
	put := func(settings string) string {
		t.Helper()
		_, answer := ask(t, "PUT", url+"/v1/subscriptions/shop", `{"topics":["*"],`+settings+`}`)
		return answer
	}
	var made api.Subscription
	const good = `"url":"https://127.0.0.1:1/a","authorization":{"kind":"oauth2","url":"https://127.0.0.1:1/token","client":"ours","secret":{"value":"` + givenCredential + `"}}`
	if answer := put(good); json.Unmarshal([]byte(answer), &made) != nil || made.Authorization == nil {
		t.Fatal(answer)
	}
	mark := fmt.Sprintf(`"secret":{"mark":%q}}`, made.Authorization.Secret.Mark)
	for _, x := range []struct{ name, settings, want string }{
		{"another path", `"url":"https://127.0.0.1:1/b","authorization":{"kind":"oauth2","url":"https://127.0.0.1:1/tokens","client":"ours",` + mark, `"mark"`},
		{"another host", `"url":"https://127.0.0.2:1/a","authorization":{"kind":"oauth2","url":"https://127.0.0.1:1/token","client":"ours",` + mark, "was given for another kind or host"},
		{"no TLS", `"url":"http://127.0.0.1:1/a","authorization":{"kind":"oauth2","url":"https://127.0.0.1:1/token","client":"ours",` + mark, "was given for another kind or host"},
		{"another endpoint", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"oauth2","url":"https://127.0.0.2:1/token","client":"ours",` + mark, "was given for another kind or host"},
		{"another kind", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"bearer",` + mark, "was given for another kind or host"},
		{"another use", `"url":"https://127.0.0.1:1/a","secrets":[{` + fmt.Sprintf(`"mark":%q}]`, made.Authorization.Secret.Mark), `"field":"secrets[0]"`},
		{"no secret", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"bearer","secret":{}}`, `"field":"authorization.secret"`},
		{"no user", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"basic","secret":{"value":"x"}}`, `"field":"authorization.user"`},
		{"what is of another kind", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"bearer","user":"u","secret":{"value":"x"}}`, `"field":"authorization.user"`},
		{"a kind that is none", `"url":"https://127.0.0.1:1/a","authorization":{"kind":"digest","secret":{"value":"x"}}`, `"field":"authorization.kind"`},
		{"a certificate alone", `"url":"https://127.0.0.1:1/a","tls":{"cert":"x"}`, `"field":"tls"`},
		{"a key beside the certificate", `"url":"https://127.0.0.1:1/a","tls":{"cert":"-----BEGIN EC PRIVATE KEY-----"}`, `"field":"tls.cert"`},
		{"a time-out that is too long", `"url":"https://127.0.0.1:1/a","timeout":"3m"`, `"field":"timeout"`},
	} {
		if answer := put(x.settings); !strings.Contains(answer, x.want) || strings.Contains(answer, givenCredential) {
			t.Errorf("%s: %s", x.name, answer)
		}
	}
}

// A subscription that is given again with the same secrets keeps its version. A dry run finds what a change
// would find, says whether it would change anything, and stores nothing.
func TestTheSameAgainAndDryRuns(t *testing.T) {
	t.Parallel()
	url := serve(t, withKeys(t, *parse(t, "webhooks: {addresses: [127.0.0.0/8]}"), 1))
	hub, err := client.New(url, "")
	if err != nil {
		t.Fatal(err)
	}
	spec := func(secret, host string) api.SubscriptionSpec {
		return api.SubscriptionSpec{
			Topics: []string{"*"}, URL: "https://" + host + ":1/a", Secrets: []api.SigningSecret{{Value: "whsec_bm90IGEgc2VjcmV0LCBvbmx5IGFuIGV4YW1wbGU="}},
			Authorization: &api.Authorization{Kind: "key", Header: "Authorization", Secret: api.KeptSecret{Value: secret}},
		}
	}
	if s, err := hub.Subscriptions().Check(t.Context(), "shop", spec(givenCredential, "127.0.0.1")); err != nil || s.Version != "" || s.Authorization.Secret.Mark == "" {
		t.Errorf("a dry run of a new one: %+v, %v", s, err)
	}
	if _, err := hub.Subscriptions().Get(t.Context(), "shop"); err == nil {
		t.Error("a dry run stored it")
	}
	first, err := hub.Subscriptions().Put(t.Context(), "shop", spec(givenCredential, "127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		secret, host string
		same         bool
	}{"the same": {givenCredential, "127.0.0.1", true}, "another secret": {"other", "127.0.0.1", false}, "another host": {givenCredential, "127.0.0.2", false}} {
		if s, err := hub.Subscriptions().Check(t.Context(), "shop", spec(x.secret, x.host)); err != nil || (s.Version == first.Version) != x.same || !x.same && s.Version != "" {
			t.Errorf("%s: version %q, %v; the present one is %s", name, s.Version, err, first.Version)
		}
	}
	if s, err := hub.Subscriptions().Put(t.Context(), "shop", spec(givenCredential, "127.0.0.1")); err != nil || s.Version != first.Version {
		t.Errorf("the same again: version %s, %v; it was %s", s.Version, err, first.Version)
	}
	if _, err := hub.Subscriptions().Check(t.Context(), "shop", api.SubscriptionSpec{Topics: []string{"*"}}); err == nil || !strings.Contains(err.Error(), "url") {
		t.Errorf("a dry run of a faulty one: %v", err)
	}
	if topic, err := hub.Topics().Check(t.Context(), "orders", api.TopicSpec{}); err != nil || topic.Version != "" {
		t.Errorf("a dry run of a new topic: %+v, %v", topic, err)
	}
	if all, err := hub.Topics().List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a dry run stored a topic: %+v, %v", all, err)
	}
}
