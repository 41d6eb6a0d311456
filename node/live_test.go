package node_test

import (
	"bufio"
	"net/http"
	"testing"
)

// A page hears of a message that this node took. Its stream does not hold up the stop of the node.
func TestANodeHintsAtWhatChanges(t *testing.T) {
	t.Parallel()
	var answer *http.Response
	t.Cleanup(func() { // after the node has stopped
		if answer != nil {
			_ = answer.Body.Close()
		}
	})
	url := serve(t, parse(t, ""))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/live", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err = http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(answer.Body)
	next := func(event string) {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+event {
				return
			}
		}
		t.Fatalf("the stream ended before %s", event)
	}
	next("hello")
	if code, text := ask(t, "POST", url+"/v1/messages", `{"id":"m1","destination":"self","endpoint":"E","payload":1}`); code != 202 {
		t.Fatalf("%d %s", code, text)
	}
	next("counts")
	next("message")
}
