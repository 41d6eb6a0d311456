package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/metrics"
)

// auditWatch is what the node finds when it verifies its own audit logs.
type auditWatch struct {
	last  atomic.Pointer[auditFound] // nil: nothing was verified yet
	told  audit.Verdict              // that was logged last; empty: none
	busy  atomic.Int32               // verifications that are under way or asked for
	asked chan struct{}              // has room for one
}

// Verified returns what the last verification found.
func (w *auditWatch) Verified() (r audit.Report, at time.Time, busy bool) {
	if f := w.last.Load(); f != nil {
		r, at = f.Report, f.at
	}
	return r, at, w.busy.Load() > 0
}

// Verify asks for a verification of all records.
func (w *auditWatch) Verify() {
	w.busy.Add(1)
	select {
	case w.asked <- struct{}{}:
	default: // it is asked for already
		w.busy.Add(-1)
	}
}

// auditFound is the result of a verification.
type auditFound struct {
	audit.Report

	at time.Time
}

// records counts those that the verification vouches for.
func (f *auditFound) records() (n int64) {
	for _, l := range f.Logs {
		if l.Fault == "" {
			n += l.Size - l.Missing
		}
	}
	return n
}

// watchAudit verifies what is new in all logs now and then, and everything once a day and whenever a person asks for it,
// since what is done to an old record shows only then.
func (n *Node) watchAudit(ctx context.Context) error {
	every := n.cfg.Audit.Verify
	var whole time.Time
	var progress audit.Progress
	for wait := min(auditAfter, every); ; wait = every {
		t := time.NewTimer(wait)
		if every == config.Never {
			t.Stop()
		}
		asked := false
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-n.watch.asked:
			t.Stop()
			asked = true
		case <-t.C:
			n.watch.busy.Add(1)
		}
		doubted := n.others != nil && n.others.Doubt() != "" // about records that were verified, perhaps
		if asked || doubted || time.Since(whole) >= auditEvery {
			whole, progress = time.Now(), audit.Progress{}
		}
		n.verifyAudit(ctx, &progress)
		n.watch.busy.Add(-1)
	}
}

// verifyAudit verifies what is new, and tells when the result is another one.
func (n *Node) verifyAudit(ctx context.Context, progress *audit.Progress) {
	o := audit.VerifyOptions{Witness: n.witnesses(), Progress: progress}
	if n.audit.Key != nil {
		o.Keys = []audit.Public{n.audit.Key.Public()}
	}
	report, err := audit.Verify(ctx, n.kept.Audit, o)
	if err != nil {
		if ctx.Err() == nil {
			n.log.WarnContext(ctx, "audit log not verified", slog.Any("error", err))
		}
		return
	}
	n.watch.last.Store(&auditFound{report, time.Now()})
	n.tellAudit(ctx, &report)
}

// tellAudit logs a result that is another one than before. A node that has just started has not signed what is new.
func (n *Node) tellAudit(ctx context.Context, r *audit.Report) {
	was := n.watch.told
	if r.Status == was || r.Status == audit.Unanchored && time.Since(n.started) < auditAfter {
		return
	}
	n.watch.told = r.Status
	switch r.Status {
	case audit.Intact:
		if was != "" {
			n.log.InfoContext(ctx, "audit log is intact and signed")
		}
	case audit.Unanchored:
		for _, l := range r.Logs {
			if l.Own && l.Status == r.Status {
				n.log.WarnContext(ctx, "audit log is intact, and not all of it is anchored", slog.String("log", l.Origin), slog.String("detail", l.Detail))
			}
		}
	case audit.Broken:
		for _, l := range r.Logs {
			if l.Fault != "" {
				n.log.ErrorContext(ctx, "the audit log is not what was written", slog.String("log", l.Origin), slog.String("fault", string(l.Fault)),
					slog.Int64("record", l.Seq), slog.String("detail", l.Detail))
			}
		}
	}
}

// health adds the result of the last verification to what is said of the audit log.
func (w *auditWatch) health(status, detail string) (newStatus, newDetail string) {
	f := w.last.Load()
	if f == nil {
		return status, detail
	}
	detail += fmt.Sprintf("; verified at %s: %s", f.at.UTC().Format(time.RFC3339), f.Status)
	for _, l := range f.Logs {
		switch {
		case l.Fault != "":
			status = api.Degraded
			detail += fmt.Sprintf("; %s is not what was written: %s at record %d: %s", l.Origin, l.Fault, l.Seq, l.Detail)
		case l.Own && l.Detail != "":
			detail += "; " + l.Detail
		}
	}
	return status, detail
}

// Metrics of the verification.
const (
	auditIntact   = "holdfast_audit_intact"
	auditVerified = "holdfast_audit_verified_records"
	auditSince    = "holdfast_audit_verified_seconds"
)

func (w *auditWatch) metrics() []metrics.Metric {
	return []metrics.Metric{
		{Name: auditIntact, Help: "1 if the audit log was what was written when the node verified it last, 0 if not. Absent until then."},
		{Name: auditVerified, Help: "Records of the audit logs that the last verification vouches for. Absent until then."},
		{Name: auditSince, Help: "How long ago the last verification of the audit logs ended. Absent until then."},
	}
}

func (w *auditWatch) read(see func(name string, value int64, label ...string)) {
	f := w.last.Load()
	if f == nil {
		return
	}
	whole := int64(1)
	if f.Status == audit.Broken {
		whole = 0
	}
	see(auditIntact, whole)
	see(auditVerified, f.records())
	see(auditSince, int64(time.Since(f.at).Seconds()))
}
