package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// mostReason is the longest reason that an entry of the journal has room for beside a filter, in bytes.
const mostReason = 1 << 10

// Hold keeps the records that a filter selects from being purged. With dryRun it only counts them. The same hold
// made again is the same hold.
func (a Audit) Hold(ctx context.Context, in *api.NewAuditHold, wrong ...api.Fault) (out api.AuditHold, err error) {
	if _, p := a.log(false); p != nil {
		return out, p
	}
	filter, faults := filterOf(&in.Filter)
	for i := range faults {
		faults[i].Field = "filter." + faults[i].Field
	}
	faults = slices.Concat(wrong, faults, checkName(in.Name), checkReason(in.Reason))
	if filter == (audit.Filter{}) {
		faults = append(faults, api.Fault{Field: "filter", Problem: "is empty, and would keep the whole log: name a time at least"})
	}
	if size := len(fmt.Sprint(in.Filter.Map())); size > mostReason {
		faults = append(faults, api.Fault{Field: "filter", Value: fmt.Sprintf("%d bytes", size), Problem: fmt.Sprintf("at most %d bytes fit", mostReason)})
	}
	if len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	out = api.AuditHold{Name: in.Name, Filter: in.Filter, Reason: in.Reason}
	h := audit.Hold{Name: in.Name, Filter: filter, Reason: in.Reason, Actor: Actor(ctx)}
	if !in.DryRun {
		if out, err = a.hold(ctx, &h); err != nil {
			return out, err
		}
	}
	if out.Records, out.More, err = a.count(ctx, &filter); err != nil && in.DryRun {
		return out, a.refuse(ctx, "count the audit log", err)
	}
	return out, nil // what was made is made, counted or not
}

// hold makes a hold, unless it was made before.
func (a Audit) hold(ctx context.Context, h *audit.Hold) (out api.AuditHold, err error) {
	err = a.Records.Hold(ctx, h)
	if err != nil && !errors.Is(err, holdfast.ErrConflict) {
		return out, a.refuse(ctx, "make the hold", err)
	}
	if err == nil {
		a.noted(ctx, "audit hold made", slog.String("hold", h.Name), slog.String("reason", h.Reason))
	}
	list, err := a.Records.Holds(ctx)
	if err != nil {
		return out, a.refuse(ctx, "read the hold", err)
	}
	for i := range list {
		if of := &list[i]; of.Name == h.Name && of.Filter == h.Filter && of.Reason == h.Reason {
			return holdOf(of), nil
		}
	}
	return out, api.Conflict.Problem(fmt.Sprintf("there is another hold %q already; take another name, or release it first", h.Name),
		api.Fault{Field: "name", Value: h.Name, Problem: "is taken"})
}

// Bounds of counting what a filter selects.
const (
	countFor  = 5 * time.Second
	countMost = audit.MaxCount
)

// count counts the records that a filter selects, for a while. Those that a purge has on record go, held or not.
func (a Audit) count(ctx context.Context, f *audit.Filter) (n int64, more bool, err error) {
	logs, err := a.Records.Logs(ctx)
	if err != nil {
		return 0, false, err
	}
	cut := map[string]int64{}
	for _, l := range logs {
		cut[l.Origin] = l.Cut
	}
	q := audit.Query{Filter: *f, Limit: audit.MaxPage}
	for began := time.Now(); ; {
		page, err := a.Records.Query(ctx, q)
		for i := range page.Records {
			if r := &page.Records[i]; r.Seq > cut[r.Origin] {
				n++
			}
		}
		if q.After = page.Next; err != nil || q.After == "" || n >= countMost || time.Since(began) > countFor {
			return n, q.After != "", err
		}
	}
}

// Holds lists the holds.
func (a Audit) Holds(ctx context.Context) (out api.AuditHolds, err error) {
	list, err := a.Records.Holds(ctx)
	if err != nil {
		return out, a.refuse(ctx, "list the holds", err)
	}
	out.Holds = make([]api.AuditHold, len(list))
	for i := range list {
		out.Holds[i] = holdOf(&list[i])
	}
	return out, nil
}

func holdOf(h *audit.Hold) api.AuditHold {
	f := &h.Filter
	return api.AuditHold{Name: h.Name, Reason: h.Reason, Actor: h.Actor, Since: h.Since.UTC(), Filter: api.AuditFilter{
		From: said(f.From), To: said(f.Until), Site: f.Site, Node: f.Node, Instance: f.Instance, Actor: f.Actor, Target: f.Target, Channel: string(f.Channel),
		Kind: string(f.Kind), Status: string(f.Status), CorrelationID: f.Correlation, Errors: f.ErrorsOnly,
	}}
}

func said(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Release ends a hold.
func (a Audit) Release(ctx context.Context, name string, in *api.AuditRelease, wrong ...api.Fault) error {
	if _, p := a.log(false); p != nil {
		return p
	}
	if faults := slices.Concat(wrong, checkReason(in.Reason)); len(faults) > 0 {
		return api.Faulty(withoutRepeats(faults)...)
	}
	err := a.Records.Release(ctx, name, in.Reason, Actor(ctx))
	if errors.Is(err, holdfast.ErrNotFound) {
		return api.NotFound.Problem(fmt.Sprintf("there is no hold %q", api.Clip(name)), api.Fault{Field: "name", Value: api.Clip(name), Problem: "is not the name of a hold"})
	}
	if err != nil {
		return a.refuse(ctx, "end the hold", err)
	}
	a.noted(ctx, "audit hold released", slog.String("hold", name), slog.String("reason", in.Reason))
	return nil
}

func checkName(name string) []api.Fault {
	if name == "" {
		return []api.Fault{{Field: "name", Problem: "is missing"}}
	}
	return checkLine("name", name, 64)
}

func checkReason(reason string) []api.Fault {
	if reason == "" {
		return []api.Fault{{Field: "reason", Problem: "is missing: it is in the log for good"}}
	}
	return checkLine("reason", reason, mostReason)
}
