package client_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/holdfast-mq/holdfast/admin/client"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
)

// F1-30, of the program's own questions to a node.
func TestAQuestionToANodeIsAskedOnce(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) }))
	c, err := client.New(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Tokens().List(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tokens().List(t.Context()); !errors.Is(err, client.ErrUnreachable) || s.Requests() != 2 {
		t.Errorf("got %v after %d requests, want that it cannot be reached after 2", err, s.Requests())
	}
}
