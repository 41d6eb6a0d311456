package link

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/shown"
	"github.com/holdfast-mq/holdfast/notify"
)

const (
	maxStanding = 4 << 10 // bytes of a question
	// standingWait limits a question; a program of the site waits for its answer.
	standingWait = 10 * time.Second
	// questionsAtOnce is how many questions a site asks at one time. Others wait at the site.
	// Forwarding has its own connections.
	questionsAtOnce = 4
)

// question asks for the standing of a notification of the site.
type question struct {
	ID holdfast.ID `json:"id"`
}

// standing is the answer to a question.
type standing struct {
	Known     bool          `json:"known"`
	Status    notify.Status `json:"status,omitempty"`
	Retries   int           `json:"retries,omitempty"`
	LastError string        `json:"lastError,omitempty"`
	Enqueued  time.Time     `json:"enqueued,omitzero"`
	Delivered time.Time     `json:"delivered,omitzero"`
}

// Standing asks central how a notification stands that this site has forwarded (NO-04). ErrNotFound
// means that central does not know it as this site's. Any other error means that central could not
// be asked.
func (s *Site) Standing(ctx context.Context, id holdfast.ID) (notify.Standing, error) {
	var is standing
	ctx, cancel := context.WithTimeout(ctx, standingWait)
	defer cancel()
	select {
	case s.questions <- struct{}{}:
		defer func() { <-s.questions }()
	case <-ctx.Done():
		return notify.Standing{}, fmt.Errorf("ask how notification %s stands: %d questions wait for central: %w", id, questionsAtOnce, ctx.Err())
	}
	if err := s.ask(ctx, StandingPath, standingWait, question{id}, &is); err != nil {
		return notify.Standing{}, err
	}
	if !is.Known {
		return notify.Standing{}, fmt.Errorf("notification %s: %w", id, holdfast.ErrNotFound)
	}
	return notify.Standing{
		ID: id, Status: is.Status, Retries: is.Retries, LastError: shown.Line(is.LastError, 2<<10), Enqueued: is.Enqueued, Delivered: is.Delivered,
	}, nil
}

// serveStanding answers about the site's own notifications only.
func (c *Central) serveStanding(w http.ResponseWriter, r *http.Request, site string) {
	var in question
	if !read(w, r, maxStanding, &in) {
		return
	}
	id, err := holdfast.ParseID(string(in.ID))
	if err != nil || c.conf.Standing == nil {
		write(w, standing{})
		return
	}
	leave, ok := pass(r.Context(), c.gate.questions)
	if !ok {
		tooBusy(w)
		return
	}
	defer leave()
	is, err := c.conf.Standing(r.Context(), site, id)
	switch {
	case errors.Is(err, holdfast.ErrNotFound):
		write(w, standing{})
	case err != nil:
		c.log.LogAttrs(r.Context(), slog.LevelError, "notification not read", slog.String("message_id", string(id)), slog.Any("error", err))
		unavailable(w)
	default:
		write(w, standing{true, is.Status, is.Retries, is.LastError, is.Enqueued, is.Delivered})
	}
}
