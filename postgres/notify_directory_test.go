package postgres_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/admintest"
	"github.com/holdfast-mq/holdfast/admin/httpapi"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/postgres"
)

// nodeAPI is the API of one node.
func nodeAPI(t testing.TB, db *postgres.DB) http.Handler {
	t.Helper()
	s := httpapi.Server{Service: &admin.Service{
		Outbox: db, Enqueuer: db, Inbox: db, Notify: db, Directory: nodestore.New(db, nil).Directory, Channels: &admintest.Channels{}, Name: "n",
		Destinations: func() []admin.Destination { return nil },
	}}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func request(t testing.TB, h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// NO-16: two nodes of one database change one list at once. Each was told
// success, so all recipients are there; and of two that have seen the same
// version one is refused.
func TestTwoNodesChangeOneList(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	one, two := opened(t, dsn, postgres.Options{}), opened(t, dsn, postgres.Options{})
	if err := nodestore.New(one, nil).Directory.PutChannel(t.Context(), notify.Channel{Name: "mail", Kind: "email", Settings: []byte(`{"host":"mx"}`), Retry: notify.DefaultRetry()}, ""); err != nil {
		t.Fatal(err)
	}
	if err := nodestore.New(one, nil).Directory.PutList(t.Context(), notify.List{Name: "ops"}, ""); err != nil {
		t.Fatal(err)
	}
	nodes := []http.Handler{nodeAPI(t, one), nodeAPI(t, two)}
	const each = 15
	var calls sync.WaitGroup
	for n, h := range nodes {
		for i := range each {
			calls.Go(func() {
				if w := request(t, h, "PUT", "/v1/lists/ops/recipients", fmt.Sprintf(`{"channel":"mail","address":"%d-%d@example.org"}`, n, i)); w.Code != http.StatusOK {
					t.Errorf("node %d: %d %s", n, w.Code, w.Body)
				}
			})
		}
	}
	calls.Wait()
	b, err := nodestore.New(two, nil).Directory.Directory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := len(b.Lists["ops"].Recipients); got != 2*each {
		t.Errorf("%d recipients are on the list, want the %d that were added", got, 2*each)
	}

	seen := request(t, nodes[0], "GET", "/v1/lists/ops", "").Header().Get("ETag")
	codes := make([]int, len(nodes))
	for n, h := range nodes {
		calls.Go(func() {
			codes[n] = request(t, h, "PUT", "/v1/lists/ops", fmt.Sprintf(`{"description":"by %d"}`, n), "If-Match", seen).Code
		})
	}
	calls.Wait()
	if got := fmt.Sprint(codes); got != "[200 412]" && got != "[412 200]" {
		t.Errorf("two that saw the same got %s, want one of them refused", got)
	}
}
