package node_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/internal/waittest"
)

// SF-02, SF-03: a node calls a foreign API: what it refuses for good has ended
// with its words, what passes is tried again, and credentials that are not
// taken hold the destination and charge no message.
func TestCallsOfAForeignAPI(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		what := fmt.Sprintf("%s %s %s %s", r.Method, r.URL.Path, r.Header.Get("Authorization"), body)
		mu.Lock()
		defer mu.Unlock()
		seen[what]++
		switch {
		case strings.HasSuffix(r.URL.Path, "/Refused"):
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"error":"no such plant"}`)
		case strings.HasSuffix(r.URL.Path, "/Later") && seen[what] < 3:
			w.WriteHeader(http.StatusInternalServerError)
		case strings.HasPrefix(r.URL.Path, "/closed"):
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = io.WriteString(w, `{"booked": 1.0}`)
		}
	}))
	defer target.Close()
	url := serve(t, parse(t, fmt.Sprintf(`
destinations:
  erp:
    call: {url: "%[1]s/api/{endpoint}", method: PUT, auth: {basic: {user: holdfast, password: {env: SECRET}}}}
    retry: {interval: 20ms}
  closed: {call: {url: "%[1]s/closed", auth: {bearer: {env: SECRET}}}, retry: {interval: 20ms, retries: 1}}
`, target.URL)))
	for id, c := range map[string]struct {
		to     string
		status int
		answer string
	}{
		"done": {"erp/Book", 200, `"outcome":"delivered","response":{"booked": 1.0}}`}, "later": {"erp/Later", 202, `"outcome":"transient","lastError":"the endpoint answered 500"`},
		"refused": {"erp/Refused", 422, `"message":"refused","code":"http_422"`}, "held": {"closed/Book", 202, `"outcome":"lane_fault"`},
	} {
		destination, endpoint, _ := strings.Cut(c.to, "/")
		resp, err := http.Post(url+"/v1/messages", "application/json", strings.NewReader(fmt.Sprintf(`{"id":%q,"destination":%q,"endpoint":%q,"payload":{"of":%q}}`, id, destination, endpoint, id)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || !strings.Contains(string(answer), c.answer) {
			t.Errorf("%s: got %s, %s, want %d with %s", id, resp.Status, answer, c.status, c.answer)
		}
	}
	type message struct {
		State     string `json:"state"`
		LastError string `json:"lastError"`
		Failures  int    `json:"failures"`
	}
	show := func(id string) (m message) {
		t.Helper()
		resp, err := http.Get(url + "/v1/messages/" + id)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	for id, want := range map[string]func(m message) bool{
		"done":  func(m message) bool { return m.State == "delivered" },
		"later": func(m message) bool { return m.State == "delivered" && m.Failures == 2 },
		"refused": func(m message) bool {
			return m.State == "discarded" && strings.Contains(m.LastError, `422: {"error":"no such plant"}`)
		},
		"held": func(m message) bool {
			return m.State == "pending" && m.Failures == 0 && strings.Contains(m.LastError, "our credentials are refused")
		},
	} {
		var m message
		waittest.Until(t, id+" has ended as it should", func() bool { m = show(id); return want(m) })
	}
	resp, err := http.Get(url + "/v1/destinations")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if list, _ := io.ReadAll(resp.Body); !strings.Contains(string(list), `"lane":"held"`) || strings.Contains(string(list), "MDEy") {
		t.Errorf("the destinations are %s", list)
	}
	mu.Lock()
	defer mu.Unlock()
	if n := seen[`PUT /api/Book Basic aG9sZGZhc3Q6TURFeU16UTFOamM0T1dGaVkyUmxaakF4TWpNME5UWTNPRGxoWW1Oa1pXWT0= {"of":"done"}`]; n != 1 || len(seen) != 4 {
		t.Errorf("the target has seen %v", seen)
	}
}
