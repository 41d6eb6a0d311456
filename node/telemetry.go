package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/notify"
)

// siteCall says how an operation of this node stands, for central: a call of a foreign system or a
// write into its database.
func (n *Node) siteCall(ctx context.Context, id holdfast.ID) (sites.Call, bool) {
	r, err := n.store.Get(ctx, id)
	if err != nil {
		return sites.Call{}, false // it was purged, or is no message
	}
	category := n.categoryOf(r.Message.Destination)
	if category != holdfast.CategoryExternalSystem && category != holdfast.CategoryCachedDBWrite {
		return sites.Call{}, false
	}
	o := notify.OriginOf(r.Message.Headers)
	c := sites.Call{
		ID: r.Message.ID, Revision: sites.RevisionOf(&r), Node: n.cfg.Node.ID, Category: category, Destination: r.Message.Destination, Endpoint: r.Message.Endpoint,
		Status: callStatus(&r), Retries: int64(max(r.Tries-1, 0)), LastError: r.LastError, Instance: o.Instance, Script: o.Script, Execution: o.Execution,
		Created: micros(r.Created), Attempted: micros(r.LastAttempt),
	}
	if r.State != holdfast.Parked {
		c.Ended = micros(r.Settled)
	}
	return c, true
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// callStatus returns the status of an operation (SF-21).
func callStatus(r *holdfast.Record) string {
	switch {
	case r.State == holdfast.Discarded && r.Reason == holdfast.ReasonRejected:
		return "failed"
	case r.State.Final():
		return r.State.String()
	case r.Tries > 0:
		return "retrying"
	}
	return "submitted"
}

// callsKept is how long central keeps calls of sites that have ended.
const callsKept = 365 * 24 * time.Hour

// purgeCalls deletes old calls of sites now and then.
func (n *Node) purgeCalls(ctx context.Context) error {
	for {
		if _, err := n.kept.SiteCalls.PurgeCalls(ctx, callsKept); err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "calls of sites not purged", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Hour):
		}
	}
}
