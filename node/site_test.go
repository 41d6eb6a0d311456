package node_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/node"
)

// SF-03: whatever a target does is its own affair: the program that calls is
// told delivered, buffered or refused, and never that the node has failed. What
// the target refuses is told from a target that there is none of.
func TestWhatATargetDoesIsNeverTheNodesFailure(t *testing.T) {
	t.Parallel()
	raw := func(w http.ResponseWriter, text string) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch r.URL.Path {
		case "/gone":
			raw(w, "")
		case "/garbage":
			raw(w, "SSH-2.0-OpenSSH\r\n")
		case "/cut":
			raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/elsewhere":
			http.Redirect(w, r, "/fine", http.StatusFound)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 5000))
		case "/no":
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, strings.Repeat("sold out ", 1000))
		case "/late":
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		}
	}))
	t.Cleanup(target.Close)
	// Of "cut" and "long" the status decides, and a note says what became of the answer (F1-35).
	outcomes := map[string]int{"fine": 200, "gone": 202, "garbage": 202, "cut": 200, "broken": 202, "elsewhere": 202, "late": 202, "long": 200, "no": 422}
	conf := strings.Builder{}
	for name := range outcomes { // a destination each: one that is down is not waited for
		timeout := "1m"
		if name == "late" {
			timeout = "1s"
		}
		fmt.Fprintf(&conf, "  %s: {call: {url: \"%s/{endpoint}\", response: 1KiB}, timeout: %s, retry: {interval: 1h}}\n", name, target.URL, timeout)
	}
	url := serve(t, parse(t, "destinations:\n"+conf.String()))
	for endpoint, want := range outcomes {
		status, answer := post(t, url, fmt.Sprintf(`{"category":"external-system","destination":%[1]q,"endpoint":%[1]q}`, endpoint))
		if status != want || want == 422 && answer.Cause != "refused_by_target" {
			_, all := ask(t, http.MethodGet, url+"/v1/messages?destination="+endpoint, "")
			t.Errorf("%s: got %d %+v, want %d; its messages: %s", endpoint, status, answer, want, all)
		}
		if endpoint == "no" && (answer.TargetStatus != 409 || !strings.Contains(answer.Detail, "sold out sold out") || len(answer.Detail) > 500) {
			t.Errorf("refused: got %+v, want its status and the beginning of what it said", answer)
		}
	}
	if status, answer := post(t, url, `{"destination":"nowhere","endpoint":"fine"}`); status != 422 || answer.Cause != "unknown_destination" {
		t.Errorf("unknown: got %d %+v", status, answer)
	}
}

type answered struct {
	Cause        string `json:"cause"`
	Detail       string `json:"detail"`
	TargetStatus int    `json:"targetStatus"`
	State        string `json:"state"`
}

func post(t *testing.T, url, body string) (status int, a answered) {
	t.Helper()
	resp, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, a
}

// SF-11: what a former configuration took for a destination that this one does
// not name stays pending; the log says it once and health as long as it lasts.
func TestRowsOfADestinationThatIsNotConfiguredAnyMore(t *testing.T) {
	t.Parallel()
	before := parse(t, `destinations: {old: {call: {url: "http://127.0.0.1:1"}}, other: {call: {url: "http://127.0.0.1:1"}}}`)
	run := func(log io.Writer, now func(url string)) {
		t.Helper()
		c := *before
		ready, ended := make(chan string, 1), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- node.Serve(ctx, &c, node.Options{Log: log, Ready: func(a string) { ready <- a }}) }()
		select {
		case a := <-ready:
			now("http://" + a)
			cancel()
		case err := <-ended:
			ended <- err
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	run(io.Discard, func(url string) {
		for range 20 {
			post(t, url, `{"destination":"old","endpoint":"x","attemptImmediately":false}`)
		}
	})
	delete(before.Destinations, "old")
	log := &lines{}
	run(log, func(url string) {
		health := ""
		waittest.Until(t, "health tells of the messages that wait", func() bool {
			_, health = ask(t, "GET", url+"/_rf/health", "")
			return strings.Contains(health, "messages wait for old")
		})
		if !strings.Contains(health, "messages wait for old") || !strings.Contains(health, `"pending":20,"parked":0`) {
			t.Errorf("health is %s", health)
		}
	})
	if n := strings.Count(log.String(), "cause=no_route destinations=old"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, log)
	}
}
