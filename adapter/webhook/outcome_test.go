package webhook_test

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/webhook"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
)

// WH-02: 2xx ends it, 410 parks, and everything else is tried again.
func TestTheStatusDecides(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	to := receive(t, func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) })
	for status := 200; status <= 599; status++ {
		if status > 226 && status < 300 || status > 308 && status < 400 || status > 451 && status < 500 || status > 511 {
			continue
		}
		r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to.URL)
			w.WriteHeader(status)
		})
		f := failure(t, delivererTo(t, webhook.Target{URL: r.URL}))
		r.Close()
		switch {
		case status/100 == 2:
			if f != nil {
				t.Errorf("%d: got %v", status, f)
			}
		case f != nil && strings.Contains(f.Error(), "redirects") != (status/100 == 3):
			t.Errorf("%d: got %v", status, f)
		case f == nil || f.Code != fmt.Sprintf("http_%d", status) || f.MaybeDelivered || errors.Is(f, webhook.ErrGone) != (status == 410):
			t.Errorf("%d: got %+v", status, f)
		case (f.Outcome == holdfast.Permanent) != (status == 410) || status != 410 && f.Outcome != holdfast.Transient:
			t.Errorf("%d: got the outcome %s", status, f.Outcome)
		}
		if len(r.got()) != 1 {
			t.Errorf("%d: %d requests", status, len(r.got()))
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("a redirect was followed")
	}
}

// 37: what a subscriber asks for is a minimum of a day at most, and nothing if it cannot be read.
func TestASubscriberMayAskForTime(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"120": 2 * time.Minute, "86401": 24 * time.Hour, "999999999": 24 * time.Hour, "soon": 0, "-5": 0, "7.5": 0,
		time.Now().Add(30 * time.Hour).UTC().Format(http.TimeFormat): 24 * time.Hour,
	} {
		for _, status := range []int{429, 503, 404} {
			r := receive(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(status)
			})
			if f := failure(t, delivererTo(t, webhook.Target{URL: r.URL})); f == nil || f.RetryAfter != want {
				t.Errorf("%d with %s: got %+v, want %s", status, header, f, want)
			}
		}
	}
}

// bomb is gzip of 64 MiB.
func bomb(w io.Writer) {
	z := gzip.NewWriter(w)
	block := make([]byte, 1<<20)
	for range 64 {
		if _, err := z.Write(block); err != nil {
			return
		}
	}
	_ = z.Close()
}

// bodies are answers' bodies that want to do harm, and what is kept of them.
func bodies() map[string]struct {
	write func(w http.ResponseWriter)
	kept  string
	cut   bool
} {
	type body = struct {
		write func(w http.ResponseWriter)
		kept  string
		cut   bool
	}
	encoded := func(encoding string, with func(w io.Writer)) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", encoding)
			with(w)
		}
	}
	return map[string]body{
		"none":     {func(http.ResponseWriter) {}, "", false},
		"plain":    {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "ok") }, "ok", false},
		"gzip":     {encoded("gzip", func(w io.Writer) { z := gzip.NewWriter(w); _, _ = io.WriteString(z, "ok"); _ = z.Close() }), "ok", false},
		"zlib":     {encoded("Deflate", func(w io.Writer) { z := zlib.NewWriter(w); _, _ = io.WriteString(z, "ok"); _ = z.Close() }), "ok", false},
		"bomb":     {encoded("gzip", bomb), strings.Repeat("\x00", 16<<10), true},
		"no zip":   {encoded("gzip", func(w io.Writer) { _, _ = io.WriteString(w, "no gzip") }), "", true},
		"other":    {encoded("br", func(w io.Writer) { _, _ = io.WriteString(w, "x") }), "", true},
		"no UTF-8": {func(w http.ResponseWriter) { _, _ = w.Write([]byte("a\xff\xfeb")) }, "a\uFFFDb", false},
		"long":     {func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("ä", 1<<20)) }, strings.Repeat("ä", 8<<10), true},
		"dripped": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "drip")
			_ = http.NewResponseController(w).Flush()
			<-w.(statused).ended //nolint:forcetypeassert // the test passes one
		}, "drip", true},
		"shorter than it says": {func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		}, "half", true},
		"cut in a chunk": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "half", true},
	}
}

// 38, G and the bomb: the status decides, whatever the body is. It is kept to 16 KiB, and the deadline
// covers it.
func TestTheBodyOfAnAnswerDecidesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range bodies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, status := range []int{210, 500} {
				r := receive(t, func(w http.ResponseWriter, r *http.Request) {
					s := statused{w, sync.OnceFunc(func() { w.WriteHeader(status) }), r.Context().Done()}
					c.write(s)
					s.begin()
				})
				timeout := 20 * time.Second
				if name == "dripped" {
					timeout = 300 * time.Millisecond
				}
				e := sender(t, local()).Try(t.Context(), &webhook.Target{URL: r.URL, Timeout: timeout}, &holdfast.Message{ID: "m"})
				if e.Status != status || (e.Failure == nil) != (status == 210) || e.Took > 10*time.Second {
					t.Errorf("%d: got %d, %v after %s", status, e.Status, e.Failure, e.Took)
				}
				if e.Failure != nil && (e.Failure.Code != "http_500" || e.Failure.MaybeDelivered) {
					t.Errorf("got %+v", e.Failure)
				}
				if e.Text != c.kept || e.Cut != c.cut {
					t.Errorf("%d: kept %d bytes, %.40q, cut: %t; want %d, %.40q, %t", status, len(e.Text), e.Text, e.Cut, len(c.kept), c.kept, c.cut)
				}
			}
		})
	}
}

// statused sets a status before the first byte of a body.
type statused struct {
	http.ResponseWriter
	begin func()
	ended <-chan struct{} // closed when the client has gone
}

func (s statused) Unwrap() http.ResponseWriter { return s.ResponseWriter }

func (s statused) Write(p []byte) (int, error) {
	s.begin()
	return s.ResponseWriter.Write(p)
}

// An unusable URL and a forbidden address park at once, and nobody is asked.
func TestWhatCannotBeReachedParks(t *testing.T) {
	t.Parallel()
	r := receive(t, answer(204, ""))
	port := r.Listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // of TCP
	s := sender(t, webhook.Settings{})
	for url, code := range map[string]string{
		"":                                             "bad_url",
		"nowhere":                                      "bad_url",
		"ftp://example.com":                            "bad_url",
		"http://":                                      "bad_url",
		"http://u:hunter2@example.com":                 "bad_url",
		"http://example.com:99999":                     "bad_url",
		"http://exa mple.com/":                         "bad_url",
		"http://example..com/":                         "bad_url",
		"http://%31%32%37.0.0.1/":                      "bad_url",
		fmt.Sprint("http://127.0.0.1:", port):          "forbidden_address",
		fmt.Sprint("http://localhost:", port):          "forbidden_address",
		fmt.Sprint("http://LOCALHOST:", port):          "forbidden_address",
		fmt.Sprint("http://127.1:", port):              "forbidden_address",
		fmt.Sprint("http://2130706433:", port):         "forbidden_address",
		fmt.Sprint("http://0x7f000001:", port):         "forbidden_address",
		fmt.Sprint("http://127.0.0.1.:", port):         "forbidden_address",
		fmt.Sprint("http://１２７．0.0.1:", port):          "forbidden_address",
		fmt.Sprint("http://[::ffff:127.0.0.1]:", port): "forbidden_address",
		"http://[64:ff9b::a9fe:a9fe]/":                 "forbidden_address",
		"http://[2002:a9fe:a9fe::]/":                   "forbidden_address",
		"http://[fd00:ec2::254]/":                      "forbidden_address",
		"http://169.254.169.254/latest":                "forbidden_address",
	} {
		m := holdfast.Message{ID: "m"}
		e := s.Try(t.Context(), &webhook.Target{URL: url}, &m)
		if f := e.Failure; f == nil || f.Outcome != holdfast.Permanent || f.Code != code || f.MaybeDelivered || strings.Contains(f.Error(), "hunter2") {
			t.Errorf("%s: got %+v", url, f)
		}
	}
	if len(r.got()) > 0 {
		t.Error("it was asked")
	}
}

// 9: who cannot be reached is a failed attempt, which counts.
func TestWhoIsAwayIsTriedAgain(t *testing.T) {
	t.Parallel()
	closed := receive(t, answer(204, ""))
	closed.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for url, code := range map[string]string{closed.URL: "connection_refused", "http://" + silent.Addr().String(): "timeout", "https://" + silent.Addr().String(): "connect_timeout"} {
		f := failure(t, delivererTo(t, webhook.Target{URL: url, Timeout: 200 * time.Millisecond}))
		if f == nil || f.Outcome != holdfast.Transient || f.Code != code || f.MaybeDelivered != (code == "timeout") {
			t.Errorf("%s: got %+v, want %s", url, f, code)
		}
	}
	if f := failure(t, delivererTo(t, webhook.Target{URL: "http://nobody.invalid"})); f == nil || f.Outcome != holdfast.Transient {
		t.Errorf("a name that does not exist: got %+v", f)
	}
}

// An attempt is one request, also on a warm connection that is closed in its moment of use.
func TestAnAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, answer(204, ""))
	d := delivererTo(t, webhook.Target{URL: s.URL})
	s.Warm(8, func() { _ = failure(t, d) })
	for n := range 8 {
		f := failure(t, d)
		if f == nil || f.Code != "connection_lost" || !f.MaybeDelivered || f.Outcome != holdfast.Transient || s.Requests() != 9+n {
			t.Errorf("got %+v after %d requests, want one that was lost, and %d", f, s.Requests(), 9+n)
		}
	}
}

// 41: subscriptions share the connections of a host.
func TestConnectionsAreShared(t *testing.T) {
	t.Parallel()
	r := receive(t, func(w http.ResponseWriter, _ *http.Request) { // the last chunk comes behind the end of the gzip
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, "thank you")
		_ = z.Close()
		_ = http.NewResponseController(w).Flush()
	})
	const callers, each = 40, 10 // as many as a few subscriptions have at a time
	s := sender(t, local())
	var all sync.WaitGroup
	for n := range callers {
		all.Go(func() {
			for range each {
				if e := s.Try(t.Context(), &webhook.Target{URL: fmt.Sprint(r.URL, "/", n)}, &holdfast.Message{ID: "m"}); e.Failure != nil {
					t.Error(e.Failure)
				}
			}
		})
	}
	all.Wait()
	if opened, reused := s.Connections(); opened > callers || opened+reused != callers*each {
		t.Errorf("%d connections opened, %d requests over used ones", opened, reused)
	}
}
