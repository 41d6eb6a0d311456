package link_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/link"
)

// F1-06: neither a proxy's word nor central's own puts a site off for longer
// than minutes.
func TestNobodyPutsASiteOffForADay(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"a proxy": "try tomorrow", "central": `{"acknowledged":false,"outcome":"not_started","code":"busy","retryAfterMs":86400000}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == link.EnrollPath {
				_, _ = io.WriteString(w, `{"site":"plant-1"}`)
				return
			}
			w.Header().Set("Retry-After", "86400")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, answer)
		}))
		file := filepath.Join(t.TempDir(), "credential")
		if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: s.URL, Token: bearer.New("hfe_"), File: file}); err != nil {
			t.Fatal(err)
		}
		site, err := link.NewSite(link.SiteConfig{URL: s.URL, File: file, Outbox: quiet{}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = site.Deliver(t.Context(), holdfast.Message{ID: holdfast.NewID(), Endpoint: "Notify", Kind: holdfast.Signal, Payload: []byte("{}")})
		if f := holdfast.AsFailure(err); err == nil || f.RetryAfter != 5*time.Minute {
			t.Errorf("%s: got %v, wait %s, want five minutes", name, err, f.RetryAfter)
		}
		site.Close()
		s.Close()
	}
}

// F1-30, of the link: enrolment, messages and questions are asked once each.
func TestARequestOfTheLinkIsMadeOnce(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := `{"acknowledged":true}`
		if r.URL.Path == link.EnrollPath {
			text = `{"site":"plant-1"}`
		}
		_, _ = io.WriteString(w, text)
	}))
	file := filepath.Join(t.TempDir(), "credential")
	if _, err := link.Enroll(t.Context(), link.EnrollConfig{URL: s.URL, Token: bearer.New("hfe_"), File: file}); err != nil || s.Requests() != 1 {
		t.Fatalf("enrol: %v after %d requests", err, s.Requests())
	}
	site, err := link.NewSite(link.SiteConfig{URL: s.URL, File: file, Outbox: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	send := func() error {
		_, err := site.Deliver(t.Context(), holdfast.Message{ID: holdfast.NewID(), Endpoint: "Notify", Kind: holdfast.Signal, Payload: []byte("{}")})
		return err
	}
	s.Warm(4, func() { _ = send() })
	for name, ask := range map[string]func() error{
		"messages": send,
		"questions": func() error {
			_, err := site.Standing(context.WithoutCancel(t.Context()), holdfast.NewID())
			return err
		},
	} {
		for range 2 {
			before := s.Requests()
			if err := ask(); holdfast.AsFailure(err).Code != "connection_lost" || s.Requests() != before+1 {
				t.Errorf("%s: got %v after %d requests, want one that was lost", name, err, s.Requests()-before)
			}
		}
	}
}
