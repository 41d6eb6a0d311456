package node_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast/node"
)

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A target that quotes the credential it was sent puts it into no answer of
// the API, no log line and no file.
func TestAQuotedCredentialIsNowhere(t *testing.T) {
	t.Parallel()
	const secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=" // as parse has it
	forms := []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), secret[5:30]}
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusUnprocessableEntity
		switch {
		case strings.HasSuffix(r.URL.Path, "/Later"):
			status = http.StatusInternalServerError
		case strings.HasSuffix(r.URL.Path, "/Denied"):
			status = http.StatusUnauthorized
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "Incorrect API key provided: "+strings.Join(forms, ", ")+"; "+r.Header.Get("Authorization")+r.Header.Get("X-Key"))
	}))
	defer target.Close()
	c := parse(t, fmt.Sprintf(`
destinations:
  basic: {call: {url: "%[1]s/{endpoint}", auth: {basic: {user: u, password: {env: SECRET}}}}, retry: {interval: 1h}}
  bearer: {call: {url: "%[1]s/{endpoint}", auth: {bearer: {env: SECRET}}}, retry: {interval: 1h}}
  key: {call: {url: "%[1]s/{endpoint}", auth: {key: {header: X-Key, value: {env: SECRET}}}}, retry: {interval: 1h}}
`, target.URL))
	log := &lockedBuffer{}
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- node.Serve(ctx, c, node.Options{Ready: func(a string) { ready <- a }, Log: log, Out: log})
	}()
	var at string
	select {
	case at = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	said := map[string]string{}
	client := &http.Client{Timeout: 20 * time.Second}
	keep := func(what, method, path, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		said[what] = string(text)
	}
	for _, to := range []string{"basic", "bearer", "key"} {
		for _, endpoint := range []string{"Refused", "Later", "Denied"} {
			id := to + endpoint
			keep("the answer to "+id, "POST", "/v1/messages", fmt.Sprintf(`{"id":%q,"destination":%q,"endpoint":%q}`, id, to, endpoint))
			keep("the message "+id, "GET", "/v1/messages/"+id, "")
		}
	}
	for _, path := range []string{"/v1/messages", "/v1/destinations", "/_rf/health", "/metrics"} {
		keep(path, "GET", path, "")
	}
	if n := strings.Count(said["/v1/messages"], "Incorrect API key provided: [secret]"); n < 9 {
		t.Errorf("the target is quoted in %d messages of 9: %s", n, said["/v1/messages"])
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	said["the log"] = log.String()
	files, err := filepath.Glob(filepath.Join(c.Data, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err == nil {
			said[filepath.Base(name)] = string(text)
		}
	}
	for what, text := range said {
		for _, form := range append(forms, secret[:16], base64.StdEncoding.EncodeToString([]byte("u:" + secret))[:40]) {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %s", what, form)
			}
		}
	}
}
