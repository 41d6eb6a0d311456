// Package webhookinbox receives webhooks with one effect per id: an HTTP handler that verifies a
// request, and processes it inside the transaction of an inbox. The id of the webhook, what the
// handler does with the transaction, and the commit are one.
//
// The first request and each repeat are answered with 204. A repeat that comes while the first is in
// hand is answered with 409 and Retry-After. What the handler refuses for good is 422: a repeat would
// change nothing. Any other error is 503, and the sender tries again.
package webhookinbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/retryafter"
	"github.com/holdfast-mq/holdfast/webhookverify"
)

// Config says who sends, and what becomes of it. All fields but Logger are required. T is *sqlite.Tx
// or *postgres.Tx.
type Config[T any] struct {
	Verifier *webhookverify.Verifier
	Inbox    *holdfast.Inbox[T]
	// Source is the name of the sender. Ids are unique per source: two senders may choose the same.
	Source string
	// Handle processes a webhook, whose body is the payload of m. A Permanent Failure refuses it for good.
	Handle holdfast.Handler[T]
	Logger *slog.Logger // nil: silent
}

// inHandWait is what a repeat is told to wait, and failedWait what a request is that failed.
const (
	inHandWait = time.Second
	failedWait = 10 * time.Second
)

// Handler returns a handler that receives webhooks of one sender, or all faults of the configuration.
func Handler[T any](c Config[T]) (http.Handler, error) {
	var faults []error
	need := func(ok bool, problem string) {
		if !ok {
			faults = append(faults, errors.New(problem))
		}
	}
	need(c.Verifier != nil, "verifier is nil")
	need(c.Inbox != nil, "inbox is nil")
	need(c.Source != "", "source is empty")
	need(c.Handle != nil, "handle is nil")
	if c.Verifier != nil {
		need(c.Verifier.Form() != webhookverify.Holdfast, "the form is holdfast, whose senders want another answer: use package transport")
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("new webhook inbox: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &handler[T]{Config: c, inHand: map[holdfast.ID]bool{}}, nil
}

type handler[T any] struct {
	Config[T]

	mu     sync.Mutex
	inHand map[holdfast.ID]bool
}

// ServeHTTP receives one webhook.
func (h *handler[T]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, err := h.Verifier.Verify(w, r)
	if err != nil {
		webhookverify.Refuse(w, err)
		return
	}
	id, err := holdfast.ParseID(d.ID)
	if err != nil {
		http.Error(w, "the webhook has no usable id", http.StatusUnprocessableEntity)
		return
	}
	if !h.take(id) {
		w.Header().Set("Retry-After", retryafter.Seconds(inHandWait))
		http.Error(w, "the webhook is in hand", http.StatusConflict)
		return
	}
	defer h.release(id)
	_, err = h.Inbox.Process(r.Context(), holdfast.Message{ID: id, Source: h.Source, Payload: d.Body}, h.Handle)
	h.answer(r.Context(), w, id, holdfast.ReceiveFailure(err))
}

func (h *handler[T]) answer(ctx context.Context, w http.ResponseWriter, id holdfast.ID, err error) {
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	f := holdfast.AsFailure(err)
	h.Logger.WarnContext(ctx, "webhook not processed", slog.String("message_id", string(id)), slog.String("source", h.Source), slog.Any("error", err))
	if f.Outcome == holdfast.Permanent {
		http.Error(w, "the webhook is refused", http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Retry-After", retryafter.Seconds(max(f.RetryAfter, failedWait)))
	http.Error(w, "the webhook was not processed", http.StatusServiceUnavailable)
}

// take notes that an id is in hand, unless it is.
func (h *handler[T]) take(id holdfast.ID) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inHand[id] {
		return false
	}
	h.inHand[id] = true
	return true
}

func (h *handler[T]) release(id holdfast.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.inHand, id)
}
