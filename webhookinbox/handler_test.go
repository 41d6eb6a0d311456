package webhookinbox_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/pgtest"
	"github.com/holdfast-mq/holdfast/internal/standardwebhooks"
	"github.com/holdfast-mq/holdfast/postgres"
	"github.com/holdfast-mq/holdfast/sqlite"
	"github.com/holdfast-mq/holdfast/webhookinbox"
	"github.com/holdfast-mq/holdfast/webhookverify"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m, pgtest.Options{Beside: true})) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func verifier(t *testing.T, form webhookverify.Form) *webhookverify.Verifier {
	t.Helper()
	v, err := webhookverify.New(webhookverify.Config{Form: form, Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// effect is what a handler does inside the transaction of a store.
type effect func(ctx context.Context, enqueue func(holdfast.Message) error, m holdfast.Message) error

// receiver returns a handler over a store, and the number of messages in its outbox.
type receiver func(t *testing.T, do effect) (h http.Handler, sent func() int)

func handler[T any](t *testing.T, in *holdfast.Inbox[T], do holdfast.Handler[T]) http.Handler {
	t.Helper()
	h, err := webhookinbox.Handler(webhookinbox.Config[T]{
		Verifier: verifier(t, webhookverify.StandardWebhooks), Inbox: in, Source: "shop", Handle: do, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func pending(t *testing.T, o holdfast.Outbox) func() int {
	t.Helper()
	return func() int { return int(o.Counts().Lanes["audit"].Pending) }
}

// stores are the receivers of both stores.
func stores() map[string]receiver {
	return map[string]receiver{
		"file": func(t *testing.T, do effect) (http.Handler, func() int) {
			t.Helper()
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "inbox.db"), sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return handler(t, db.Inbox(), func(ctx context.Context, tx *sqlite.Tx, m holdfast.Message) ([]byte, error) {
				return nil, do(ctx, func(m holdfast.Message) error { _, err := tx.Enqueue(ctx, m); return err }, m)
			}), pending(t, db)
		},
		"database": func(t *testing.T, do effect) (http.Handler, func() int) {
			t.Helper()
			db, err := postgres.Open(t.Context(), pgtest.Shared(t).Database(t), postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			return handler(t, db.Inbox(), func(ctx context.Context, tx *postgres.Tx, m holdfast.Message) ([]byte, error) {
				return nil, do(ctx, func(m holdfast.Message) error { _, err := tx.Enqueue(ctx, m); return err }, m)
			}), pending(t, db)
		},
	}
}

func post(t *testing.T, h http.Handler, id, body string) *httptest.ResponseRecorder {
	t.Helper()
	s, err := standardwebhooks.NewSigner(secret)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks", strings.NewReader(body))
	standardwebhooks.Sign(r.Header, id, time.Now(), []byte(body), s)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// notify enqueues one message for each webhook.
func notify(_ context.Context, enqueue func(holdfast.Message) error, m holdfast.Message) error {
	return enqueue(holdfast.Message{ID: holdfast.NewID(), Destination: "audit", Endpoint: "Seen", Payload: m.Payload})
}

func TestARepeatHasNoSecondEffect(t *testing.T) {
	t.Parallel()
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, sent := open(t, notify)
			for range 3 {
				if w := post(t, h, "msg_1", `{"a":1}`); w.Code != 204 || w.Body.Len() != 0 {
					t.Errorf("got %d %s", w.Code, w.Body)
				}
			}
			if w := post(t, h, "msg_2", `{"a":1}`); w.Code != 204 {
				t.Errorf("another id: got %d %s", w.Code, w.Body)
			}
			if w := post(t, h, "msg_1", `{"a":2}`); w.Code != 422 {
				t.Errorf("other content: got %d %s", w.Code, w.Body)
			}
			if n := sent(); n != 2 {
				t.Errorf("%d effects, want 2", n)
			}
		})
	}
}

// The sender must not give up what failed, nor repeat what can never succeed; neither has an effect.
func TestAnErrorUndoesEverything(t *testing.T) {
	t.Parallel()
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fail error
			h, sent := open(t, func(ctx context.Context, enqueue func(holdfast.Message) error, m holdfast.Message) error {
				return errors.Join(notify(ctx, enqueue, m), fail)
			})
			fail = errors.New("the printer is on fire")
			if w := post(t, h, "msg_1", "{}"); w.Code != 503 || w.Header().Get("Retry-After") != "10" || strings.Contains(w.Body.String(), "printer") {
				t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
			}
			fail = &holdfast.Failure{Outcome: holdfast.Permanent, Err: errors.New("no such order")}
			if w := post(t, h, "msg_1", "{}"); w.Code != 422 || w.Header().Get("Retry-After") != "" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			fail = &holdfast.Failure{Err: holdfast.ErrConflict, RetryAfter: time.Minute}
			if w := post(t, h, "msg_1", "{}"); w.Code != 503 || w.Header().Get("Retry-After") != "60" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			if n := sent(); n != 0 {
				t.Errorf("%d effects of what failed", n)
			}
			fail = nil
			if w := post(t, h, "msg_1", "{}"); w.Code != 204 || sent() != 1 {
				t.Errorf("got %d and %d effects", w.Code, sent())
			}
		})
	}
}

func TestARepeatOfWhatIsInHandWaits(t *testing.T) {
	t.Parallel()
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, end := make(chan struct{}), make(chan struct{})
			var once sync.Once
			h, sent := open(t, func(ctx context.Context, enqueue func(holdfast.Message) error, m holdfast.Message) error {
				once.Do(func() { close(begun) })
				<-end
				return notify(ctx, enqueue, m)
			})
			var first *httptest.ResponseRecorder
			var all sync.WaitGroup
			all.Go(func() { first = post(t, h, "msg_1", "{}") })
			<-begun
			if w := post(t, h, "msg_1", "{}"); w.Code != 409 || w.Header().Get("Retry-After") != "1" {
				t.Errorf("got %d %v", w.Code, w.Header())
			}
			close(end)
			all.Wait()
			if w := post(t, h, "msg_1", "{}"); first.Code != 204 || w.Code != 204 || sent() != 1 {
				t.Errorf("got %d, then %d, with %d effects", first.Code, w.Code, sent())
			}
		})
	}
}

func TestWhatIsNotVerifiedIsNotProcessed(t *testing.T) {
	t.Parallel()
	h, sent := stores()["file"](t, notify)
	for what, c := range map[string]struct {
		body io.Reader
		want int
	}{"unsigned": {strings.NewReader("{}"), 401}, "too large": {strings.NewReader(strings.Repeat("x", 1<<20+1)), 413}} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks", c.body))
		if w.Code != c.want {
			t.Errorf("%s: got %d", what, w.Code)
		}
	}
	if w := post(t, h, strings.Repeat("x", 1000), "{}"); w.Code != 422 {
		t.Errorf("an id that is too long: got %d", w.Code)
	}
	if n := sent(); n != 0 {
		t.Errorf("%d effects", n)
	}
}

func TestAHandlerNeedsAllThatItUses(t *testing.T) {
	t.Parallel()
	_, err := webhookinbox.Handler(webhookinbox.Config[*sqlite.Tx]{})
	for _, want := range []string{"verifier", "inbox", "source", "handle"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	v, err := webhookverify.New(webhookverify.Config{Form: webhookverify.Holdfast, Secrets: []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := webhookinbox.Handler(webhookinbox.Config[*sqlite.Tx]{Verifier: v}); err == nil || !strings.Contains(err.Error(), "package transport") {
		t.Errorf("a sender of envelopes: got %v", err)
	}
}
