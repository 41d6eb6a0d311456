package httpcall_test

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/adapter/httpcall"
	"github.com/holdfast-mq/holdfast/internal/exchangetest"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// F1-30: an attempt is one request, whatever net/http would repeat.
func TestAWarmConnectionThatIsClosedCostsOneAttempt(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "GET"} {
		s := exchangetest.Slamming(t, answer(204, ""))
		c := made(t, httpcall.Config{URL: s.URL, Method: method})
		s.Warm(8, func() { _, _ = c.Deliver(t.Context(), holdfast.Message{ID: "m"}) })
		for n := range 8 {
			f := failureOf(t, c)
			if f == nil || f.Code != "connection_lost" || !f.MaybeDelivered || s.Requests() != 9+n {
				t.Errorf("%s: got %+v after %d requests, want one that was lost, and %d", method, f, s.Requests(), 9+n)
			}
		}
	}
}

// endpoints is a node's way in that forwards to a local program.
func endpoints(t *testing.T, url string) *holdfast.Endpoints {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return &holdfast.Endpoints{Log: db, Map: map[string]holdfast.Endpoint{"Book": {Forward: made(t, httpcall.Config{URL: url})}}}
}

func incoming() holdfast.Message {
	return holdfast.Message{ID: holdfast.NewID(), Source: "shop", Endpoint: "Book", Kind: holdfast.Signal, Payload: []byte("{}")}
}

// F1-30, of forwards.
func TestAForwardIsOneRequest(t *testing.T) {
	t.Parallel()
	s := exchangetest.Slamming(t, answer(204, ""))
	e := endpoints(t, s.URL)
	s.Warm(8, func() { _, _ = e.Receive(t.Context(), incoming()) })
	for n := range 8 {
		_, err := e.Receive(t.Context(), incoming())
		if f := holdfast.AsFailure(err); err == nil || f.Outcome != holdfast.Transient || s.Requests() != 9+n {
			t.Errorf("got %v after %d requests, want a transient failure and %d", err, s.Requests(), 9+n)
		}
	}
}

// spoilt are answers of success whose body is of no use.
func spoilt() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"no gzip": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "no gzip")
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		},
		"cut in a chunk": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"too long": answer(200, strings.Repeat("x", httpcall.MaxResponse+1)),
	}
}

// F1-35: the status decides; what succeeded is not repeated for what is wrong
// with its body.
func TestASuccessIsOneWhateverItsBodyIsLike(t *testing.T) {
	t.Parallel()
	for name, h := range spoilt() {
		r, err := made(t, httpcall.Config{URL: serve(t, h)}).Deliver(t.Context(), holdfast.Message{ID: "m"})
		if err != nil || r.State != holdfast.Delivered {
			t.Errorf("%s: got %+v, %v", name, r, err)
		}
		if name == "no gzip" && (string(r.Response) != "no gzip" || r.Note != "") {
			t.Errorf("%s: got %q, note %q; want the bytes", name, r.Response, r.Note)
		}
		if name != "no gzip" && (len(r.Response) > 0 || !strings.Contains(r.Note, "answered 200")) {
			t.Errorf("%s: got %d bytes, note %q; want a note", name, len(r.Response), r.Note)
		}
	}
}

// F1-35, of forwards: the sender is answered, and a repeat finds the id.
func TestAForwardThatSucceededIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, h := range spoilt() {
		calls := 0
		e := endpoints(t, serve(t, func(w http.ResponseWriter, r *http.Request) {
			calls++
			h(w, r)
		}))
		m := incoming()
		first, err := e.Receive(t.Context(), m)
		again, errAgain := e.Receive(t.Context(), m)
		if err != nil || errAgain != nil || first.Duplicate || !again.Duplicate || calls != 1 {
			t.Errorf("%s: got %+v, %v, then %+v, %v, with %d calls", name, first, err, again, errAgain, calls)
		}
	}
}

// F1-08: what stands in place of an answer is not told in full.
func TestWhatStandsInPlaceOfAnAnswerIsClipped(t *testing.T) {
	t.Parallel()
	f := failureOf(t, made(t, httpcall.Config{URL: serve(t, quotes(0, strings.Repeat("x", 4<<20)))}))
	if f == nil || f.Code != "connection_lost" || len(f.Error()) > 600 {
		t.Errorf("got %.1000v", f)
	}
}
