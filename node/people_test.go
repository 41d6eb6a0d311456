package node_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// browser is a person at a node.
type browser struct {
	http.Client

	url string
}

func newBrowser(t *testing.T, url string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{http.Client{Jar: jar}, url}
}

// open asks for a page, or sends a form to it, and follows where that leads.
func (b *browser) open(t *testing.T, path string, form url.Values) (status int, at, page string) {
	t.Helper()
	method, body := http.MethodGet, ""
	if form != nil {
		method, body = http.MethodPost, form.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, b.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := b.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Request.URL.RequestURI(), string(text)
}

func (b *browser) leads(t *testing.T, path string, form url.Values, status int, to string) {
	t.Helper()
	if got, at, page := b.open(t, path, form); got != status || at != to {
		t.Errorf("%s leads to %s, status %d, want %s and %d: %.600s", path, at, got, to, status, page)
	}
}

// The first person closes a node that let in its whole machine. That person signs in, acts under their name, and leaves: from then
// on nothing is open, neither what they could ask nor a stream that they were reading. A node that asks everybody starts with that person alone.
func TestANodeWithPeopleAsksThemToSignIn(t *testing.T) {
	t.Parallel()
	c := parse(t, "destinations: {erp: {call: {url: 'http://127.0.0.1:1'}}}")
	anna := url.Values{"name": {"anna"}, "password": {"correct horse battery"}, "role": {"admin"}, "next": {"/ui/messages"}}
	t.Run("open", func(t *testing.T) { //nolint:paralleltest // the next part opens what this one has kept
		at := serve(t, c)
		visitor := newBrowser(t, at)
		visitor.leads(t, "/", nil, http.StatusOK, "/ui/")
		visitor.leads(t, "/ui/people", url.Values{"name": {"anna"}, "password": anna["password"], "role": {"read"}}, http.StatusConflict, "/ui/people")
		visitor.leads(t, "/ui/people", anna, http.StatusOK, "/ui/sign-in?next=%2Fui%2Fpeople%2Fanna")
		visitor.leads(t, "/", nil, http.StatusOK, "/ui/sign-in?next=%2Fui%2F")
		if status, _ := ask(t, "GET", at+"/v1/messages", ""); status != http.StatusUnauthorized {
			t.Errorf("a program without a token: status %d", status)
		}
		person := newBrowser(t, at)
		person.leads(t, "/ui/sign-in", anna, http.StatusOK, "/ui/messages")
		person.leads(t, "/ui/destinations/erp/pause", url.Values{}, http.StatusOK, "/ui/destinations/erp?done=paused")
		actedAs(t, person, "pause-destination", "user:anna")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		live, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/v1/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := person.Do(live)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = stream.Body.Close() })
		person.leads(t, "/ui/sign-out", url.Values{}, http.StatusOK, "/ui/sign-in?done=signed-out")
		if _, err := io.Copy(io.Discard, stream.Body); err != nil { // within seconds
			t.Errorf("the stream of a session that ended: %v", err)
		}
		person.leads(t, "/ui/", nil, http.StatusOK, "/ui/sign-in?next=%2Fui%2F")
	})
	t.Run("closed", func(t *testing.T) { //nolint:paralleltest // as above
		always := parse(t, "tokens: always\ndestinations: {erp: {call: {url: 'http://127.0.0.1:1'}}}")
		always.Data = c.Data
		person := newBrowser(t, serve(t, always))
		person.leads(t, "/ui/sign-in", anna, http.StatusOK, "/ui/messages")
	})
}

// actedAs waits until the audit log has an action of an actor.
func actedAs(t *testing.T, who *browser, operation, actor string) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%s did %s", actor, operation), func() bool {
		status, _, records := who.open(t, "/v1/audit?actor="+url.QueryEscape(actor), nil)
		return status == http.StatusOK && strings.Contains(records, operation)
	})
}
