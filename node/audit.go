package node

import (
	"context"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
)

// buildAudit makes the log of audit records.
func (n *Node) buildAudit() {
	_, shared := n.store.(holdfast.Shared)
	name := n.cfg.Node.ID
	if shared { // one log for all nodes of the database, which send under one source
		name = n.cfg.Source()
	}
	d := &audit.Describer{Site: n.cfg.Source(), Node: name, Incarnation: n.kept.Audit.Incarnation, Category: n.categoryOf}
	n.audit = &audit.Log{
		Store: n.kept.Audit, Journal: n.store, Describe: d.Describe, Site: n.cfg.Source(), Node: name, Shared: shared, Logger: n.log,
	}
}

// auditLag returns how far the audit log is behind what has happened.
func (n *Node) auditLag(ctx context.Context) (time.Duration, error) {
	list, err := n.store.Followers(ctx)
	return auditLate(list), err
}
