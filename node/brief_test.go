package node_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/node"
)

// F1-57: however many destinations are not configured, a log line and a health
// report name a few of them and tell how many more there are.
func TestManyUnknownDestinationsAreAFewNamesAndANumber(t *testing.T) {
	t.Parallel()
	c := parse(t, "")
	db := open(t, c.Data)
	ms := make([]holdfast.Message, 500)
	for i := range ms {
		ms[i] = holdfast.Message{ID: holdfast.NewID(), Destination: fmt.Sprintf("gone-%03d", i), Endpoint: "x"}
	}
	if _, err := db.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	ready, ended := make(chan string, 1), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { ended <- node.Serve(ctx, c, node.Options{Log: &log, Ready: func(a string) { ready <- a }}) }()
	url := "http://" + <-ready
	const want = "gone-009, and 490 more"
	for {
		h := health(t, url)
		if is := check(&h, "destinations"); is != nil {
			if len(is.Detail) > 500 || !strings.Contains(is.Detail, want) {
				t.Errorf("health: got %d bytes: %.300s", len(is.Detail), is.Detail)
			}
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, want) || strings.Contains(text, "gone-010") {
		t.Errorf("log: got %d bytes: %.300s", len(text), text)
	}
}
