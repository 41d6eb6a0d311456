package admin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// AuditVerifier verifies the node's audit logs. Its methods may be called concurrently.
type AuditVerifier interface {
	// Verified returns what the last verification found, and when it ended; the zero time: none has. busy: one is
	// under way or asked for.
	Verified() (r audit.Report, at time.Time, busy bool)
	// Verify asks for a verification of all records, which begins at once or after the one that is under way.
	Verify()
}

// Integrity returns whether the audit logs are what was written and signed, as the last verification found it.
func (a Audit) Integrity(ctx context.Context) (out api.AuditIntegrity, err error) {
	if p := a.verifier(ctx); p != nil {
		return out, p
	}
	report, at, busy := a.Verifier.Verified()
	out = api.AuditIntegrity{Verified: instant(at), Verifying: busy, Verdict: string(report.Status), Problem: a.AuditLog.Problem()}
	for i := range report.Logs {
		l := &report.Logs[i]
		out.Logs = append(out.Logs, api.AuditLogStatus{
			Log: l.Origin, Own: l.Own, Verdict: string(l.Status), First: l.First, Records: l.Size, Anchored: l.Anchored,
			Witnessed: l.Witnessed, Witness: instant(l.WitnessedAt), Fault: string(l.Fault), Record: l.Seq, Detail: l.Detail,
		})
	}
	slices.SortStableFunc(out.Logs, func(a, b api.AuditLogStatus) int { return cmp.Compare(rank(b.Own), rank(a.Own)) })
	out.Signed, err = a.newest(ctx)
	return out, err
}

func rank(own bool) int {
	if own {
		return 1
	}
	return 0
}

// newest returns the newest checkpoint of the node's own log; nil: there is none.
func (a Audit) newest(ctx context.Context) (*api.AuditCheckpoint, error) {
	origin, err := a.AuditLog.Origin(ctx)
	if err != nil {
		return nil, a.refuse(ctx, "read the name of the audit log", err)
	}
	row, err := a.Records.Newest(ctx, origin)
	if err != nil {
		return nil, a.refuse(ctx, "read the newest checkpoint", err)
	}
	if row == nil {
		return nil, nil //nolint:nilnil // there is none, as the comment says
	}
	c, err := audit.ParseCheckpoint(row.Note)
	if err != nil { // the verification says so, too
		a.Log().LogAttrs(ctx, slog.LevelWarn, "newest audit checkpoint not readable", slog.Any("error", err))
		return nil, nil //nolint:nilnil // what cannot be read proves nothing
	}
	out := checkpointOf(row.Note, &c)
	return &out, nil
}

// Verify asks the node to verify all records of its audit logs. Integrity tells of the result.
func (a Audit) Verify(ctx context.Context) error {
	if p := a.verifier(ctx); p != nil {
		return p
	}
	a.Verifier.Verify()
	a.noted(ctx, "verification of the audit log asked for by a person")
	return nil
}

// verifier refuses what is asked about whole logs, if there are none or the caller's scope does not have them.
func (a Audit) verifier(ctx context.Context) *api.Problem {
	if _, p := a.log(false); p != nil {
		return p
	}
	if a.Verifier == nil {
		return api.Unsupported.Problem("this node does not verify its audit log by itself; holdfast audit verify does")
	}
	if !Granted(ctx).Whole() {
		return api.RoleLacking.Problem(fmt.Sprintf("the token %q is narrowed to some sites, destinations or topics, and this is about whole logs", Actor(ctx)))
	}
	return nil
}
