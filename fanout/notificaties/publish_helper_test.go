package notificaties_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/sqlite"
)

const publisher = "testsuite"

// door is the API on a store of its own, with what delivers behind it.
type door struct {
	*httptest.Server

	t     *testing.T
	api   *notificaties.Server
	book  *fanout.Book
	store *sqlite.DB
}

// open serves the API. Retries follow in milliseconds.
func open(t *testing.T, change func(s *notificaties.Server)) *door {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "node.db"), sqlite.Options{Source: "central"})
	if err != nil {
		t.Fatal(err)
	}
	sender, err := webhook.New(webhook.Settings{Addresses: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	book := fanout.NewBook(nodestore.New(db, nil).Fanout, nil)
	d := &door{t: t, book: book, store: db, api: &notificaties.Server{
		Book: book, Publisher: &fanout.Publisher{Bundles: db, Book: book, Source: "central"},
		Client: func(id string) (notificaties.Client, bool) {
			return notificaties.Client{ID: id, Secret: "letmein", Superuser: true}, id == publisher
		},
	}}
	if change != nil {
		change(d.api)
	}
	dispatcher := &holdfast.Dispatcher{Store: db, Lanes: db}
	routes := &fanout.Routes{
		Book: book, Dispatcher: dispatcher, Timeout: 5 * time.Second, Gone: func(error) bool { return false },
		Schedule: fanout.Schedule{Factor: time.Millisecond, Base: 4, Cap: 28 * time.Millisecond, Retries: 4},
		Deliverer: func(ask func(ctx context.Context) (fanout.Subscription, error)) holdfast.Deliverer {
			return sender.Deliverer(func(ctx context.Context) (webhook.Target, error) {
				sub, err := ask(ctx)
				return targetOf(&sub), err
			})
		},
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var wait sync.WaitGroup
	for _, run := range []func(context.Context) error{routes.Run, dispatcher.Run} {
		wait.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	d.Server = httptest.NewServer(d.api.Handler())
	t.Cleanup(func() {
		d.Close()
		stop()
		wait.Wait()
		sender.Close()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// targetOf returns where a subscription goes. Its secrets are not sealed.
func targetOf(s *fanout.Subscription) webhook.Target {
	t := webhook.Target{URL: s.URL, Mode: webhook.Mode(s.Mode)}
	for _, secret := range s.Secrets {
		t.Secrets = append(t.Secrets, webhook.Secret{Value: secret.Sealed})
	}
	switch a := s.Authorization; {
	case a == nil:
	case a.Kind == fanout.HeaderKey:
		t.Auth.Key = &webhook.Key{Header: a.Header, Value: a.Sealed}
	case a.Kind == fanout.ZGW:
		t.Auth.ZGW = &webhook.ZGW{Client: a.Client, Secret: a.Sealed}
	case a.Kind == fanout.OAuth2:
		t.Auth.OAuth2 = &webhook.OAuth2{URL: a.URL, Client: a.Client, ClientSecret: a.Sealed}
	}
	return t
}

// kanaal makes a kanaal.
func (d *door) kanaal(name string, filters ...string) {
	d.t.Helper()
	if _, err := d.book.Store().PutTopic(d.t.Context(), fanout.Topic{Name: name, Attributes: filters}, "test"); err != nil {
		d.t.Fatal(err)
	}
}

// abonnement makes a subscription of the API. set, if there is one, changes it before.
func (d *door) abonnement(id, url string, a fanout.Abonnement, set func(s *fanout.Subscription)) {
	d.t.Helper()
	s := fanout.Subscription{ID: id}
	s.URL, s.Mode = url, "plain"
	if a.SendCloudEvents {
		s.Mode = "notificaties"
	}
	a.Owner = publisher
	if set != nil {
		set(&s)
	}
	if err := s.Ask(&a); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.book.Store().PutSubscription(d.t.Context(), s, "test"); err != nil {
		d.t.Fatal(err)
	}
}

func jwt(id string, issued time.Time) string {
	return jwtOf(fmt.Sprintf(`{"iss":%q,"client_id":%q,"iat":%d}`, id, id, issued.Unix()))
}

func jwtOf(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte("letmein"))
	mac.Write([]byte(signed))
	return signed + "." + encode(mac.Sum(nil))
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   string
}

// post posts a body. headers are names and values in turn, and win over the usual ones.
func (d *door) post(path, body string, headers ...string) reply {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.URL+"/api/v1/"+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+jwt(publisher, time.Now()))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := d.Client().Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(text)}
}

func (d *door) cloud(body string, headers ...string) reply {
	d.t.Helper()
	return d.post("cloudevents", body, append([]string{"Content-Type", "application/cloudevents+json"}, headers...)...)
}

// ended waits until all messages of an abonnement have ended so.
func (d *door) ended(id string, state holdfast.State, n int) []holdfast.Record {
	d.t.Helper()
	var list []holdfast.Record
	waittest.Until(d.t, fmt.Sprintf("%d messages to %s are %s", n, id, state), func() bool {
		page, err := d.store.List(d.t.Context(), holdfast.Query{Destination: fanout.Lane(id), Limit: 100})
		list = page.Records
		return err == nil && len(list) == n && !slices.ContainsFunc(list, func(r holdfast.Record) bool { return r.State != state })
	})
	return list
}

// stub is a subscriber. Each request is answered by the next status, and the last one again and again.
type stub struct {
	*httptest.Server

	mu   sync.Mutex
	hits []hit
}

type hit struct {
	header http.Header
	body   string
}

func subscriber(t *testing.T, answer string, status ...int) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.hits = append(s.hits, hit{r.Header, string(text)})
		code := http.StatusNoContent
		if len(status) > 0 {
			code = status[min(len(s.hits), len(status))-1]
		}
		s.mu.Unlock()
		w.WriteHeader(code)
		if code != http.StatusNoContent {
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// got returns the requests so far.
func (s *stub) got() []hit {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.hits)
}
