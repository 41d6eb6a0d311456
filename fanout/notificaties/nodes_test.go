package notificaties_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/fanout/notificaties"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// Names of kenmerken are compared in one form, however often they were read before.
func TestKenmerkenOfAllForms(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	d.kanaal("zaken", "a__b", "a_b_c", "objectType", "d")
	for _, kenmerken := range []string{`"a__b":"1","a_b_c":"1","object_type":"1","d":"1"`, `"aB":"1","aBC":"1","objectType":"1","d":"1"`} {
		d.post("notificaties", message(kenmerken)).want(t, http.StatusCreated)
	}
}

// A repeat is answered as at first, whatever became of its kanaal since.
func TestARepeatWhoseKanaalHasChanged(t *testing.T) {
	t.Parallel()
	d := zaken(t, nil)
	d.post("notificaties", message(bron), "Idempotency-Key", "n").want(t, http.StatusCreated)
	repeat := func(status int, codes ...string) {
		t.Helper()
		d.post("notificaties", message(bron), "Idempotency-Key", "n").want(t, http.StatusCreated)
		d.post("notificaties", message(bron), "Idempotency-Key", "other").want(t, status, codes...)
	}
	now, _, err := d.book.Topic(t.Context(), "zaken")
	if err != nil {
		t.Fatal(err)
	}
	now.Attributes = []string{"bron", "kenmerk"}
	if now.Version, err = d.book.Store().PutTopic(t.Context(), now, "test"); err != nil {
		t.Fatal(err)
	}
	repeat(http.StatusBadRequest, "kenmerken/kenmerken_inconsistent")
	if err := d.book.Store().DeleteTopic(t.Context(), "zaken", now.Version, "test"); err != nil {
		t.Fatal(err)
	}
	repeat(http.StatusBadRequest, "kanaal/message_kanaal")
	d.post("notificaties", message(`"bron":"2"`), "Idempotency-Key", "n").want(t, http.StatusConflict)
}

// ask makes a request without a body, or with one.
func (d *door) ask(method, path, body string) reply {
	d.t.Helper()
	req := httptest.NewRequestWithContext(d.t.Context(), method, "/api/v1/"+path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+jwt(publisher, time.Now()))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.api.Handler().ServeHTTP(w, req)
	return reply{w.Code, w.Header(), w.Body.String()}
}

// other is the API of another node on the same store.
func (d *door) other() *door {
	book := fanout.NewBook(nodestore.New(d.store, nil).Fanout, nil)
	return &door{t: d.t, book: book, store: d.store, api: &notificaties.Server{Book: book, Client: d.api.Client, Check: d.api.Check}}
}

// A client cannot fill a store with abonnementen. Those of other clients and of operators do not count.
func TestHowManyAbonnementenAClientMayHave(t *testing.T) {
	t.Parallel()
	d := zaken(t, func(s *notificaties.Server) {
		s.Most, s.Unprotected, s.Check = 2, true, func(*fanout.Subscription) error { return nil }
		s.Probe = func(context.Context, *fanout.Subscription, []byte) (int, error) { return http.StatusNoContent, nil }
	})
	foreign := fanout.Subscription{ID: "foreign"}
	foreign.URL, foreign.Mode = "https://example.nl/", "plain"
	if err := foreign.Ask(&fanout.Abonnement{Owner: "another"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.book.Store().PutSubscription(t.Context(), foreign, "test"); err != nil {
		t.Fatal(err)
	}
	again := func() reply { return d.ask("POST", "abonnement", `{"callbackUrl":"https://example.nl/","auth":""}`) }
	first := again()
	first.want(t, http.StatusCreated)
	again().want(t, http.StatusCreated)
	again().want(t, http.StatusBadRequest, "nonFieldErrors/max_abonnementen")
	_, path, _ := strings.Cut(first.header.Get("Location"), "/api/v1/")
	d.ask("PATCH", path, `{"kanalen":[]}`).want(t, http.StatusOK)
	d.ask("DELETE", path, "").want(t, http.StatusNoContent)
	again().want(t, http.StatusCreated)
}

// What was changed at one node can be read and changed at another one at once.
func TestTwoNodesOfOneAPI(t *testing.T) {
	t.Parallel()
	here := zaken(t, func(s *notificaties.Server) { s.Check = func(*fanout.Subscription) error { return nil } })
	there := here.other()
	there.ask("GET", "kanaal", "").want(t, http.StatusOK)
	there.ask("GET", "abonnement", "").want(t, http.StatusOK)
	here.abonnement("a", "http://127.0.0.1:1/", fanout.Abonnement{Kanalen: []fanout.FilterGroup{{Naam: "zaken", Filters: map[string]string{"zaak_type": "X", "#actie": "create"}}}}, nil)
	const shown = `"kanalen":[{"filters":{"#actie":"create","zaakType":"X"},"naam":"zaken"}]`
	for _, path := range []string{"abonnement", "abonnement/a"} {
		if got := there.ask("GET", path, ""); got.status != http.StatusOK || !strings.Contains(got.body, shown) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, d := range []*door{here, there, here, there} {
		d.ask("PATCH", "abonnement/a", `{"kanalen":[]}`).want(t, http.StatusOK)
	}
	made := here.ask("POST", "kanaal", `{"naam":"fresh"}`)
	made.want(t, http.StatusCreated)
	if got := there.ask("GET", "kanaal", ""); !strings.Contains(got.body, `"fresh"`) {
		t.Errorf("the list lacks a kanaal: %s", got.body)
	}
	_, path, _ := strings.Cut(made.header.Get("Location"), "/api/v1/")
	for _, d := range []*door{here, there, here, there} {
		d.ask("PATCH", path, `{"filters":["a"]}`).want(t, http.StatusOK)
	}
	here.ask("DELETE", "abonnement/a", "").want(t, http.StatusNoContent)
	there.ask("GET", "abonnement/a", "").want(t, http.StatusNotFound)
}
