package node

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/metrics"
)

// auditLateAfter is how far the audit log may be behind before health tells.
const auditLateAfter = time.Minute

// auditLate returns how far the audit log is behind, from what was last seen of the journal's followers.
func auditLate(list []holdfast.FollowerInfo) time.Duration {
	i := slices.IndexFunc(list, func(f holdfast.FollowerInfo) bool { return f.Name == audit.FollowerName })
	if i < 0 {
		return 0
	}
	return lag(list[i])
}

// auditLag returns how far the audit log is behind what has happened.
func (n *Node) auditLag(ctx context.Context) (time.Duration, error) {
	list, err := n.store.Followers(ctx)
	return auditLate(list), err
}

// auditFailures returns how often the audit log could not be written since the start.
func (n *Node) auditFailures() int64 {
	if n.audit == nil {
		return 0
	}
	return n.audit.Failures()
}

// auditHealth reports whether the audit log is written, signed and intact, and how often it could not be
// written (NO-14).
func (n *Node) auditHealth(add addCheck) {
	if n.audit == nil {
		return
	}
	late := time.Duration(0)
	if s := n.seen.Load(); s != nil {
		late = auditLate(s.followers)
	}
	status, detail := api.OK, fmt.Sprintf("CentralAuditWriteFailures %d", n.audit.Failures())
	if n.audit.Shared {
		detail += map[bool]string{true: "; this node writes it", false: "; another node writes it"}[n.audit.Leads()]
	}
	if late > auditLateAfter {
		status = api.Degraded
		detail += fmt.Sprintf("; %s behind: what happens is recorded as soon as the log can be written", late.Round(time.Second))
	}
	if problem := n.audit.Problem(); problem != "" {
		status = api.Degraded
		detail += "; no checkpoint is signed: " + problem
	}
	status, detail = n.watch.health(status, detail)
	add("audit log", status, detail)
}

// measuredAudit returns the numbers of the audit log.
func (n *Node) measuredAudit() metrics.Source {
	const failures, backlog = "holdfast_audit_write_failures_total", "holdfast_audit_backlog_seconds"
	return metrics.Source{
		Metrics: append([]metrics.Metric{
			{Name: failures, Help: "How often audit records could not be written, since the start. They are written later.", Counter: true},
			{Name: backlog, Help: "How far the audit log is behind what has happened."},
		}, n.watch.metrics()...),
		Read: func(see func(name string, value int64, label ...string)) {
			if n.audit == nil {
				return
			}
			see(failures, n.audit.Failures())
			if s := n.seen.Load(); s != nil {
				see(backlog, int64(auditLate(s.followers).Seconds()))
			}
			n.watch.read(see)
		},
	}
}
