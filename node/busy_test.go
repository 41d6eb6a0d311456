package node_test

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/transport"
)

// F1-45: while another program holds the right to write to the database, whoever
// brings something is told to come again, on each door.
func TestAnotherProgramHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	c := parse(t, "receive: {secrets: {shop: {env: SECRET}}, endpoints: {Book: {keep: true}}}")
	url := serve(t, c)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(c.Data, "holdfast.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	for door, call := range map[string]func() (status int, retryAfter string){
		"API": func() (int, string) {
			r, err := http.Post(url+"/v1/tokens", "application/json", strings.NewReader(`{"name": "t", "role": "read"}`))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			return r.StatusCode, r.Header.Get("Retry-After")
		},
		"receive": func() (int, string) {
			to, err := neturl.Parse(url)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(chan *http.Response, 1)
			proxy := httptest.NewServer(&httputil.ReverseProxy{
				Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
				ModifyResponse: func(r *http.Response) error {
					seen <- r
					return nil
				},
			})
			defer proxy.Close()
			client := sender(t, transport.ClientConfig{URL: proxy.URL})
			defer client.Close()
			if _, err := client.Deliver(t.Context(), holdfast.Message{ID: "m", Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte("1")}); err == nil {
				t.Error("a message was received")
			}
			r := <-seen
			return r.StatusCode, r.Header.Get("Retry-After")
		},
	} {
		if status, after := call(); status != http.StatusServiceUnavailable || after == "" {
			t.Errorf("%s: got %d with Retry-After %q, want 503 and a time", door, status, after)
		}
	}
}
