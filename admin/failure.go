package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/link"
)

// refuse turns an error of the store into a problem. The error's own text goes to the log; the client sees it
// only if it is about the client's input.
func (s *Service) refuse(ctx context.Context, doing string, err error) *api.Problem {
	return s.Refusal(ctx, s.Log(), doing, err)
}

// Refusal is refuse with an explicit log for the error's own text.
func (s *Service) Refusal(ctx context.Context, log *slog.Logger, doing string, err error) *api.Problem {
	return s.explain(ctx, log, doing, err).Of(err)
}

func (s *Service) explain(ctx context.Context, log *slog.Logger, doing string, err error) *api.Problem {
	if away, ok := errors.AsType[*link.ErrNotReachable](err); ok {
		return api.SiteAway.Problem(away.Error()+"; nothing was done").With("Retry-After", "30")
	}
	if at, ok := errors.AsType[*link.ErrSite](err); ok {
		return s.refuseAt(ctx, doing, at, err)
	}
	switch {
	case errors.Is(err, link.ErrNoAnswer):
		return api.SiteSilent.Problem(link.ErrNoAnswer.Error() + "; look whether it has, then ask again")
	case errors.Is(err, holdfast.ErrInvalid):
		if faults := api.FaultsOf(err); len(faults) > 0 {
			return api.Faulty(faults...)
		}
		return api.Invalid.Problem(err.Error())
	case errors.Is(err, holdfast.ErrDiskFull):
		return api.DiskFull.Problem("nothing was accepted; free some space, then send the same request again")
	case errors.Is(err, holdfast.ErrUnknown):
		log.LogAttrs(ctx, slog.LevelError, "outcome of a request unknown", slog.String("doing", doing), slog.Any("error", err))
		return api.Unknown.Problem("the store did not say whether it did this; send the same request again, with the same id: nothing is done twice").
			With("Retry-After", "5")
	case errors.Is(err, holdfast.ErrUnavailable):
		return api.Unavailable.Problem("the store takes nothing just now, and the node's health says why; send the same request again later").
			With("Retry-After", "5")
	case errors.Is(err, holdfast.ErrClosed):
		return api.Unavailable.Problem("the store is closed, because the node is stopping or has failed; send the same request again later").
			With("Retry-After", "5")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return api.Unavailable.Problem("the request ended before the store answered; send the same request again: its id makes that safe").
			With("Retry-After", "5")
	}
	log.LogAttrs(ctx, slog.LevelError, "request failed", slog.String("doing", doing), slog.Any("error", err))
	return api.Internal.Problem("the node could not " + doing + "; its log says why")
}

// refuseAt reports what a site could not do while this node is well.
func (s *Service) refuseAt(ctx context.Context, doing string, at *link.ErrSite, err error) *api.Problem {
	s.Log().LogAttrs(ctx, slog.LevelWarn, "site did not do it", slog.String("site", at.Site), slog.String("doing", doing), slog.Any("error", err))
	switch name := api.Clip(at.Site); at.Trouble {
	case link.Busy:
		return api.SiteBusy.Problem(fmt.Sprintf("site %s has too many commands in hand; nothing was done: ask again in a moment", name)).
			With("Retry-After", "5")
	case link.DiskFull:
		return api.DiskFull.Problem(fmt.Sprintf("the disk of site %s is full; nothing was done: free some space there, then ask again", name))
	case link.Unavailable:
		return api.SiteUnavailable.Problem(fmt.Sprintf("the store of site %s cannot do it now: run holdfast doctor there, check whether it was done, then ask again", name)).
			With("Retry-After", "30")
	case link.TooLarge:
		return api.SiteFailed.Problem(fmt.Sprintf("the answer of site %s is larger than the link carries: ask for fewer, or look at the site itself", name))
	case link.Unknown:
		return api.Unsupported.Problem(fmt.Sprintf("the program of site %s is older than this one and does not know the command; nothing was done: update it", name))
	case link.Failed:
	}
	return api.SiteFailed.Problem(fmt.Sprintf("site %s failed to %s; its log says why", api.Clip(at.Site), doing))
}

// missing reports that a message is not kept, or the other error that occurred.
func (s *Service) missing(ctx context.Context, doing string, id holdfast.ID, err error) *api.Problem {
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem(fmt.Sprintf("no message %s is kept here; it never was, or its retention is over", id),
			api.Fault{Field: "id", Value: api.Clip(string(id)), Problem: "is not kept here"})
	}
	return s.refuse(ctx, doing, err)
}

// parseID reads an id from a path.
func parseID(text string) (holdfast.ID, *api.Problem) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return "", api.Faulty(api.FaultsOf(err)...)
	}
	return id, nil
}
