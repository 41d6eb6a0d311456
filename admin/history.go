package admin

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
)

// History returns what the nodes of this store did in each minute since then, and at most in the last 25 hours.
func (n Node) History(ctx context.Context, since time.Time) (h api.History, err error) {
	if n.Minutes == nil {
		return h, api.Unsupported.Problem("this node does not keep counts of minutes")
	}
	list, err := n.Minutes.Minutes(ctx, since)
	if err != nil {
		return h, n.refuse(ctx, "read the counts of minutes", err)
	}
	h.Minutes = make([]api.Minute, len(list))
	for i := range list {
		m := &list[i]
		h.Minutes[i] = api.Minute{
			At: m.At, Node: m.Node, Seconds: int64(m.Took / time.Second),
			Delivered: m.Delivered, Failed: m.Failed, Parked: m.Parked, Expired: m.Expired, Notified: m.Notified, Received: m.Received,
			Waiting: m.Waiting, ParkedNow: m.ParkedNow, OldestSeconds: m.Oldest.Seconds(), NotifyWaiting: m.NotifyWaiting, NotifyParkedNow: m.NotifyParkedNow,
		}
	}
	return h, nil
}
