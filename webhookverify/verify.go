// Package webhookverify lets only verified webhooks through to an HTTP handler. It knows the
// signatures of Standard Webhooks (with a shared secret and with a key pair), of Holdfast's own wire
// protocol, of GitHub, Stripe and Slack.
//
// A request that is let through was made by somebody who has the secret, and was not changed. Where
// the sender signs the time, it is fresh. It may come again: senders repeat what they got no answer
// for. Package webhookinbox makes sure that a repeat has no second effect.
package webhookverify

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast/internal/serve"
)

// Defaults of a Config.
const (
	DefaultTolerance = 5 * time.Minute
	DefaultMaxBody   = 1 << 20
)

// Errors of Verify.
var (
	// ErrRefused says that a request does not prove its origin: 401. What is wrong is for the receiver's
	// own log; the caller must not learn it.
	ErrRefused = errors.New("signature refused")
	// ErrTooLarge says that the body has more bytes than Config.MaxBody: 413.
	ErrTooLarge = errors.New("the body is too large")
	// ErrUnread says that the body could not be read to its end: 400.
	ErrUnread = errors.New("the body could not be read")
)

// Config says what a Verifier accepts.
type Config struct {
	// Form is how the sender signs. It is required: a Verifier never guesses, as a request could then
	// choose the weakest form.
	Form Form
	// Secrets are those that are valid now, as the sender shows them; several while one replaces another.
	// At least one is required.
	Secrets []string
	// Tolerance is how far the time of a request may be off this clock, either way. Zero:
	// DefaultTolerance. GitHub signs no time. Holdfast has a tolerance of its own, five minutes.
	Tolerance time.Duration
	MaxBody   int64        // bytes; zero: DefaultMaxBody
	Logger    *slog.Logger // is told why a request was refused, of few at a time; nil: silent
}

// Verifier verifies webhooks of one sender. It may be used concurrently.
type Verifier struct {
	form      Form
	check     check
	tolerance time.Duration
	maxBody   int64
	log       *slog.Logger
}

// New returns a Verifier, or all faults of the configuration. Errors quote no secret.
func New(c Config) (*Verifier, error) {
	v := &Verifier{form: c.Form, tolerance: c.Tolerance, maxBody: c.MaxBody, log: serve.FewLines(c.Logger)}
	if v.tolerance == 0 {
		v.tolerance = DefaultTolerance
	}
	if v.maxBody == 0 {
		v.maxBody = DefaultMaxBody
	}
	var faults []error
	if v.tolerance < 0 {
		faults = append(faults, errors.New("tolerance is negative"))
	}
	if v.maxBody < 0 {
		faults = append(faults, errors.New("maxBody is negative"))
	}
	if len(c.Secrets) == 0 {
		faults = append(faults, errors.New("secrets is empty, so that nobody could send"))
	}
	var err error
	if v.check, err = c.Form.checkWith(c.Secrets); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("new webhook verifier: %w", err)
	}
	return v, nil
}

// Form returns the form that v accepts.
func (v *Verifier) Form() Form { return v.form }

// Delivery is a verified request.
type Delivery struct {
	// ID is the same whenever the sender repeats the request. It may be empty: Stripe and Slack send it
	// within a body of JSON. Of GitHub it is a header that the signature does not cover.
	ID string
	// Source is who sends, where the request says so: Holdfast's wire protocol.
	Source string
	// Body has the bytes that were signed.
	Body []byte
}

// Verify reads the body of a request and verifies it. The error wraps ErrRefused, ErrTooLarge or
// ErrUnread.
func (v *Verifier) Verify(w http.ResponseWriter, r *http.Request) (Delivery, error) {
	body, err := read(http.MaxBytesReader(w, r.Body, v.maxBody))
	if err != nil {
		return Delivery{}, err
	}
	d, err := v.check(r.Header, body, time.Now(), v.tolerance)
	if err != nil {
		v.log.WarnContext(r.Context(), "webhook refused", slog.String("form", string(v.form)),
			slog.String("remote", serve.Address(r).String()), slog.Any("error", err))
		return Delivery{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	d.Body = body
	return d, nil
}
