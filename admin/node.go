package admin

import (
	"cmp"
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
)

// Node offers the node itself.
type Node struct{ *Service }

// Backup writes a copy of the database. It may take long.
func (n Node) Backup(ctx context.Context, req *api.NewBackup, wrong ...api.Fault) (made api.Backup, err error) {
	if req.Folder == "" && len(wrong) == 0 {
		wrong = []api.Fault{{Field: "folder", Problem: "is missing; name a folder on the machine of the node"}}
	}
	if len(wrong) > 0 {
		return made, api.Faulty(wrong...)
	}
	if n.Service.Backup == nil {
		return made, api.Unsupported.Problem("this node cannot copy its database")
	}
	path, size, err := n.Service.Backup(ctx, req.Folder)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return made, api.Unsupported.Problem(err.Error())
	case errors.Is(err, holdfast.ErrDiskFull):
		return made, api.DiskFull.Problem(err.Error())
	case err != nil:
		return made, n.refuse(ctx, "make a backup", err)
	}
	return api.Backup{Path: path, Size: size}, nil
}

// AcknowledgeHistory records that people know about the database's history.
func (n Node) AcknowledgeHistory(ctx context.Context) error {
	if n.Acknowledge == nil {
		return api.Unsupported.Problem("this node keeps everything in its own file, which has only one history")
	}
	if err := n.Acknowledge(ctx); err != nil {
		return n.refuse(ctx, "acknowledge the history", err)
	}
	n.noted(ctx, "history of the database acknowledged by a person")
	return nil
}

// Health returns how the node fares.
func (n Node) Health() api.Health {
	h := api.Health{Status: api.OK}
	if n.Service.Health != nil {
		h = n.Service.Health()
	}
	counts := n.Outbox.Counts()
	h.Status, h.Node, h.Version = cmp.Or(h.Status, api.OK), n.Name, n.Program()
	h.Pending, h.Parked = counts.Pending, counts.Parked
	return h
}

// OutboxStats returns the numbers of the outbox.
func (n Node) OutboxStats() api.OutboxStats {
	c := n.Outbox.Counts()
	return api.OutboxStats{Pending: c.Pending, Sending: c.Claimed, Failed: c.Parked, Expired: c.Expired}
}

// InboxStats returns the numbers of the inbox.
func (n Node) InboxStats() api.InboxStats {
	c := n.Outbox.Counts()
	stats := api.InboxStats{Size: c.Inbox, Kept: c.Kept, Received: c.Received, Duplicates: c.Duplicates}
	if c.Received > 0 {
		stats.DuplicateRate = float64(c.Duplicates) / float64(c.Received)
	}
	return stats
}
