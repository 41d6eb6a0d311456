package node

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/run"
)

// buildAudit makes the log of audit records, and what looks after it.
func (n *Node) buildAudit() error {
	if n.cfg.Audit.Off {
		return nil
	}
	_, shared := n.store.(holdfast.Shared)
	name := n.cfg.Node.ID
	if shared { // one log for all nodes of the database, which send under one source
		name = n.cfg.Source()
	}
	d := &audit.Describer{Site: n.cfg.Source(), Node: name, Incarnation: n.kept.Audit.Incarnation, Category: n.categoryOf}
	if n.cfg.Audit.Content == config.ContentSummary {
		d.Redact, n.answered = n.cfg.Audit.Redact, d.Answer
		d.Payload = func(ctx context.Context, id holdfast.ID) ([]byte, error) {
			r, err := n.store.Get(ctx, id)
			return r.Message.Payload, err
		}
	}
	l := &audit.Log{
		Store: n.kept.Audit, Journal: n.store, Describe: d.Describe, Site: n.cfg.Source(), Node: name, Shared: shared, Logger: n.log,
	}
	var err error
	if l.Witness, err = witnessOf(&n.cfg.Audit); err != nil {
		return err
	}
	if path := n.cfg.AuditKey(); path != "" {
		if l.Key, err = audit.OpenKey(path); err != nil {
			return err
		}
	}
	n.audit, n.watch.asked = l, make(chan struct{}, 1)
	return nil
}

// auditParts are the parts that write the audit log, and sign and verify it.
func (n *Node) auditParts() []run.Part {
	if n.audit == nil {
		return []run.Part{{Name: "audit log", Run: n.forgetAudit}}
	}
	parts := []run.Part{{Name: "audit verifier", Run: n.watchAudit}, {Name: "audit gaps", Run: n.missed}}
	if n.audit.Key != nil {
		parts = append(parts, run.Part{Name: "audit checkpoints", Run: n.audit.Checkpoints}, run.Part{Name: "audit purge", Run: n.purgeAudit})
	}
	return append(parts, run.Part{Name: "audit log", Run: n.audit.Run})
}

// forgetAudit ends the follower that an earlier start may have left: the journal would be kept for it.
func (n *Node) forgetAudit(ctx context.Context) error {
	if err := n.store.Forget(ctx, audit.FollowerName); err != nil && !errors.Is(err, holdfast.ErrNotFound) && ctx.Err() == nil {
		n.log.WarnContext(ctx, "audit log is off, and the journal is still kept for it; the next start tries again", slog.Any("error", err))
	}
	<-ctx.Done()
	return nil
}

// When the node purges its audit log by itself, and verifies all of it.
const (
	auditAfter = 10 * time.Minute // late enough that it never delays a start
	auditEvery = 24 * time.Hour
)

// purgeAudit deletes old records now and then, and not while the first verification begins.
func (n *Node) purgeAudit(ctx context.Context) error {
	for wait := 2 * auditAfter; ; wait = auditEvery {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		gone, err := n.audit.Purge(ctx, n.cfg.AuditRetention())
		if err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "audit log not purged; the next pass goes on", slog.Any("error", err))
		}
		if gone > 0 {
			n.log.InfoContext(ctx, "audit log purged", slog.Int64("records", gone))
		}
	}
}
