package node

import (
	"time"

	"github.com/holdfast-mq/holdfast/admin"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/span"
)

// keeps lists how long this node keeps what, of the parts that its service has.
func (n *Node) keeps(of *admin.Service) (list []api.Kept) {
	c, r := n.cfg, &n.cfg.Retention
	add := func(what, key string, d time.Duration) {
		text := "forever"
		if d != config.Never {
			text = span.Format(d)
		}
		list = append(list, api.Kept{What: what, For: text, Key: key})
	}
	add("Messages that arrived", "retention.delivered", r.Delivered)
	add("Messages that are parked", "retention.parked", r.Parked)
	add("Messages that expired", "retention.expired", r.Expired)
	add("Messages that were discarded", "retention.discarded", r.Discarded)
	add("Ids of received messages", "retention.inbox", r.Inbox)
	add("What became of calls", "retention.tracking", r.Tracking)
	add("Lines of activity", "retention.activity", r.Activity)
	if of.Notify != nil {
		add("Notifications that have ended", "notifications.retention", c.Notifications.Retention)
	}
	if of.Hub != nil {
		add("Events", "webhooks.retention", c.Webhooks.Retention)
	}
	if n.audit != nil {
		add("Audit records", "audit.retention", c.AuditRetention())
	}
	return list
}
