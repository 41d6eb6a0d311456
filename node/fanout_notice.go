package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/fanout"
	"github.com/holdfast-mq/holdfast/notify"
)

// hubNotices tells a list of people which subscriptions nodes have disabled, and of which messages park because
// their schedule has ended: each at most once per subscription and day. It follows the journal, so that no death of
// a node loses one, and the id of a notice is made of what it says, so that two nodes make the same.
type hubNotices struct {
	journal holdfast.Journal
	submit  func(ctx context.Context, n notify.Notification) (holdfast.Receipt, error)
	list    string // empty: nobody is told
	log     *slog.Logger

	told map[holdfast.ID]struct{} // today, so that a storm of parked messages asks the store once
	day  string
}

func (n *Node) hubNotices(o *office) *hubNotices {
	return &hubNotices{journal: n.store, submit: o.desk.Submit, list: n.cfg.Webhooks.Notices, log: n.log}
}

// hubFollower is the name by which notices follow the journal.
const hubFollower = "notices of subscriptions"

// Run follows until ctx ends or the store is closed. No other error ends it.
func (h *hubNotices) Run(ctx context.Context) error {
	if h.list == "" {
		if err := h.journal.Forget(ctx, hubFollower); err != nil && !errors.Is(err, holdfast.ErrNotFound) && ctx.Err() == nil {
			h.log.ErrorContext(ctx, "the journal is kept for notices of subscriptions", slog.Any("error", err))
		}
		<-ctx.Done()
		return nil
	}
	for h.follow(ctx) {
		again := time.NewTimer(noticesAgain)
		select {
		case <-ctx.Done():
			again.Stop()
			return nil
		case <-again.C:
		}
	}
	return nil
}

// follow follows until something fails. It returns false if there is no more to do.
func (h *hubNotices) follow(ctx context.Context) (again bool) {
	err := h.journal.Project(ctx, holdfast.Follower{Name: hubFollower}, h.project)
	if err == nil || ctx.Err() != nil || errors.Is(err, holdfast.ErrClosed) {
		return false
	}
	h.log.ErrorContext(ctx, "notices of subscriptions wait", slog.Any("error", err))
	return true
}

// noticesAgain is how long notices wait after an error.
const noticesAgain = 10 * time.Second

func (h *hubNotices) project(ctx context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
	for i := range page {
		n, some := h.notice(&page[i])
		if !some {
			continue
		}
		if day := page[i].At.UTC().Format(time.DateOnly); day != h.day {
			h.day, h.told = day, map[holdfast.ID]struct{}{}
		}
		if _, known := h.told[n.ID]; known {
			continue
		}
		_, err := h.submit(ctx, n)
		switch {
		case errors.Is(err, holdfast.ErrInvalid):
			h.log.ErrorContext(ctx, "a notice of a subscription cannot be sent", slog.String("list", h.list), slog.Any("error", err))
		case err != nil && !errors.Is(err, holdfast.ErrConflict): // a conflict: told today with other words
			return nil, err
		}
		h.told[n.ID] = struct{}{}
	}
	return nil, nil
}

// notice returns the notice of an entry, if it is worth one.
func (h *hubNotices) notice(e *holdfast.Entry) (n notify.Notification, some bool) {
	n = notify.Notification{List: h.list}
	id := e.Subject
	switch {
	case e.Kind == holdfast.SubscriptionPut && e.Code == fanout.Disabled.String() && strings.HasPrefix(e.Actor, fanout.ByNode):
		n.Type, n.Subject = "subscription-disabled", fmt.Sprintf("Subscription %s is disabled", id)
		n.Body = fmt.Sprintf("%s\n\nIts messages wait, and it gets no new ones. When it answers again:\n\n  holdfast subscriptions test %s\n  holdfast subscriptions resume %s\n", e.Error, id, id)
	case e.Kind == holdfast.Attempted && e.State == holdfast.Parked && e.Reason == holdfast.ReasonExhausted:
		if id, some = fanout.SubscriptionOf(e.Destination); !some {
			return n, false
		}
		n.Type, n.Subject = "subscription-parked", fmt.Sprintf("Messages of subscription %s park", id)
		n.Body = fmt.Sprintf("Message %s has parked after %d attempts. The last one said: %s\n\nOthers may follow; you are told once a day.\n\n  holdfast messages ls --state parked --destination %s\n",
			e.ID, e.Attempt, e.Error, e.Destination)
	default:
		return n, false
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", n.Type, id, e.At.UTC().Format(time.DateOnly)))
	u := uuid.UUID(sum[:16])
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80 // version 8: of our own making
	n.ID = holdfast.IDOf(u)
	return n, true
}
