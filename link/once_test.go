package link_test

import (
	"context"
	"io"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/bearer"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/link"
)

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
