package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link"
)

// refuse turns an error of the store into a problem. Its own text goes to the
// log, not to the client, unless it is about what the client sent.
func (s *Server) refuse(ctx context.Context, doing string, err error) *Problem {
	if away, ok := errors.AsType[*link.ErrNotReachable](err); ok {
		return kindAway.problem(away.Error()+"; nothing was done").with("Retry-After", "30")
	}
	switch {
	case errors.Is(err, link.ErrNoAnswer):
		return kindSilent.problem(link.ErrNoAnswer.Error() + "; look whether it has, then ask again")
	case errors.Is(err, holdfast.ErrInvalid):
		if faults := faultsOf(err); len(faults) > 0 {
			return invalid(faults...)
		}
		return kindInvalid.problem(err.Error())
	case errors.Is(err, holdfast.ErrDiskFull):
		return kindDiskFull.problem("nothing was accepted; free some space, then send the same request again")
	case errors.Is(err, holdfast.ErrUnavailable):
		return kindUnavailable.problem("the store takes nothing just now, and the node's health says why; send the same request again later").
			with("Retry-After", "5")
	case errors.Is(err, holdfast.ErrClosed):
		return kindUnavailable.problem("the store is closed, because the node is stopping or has failed; send the same request again later").
			with("Retry-After", "5")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return kindUnavailable.problem("the request ended before the store answered; send the same request again: its id makes that safe").
			with("Retry-After", "5")
	}
	s.log().LogAttrs(ctx, slog.LevelError, "request failed", slog.String("doing", doing), slog.Any("error", err))
	return kindInternal.problem("the node could not " + doing + "; its log says why")
}

// missing says that a message is not kept, or what else went wrong.
func (s *Server) missing(ctx context.Context, doing string, id holdfast.ID, err error) *Problem {
	if errors.Is(err, holdfast.ErrNotFound) {
		return kindNotFound.problem(fmt.Sprintf("no message %s is kept here; it never was, or its retention is over", id),
			Fault{Field: "id", Value: clip(string(id)), Problem: "is not kept here"})
	}
	return s.refuse(ctx, doing, err)
}

// parseID reads an id of a path.
func parseID(text string) (holdfast.ID, *Problem) {
	id, err := holdfast.ParseID(text)
	if err != nil {
		return "", invalid(faultsOf(err)...)
	}
	return id, nil
}
