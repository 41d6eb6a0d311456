package demo_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-mq/holdfast/cmd/holdfast/internal/demo"
)

const batch = "application/vnd.holdfast.batch"

func frames(all ...string) (body string) {
	for _, f := range all {
		body += fmt.Sprintf("%d\n%s\n", len(f), f)
	}
	return body
}

// receiver answers each request with the same content, and counts requests.
func receiver(t *testing.T, contentType, answer string) (url string, calls *int) {
	t.Helper()
	calls = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*calls++
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Rf-Batch", "max=7")
		w.Header().Set("X-Path", r.URL.RequestURI()+" "+r.Header.Get("Rf-Budget-Ms"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// got is a response.
type got struct {
	status int
	header http.Header
	text   string
}

func between(t *testing.T, url string) (*demo.Book, func(body string) (got, error)) {
	t.Helper()
	return on(t, url, "/_rf/receive?a=b")
}

// on is a network with somebody who posts on a path.
func on(t *testing.T, url, path string) (*demo.Book, func(body string) (got, error)) {
	t.Helper()
	b := demo.NewBook(nil)
	b.Send(url)
	s := httptest.NewServer(b.Network)
	t.Cleanup(s.Close)
	return b, func(body string) (got, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Rf-Budget-Ms", "9")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return got{}, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return got{resp.StatusCode, resp.Header, string(text)}, err
	}
}

func TestTheNetworkPassesOnAndReadsAcks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType, answer string
		want                demo.Counts
	}{
		"an ack":       {"application/json", `{"acknowledged":true,"duplicateDetected":false}`, demo.Counts{Delivered: 1, Lost: 1}},
		"a duplicate":  {"application/json; charset=utf-8", `{"acknowledged":true,"duplicateDetected":true}`, demo.Counts{Delivered: 1, Lost: 1, DuplicatesRefused: 1}},
		"a nak":        {"application/json", `{"acknowledged":false,"outcome":"transient"}`, demo.Counts{}},
		"another text": {"text/plain", "acknowledged", demo.Counts{}},
		"a batch": {
			batch, frames(`{"messageId":"x","acknowledged":true}`, `{"messageId":"y","acknowledged":true,"duplicateDetected":true}`, `{"messageId":"z","acknowledged":false}`),
			demo.Counts{Delivered: 2, Lost: 2, DuplicatesRefused: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := receiver(t, c.contentType, c.answer)
			b, post := between(t, url)
			resp, err := post(`{"messageId":"m"}`)
			if err != nil || resp.status != http.StatusAccepted || resp.text != c.answer || *calls != 1 {
				t.Fatalf("got %v, %v after %d calls; want the receiver's answer", resp, err, *calls)
			}
			if got, want := resp.header.Get("Rf-Batch")+" "+resp.header.Get("X-Path"), "max=7 /_rf/receive?a=b 9"; got != want {
				t.Errorf("got headers %q, want %q", got, want)
			}
			if diff := cmp.Diff(c.want, b.Now()); diff != "" { // an effect is not seen here, so that each ack counts as lost
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

// What sites forward is booked apart from orders, and its acks are lost as
// well; what they ask beside that is neither.
func TestTheNetworkCarriesTheLinkOfSites(t *testing.T) {
	t.Parallel()
	url, calls := receiver(t, batch, frames(`{"messageId":"x","acknowledged":true,"duplicateDetected":true}`))
	b, forward := on(t, url, "/v1/link/messages")
	b.Lose(true)
	if resp, err := forward(""); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v; want the connection cut before the answer", resp, err)
	}
	b.Lose(false)
	if resp, err := forward(""); err != nil || resp.status != http.StatusAccepted {
		t.Errorf("got %v, %v", resp, err)
	}
	if diff := cmp.Diff(demo.Counts{Notifications: demo.Tally{Duplicates: *calls}}, b.Now()); diff != "" || *calls < 2 {
		t.Errorf("after %d calls, counts (-want +got):\n%s", *calls, diff)
	}
	url, _ = receiver(t, "application/json", `{"acknowledged":true}`)
	b, poll := on(t, url, "/v1/link/poll")
	b.Lose(true)
	if resp, err := poll("{}"); err != nil || resp.text != `{"acknowledged":true}` {
		t.Errorf("got %v, %v; want the answer", resp, err)
	}
	if diff := cmp.Diff(demo.Counts{}, b.Now()); diff != "" {
		t.Errorf("counts of a poll (-want +got):\n%s", diff)
	}
}

func TestTheNetworkLosesAcks(t *testing.T) {
	t.Parallel()
	url, calls := receiver(t, "application/json", `{"acknowledged":true}`)
	b, post := between(t, url)
	b.Lose(true)
	if resp, err := post(`{"messageId":"m"}`); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v; want the connection cut before the answer", resp, err)
	}
	if diff := cmp.Diff(demo.Counts{AcksLost: 1}, b.Now()); diff != "" || *calls == 0 {
		t.Errorf("after %d calls, counts (-want +got):\n%s", *calls, diff)
	}
	b.Lose(false)
	if _, err := post(`{"messageId":"m"}`); err != nil {
		t.Errorf("when it is whole again: %v", err)
	}
	if got := b.Now(); got.Delivered != 1 || got.AcksLost != 1 {
		t.Errorf("got %+v, want one ack lost and one passed", got)
	}
}

func TestANakIsNotAnAckToLose(t *testing.T) {
	t.Parallel()
	url, _ := receiver(t, "application/json", `{"acknowledged":false}`)
	b, post := between(t, url)
	b.Lose(true)
	for range 20 {
		if _, err := post(`{}`); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheNetworkSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		contentType, answer string
		want                int
	}{
		"a reply that is none": {"application/json", "{", http.StatusBadGateway},
		"a frame cut short":    {batch, "9\n{}\n", http.StatusBadGateway},
		"a frame of no length": {batch, "{}\n", http.StatusBadGateway},
		"a frame without end":  {batch, "2\n{}", http.StatusBadGateway},
		"a frame of no JSON":   {batch, "1\n{\n", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := receiver(t, c.contentType, c.answer)
			_, post := between(t, url)
			if resp, err := post(`{}`); err != nil || resp.status != c.want {
				t.Errorf("got %v, %v; want status %d", resp, err, c.want)
			}
		})
	}
}

func TestNobodyBehindTheNetwork(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	b, post := between(t, s.URL)
	if resp, err := post(`{}`); err != nil || resp.status != http.StatusServiceUnavailable {
		t.Errorf("got %v, %v; want 503", resp, err)
	}
	if got := b.Now(); got != (demo.Counts{}) {
		t.Errorf("got %+v, want nothing", got)
	}
}

func TestTheProgramActsOncePerKey(t *testing.T) {
	t.Parallel()
	b := demo.NewBook(nil)
	b.Try("a")
	call := func(key, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Idempotency-Key", key)
		w := httptest.NewRecorder()
		b.Program.ServeHTTP(w, r)
		return w.Code
	}
	if got := []int{call("k", `{"order":"a"}`), call("k", `{"order":"a"}`), call("k", `{}`), call("k", `no`)}; !cmp.Equal(got, []int{200, 200, 400, 400}) {
		t.Errorf("got %v, want 200, 200, 400, 400", got)
	}
	if got, want := b.Now(), (demo.Counts{Effects: 1, DuplicatesRefused: 1, RepeatedCalls: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
