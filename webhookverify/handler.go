package webhookverify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

type deliveryKey struct{}

// From returns the verified request that a handler behind Verifier.Handler serves. ok is false
// elsewhere.
func From(ctx context.Context) (d Delivery, ok bool) {
	d, ok = ctx.Value(deliveryKey{}).(Delivery)
	return d, ok
}

// Handler calls next with verified requests only. next may read the body again, and gets the Delivery
// from the context. Everything else is answered with 401, 413 or 400, and no reason.
func (v *Verifier) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := v.Verify(w, r)
		if err != nil {
			Refuse(w, err)
			return
		}
		again := r.WithContext(context.WithValue(r.Context(), deliveryKey{}, d))
		again.Body = io.NopCloser(bytes.NewReader(d.Body))
		next.ServeHTTP(w, again)
	})
}

// Refuse answers a request with the status for an error of Verify.
func Refuse(w http.ResponseWriter, err error) {
	status := http.StatusUnauthorized
	switch {
	case errors.Is(err, ErrTooLarge):
		status = http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrUnread):
		status = http.StatusBadRequest
	}
	http.Error(w, http.StatusText(status), status)
}

func read(body io.Reader) ([]byte, error) {
	all, err := io.ReadAll(body)
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: at most %d bytes are taken", ErrTooLarge, large.Limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnread, err)
	}
	return all, nil
}
