package node

import (
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

// auditHealth reports how often the audit log could not be written, and how far it is behind (NO-14).
func (n *Node) auditHealth(add addCheck) {
	late := time.Duration(0)
	if s := n.seen.Load(); s != nil {
		late = auditLate(s.followers)
	}
	detail := fmt.Sprintf("CentralAuditWriteFailures %d", n.audit.Failures())
	if late > auditLateAfter {
		add("audit", api.Degraded, fmt.Sprintf("%s; %s behind: what happens is recorded as soon as the log can be written", detail, late.Round(time.Second)))
		return
	}
	add("audit", api.OK, detail)
}

// measuredAudit returns the numbers of the audit log.
func (n *Node) measuredAudit() metrics.Source {
	const failures, backlog = "holdfast_audit_write_failures_total", "holdfast_audit_backlog_seconds"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: failures, Help: "How often audit records could not be written, since the start. What is missing is written as soon as it is possible.", Counter: true},
			{Name: backlog, Help: "How far the audit log is behind what has happened."},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			see(failures, n.audit.Failures())
			if s := n.seen.Load(); s != nil {
				see(backlog, int64(auditLate(s.followers).Seconds()))
			}
		},
	}
}
