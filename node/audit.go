package node

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/run"
	"github.com/holdfast-mq/holdfast/metrics"
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
	l := &audit.Log{
		Store: n.kept.Audit, Journal: n.store, Describe: n.describe, Site: n.cfg.Source(), Node: name, Shared: shared, Logger: n.log,
	}
	if n.cfg.Audit.Witness != "" {
		l.Witness = audit.File(n.cfg.Audit.Witness)
	}
	if path := n.cfg.AuditKey(); path != "" {
		var err error
		if l.Key, err = audit.OpenKey(path); err != nil {
			return err
		}
	}
	n.audit = l
	return nil
}

// auditParts are the parts that write the audit log, and sign and verify it.
func (n *Node) auditParts() []run.Part {
	if n.audit == nil {
		return nil
	}
	parts := []run.Part{{Name: "audit verifier", Run: n.verifyAudit}}
	if n.audit.Key != nil {
		parts = append(parts, run.Part{Name: "audit checkpoints", Run: n.audit.Checkpoints})
	}
	return append(parts, run.Part{Name: "audit log", Run: n.audit.Run})
}

// When the node verifies its audit log by itself.
const (
	auditAfter = 10 * time.Minute // late enough that it never delays a start
	auditEvery = 24 * time.Hour
)

// verifyAudit verifies all logs now and then, and tells when the result changes.
func (n *Node) verifyAudit(ctx context.Context) error {
	o := audit.VerifyOptions{Witness: n.audit.Witness}
	if n.audit.Key != nil {
		o.Keys = []audit.Public{n.audit.Key.Public()}
	}
	told := audit.Intact
	for wait := auditAfter; ; wait = auditEvery {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		report, err := audit.Verify(ctx, n.kept.Audit, o)
		if err != nil {
			if ctx.Err() != nil {
				continue // it ends above
			}
			n.log.WarnContext(ctx, "audit log not verified", slog.Any("error", err))
			continue
		}
		n.audited.Store(&report)
		if report.Status != told && report.Status == audit.Broken {
			for _, l := range report.Logs {
				if l.Fault != "" {
					n.log.ErrorContext(ctx, "the audit log is not what was written", slog.String("log", l.Origin), slog.String("fault", string(l.Fault)),
						slog.Int64("record", l.Seq), slog.String("detail", l.Detail))
				}
			}
		}
		told = report.Status
	}
}

// auditHealth reports whether the log is written, signed and intact.
func (n *Node) auditHealth(add addCheck) {
	if n.audit == nil {
		return
	}
	if problem := n.audit.Problem(); problem != "" {
		add("audit log", api.Degraded, "no checkpoint is signed: "+problem)
		return
	}
	r := n.audited.Load()
	if r == nil {
		return
	}
	for _, l := range r.Logs {
		if l.Fault != "" {
			add("audit log", api.Degraded, fmt.Sprintf("%s is not what was written: %s at record %d: %s", l.Origin, l.Fault, l.Seq, l.Detail))
		}
	}
}

// measuredAudit returns the numbers of the audit log.
func (n *Node) measuredAudit() metrics.Source {
	const intact, failures = "holdfast_audit_intact", "holdfast_audit_write_failures_total"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: intact, Help: "1 if the audit log was what was written when the node verified it last, 0 if not. Absent until then."},
			{Name: failures, Help: "How often audit records could not be written. They are written later.", Counter: true},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			if n.audit == nil {
				return
			}
			see(failures, n.audit.Failures())
			if r := n.audited.Load(); r != nil {
				whole := int64(1)
				if r.Status == audit.Broken {
					whole = 0
				}
				see(intact, whole)
			}
		},
	}
}

// describe makes audit records of calls of the API.
func (n *Node) describe(ctx context.Context, page []holdfast.Entry) (list []audit.Record, err error) {
	incarnation, err := n.kept.Audit.Incarnation(ctx)
	if err != nil {
		return nil, err
	}
	for i := range page {
		e := &page[i]
		if e.Kind != holdfast.Called {
			continue
		}
		r := audit.Record{
			ID: holdfast.ID(fmt.Sprintf("%s-%d", incarnation, e.Seq)), Occurred: e.At, Channel: audit.APIInbound, Kind: audit.APICall, Status: audit.Success,
			Site: n.cfg.Source(), Node: n.cfg.Node.ID, Actor: e.Actor, Target: e.Subject, Error: e.Error, Extra: json.RawMessage(e.Detail),
		}
		if r.HTTP, _ = strconv.Atoi(e.Code); e.Error != "" {
			r.Status = audit.Failed
		}
		list = append(list, r)
	}
	return list, nil
}
