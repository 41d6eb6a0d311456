package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// Limits of what an erasure looks for, in bytes. An address that is shorter would be found in the values of others.
const (
	leastPerson = 3
	mostValue   = audit.MaxErrorSummary
)

// Erase deletes personal values of the node's audit logs. The records, and all that proves them, stay. The same request goes on
// where an earlier one was cut off.
func (a Audit) Erase(ctx context.Context, in *api.AuditErasure, wrong ...api.Fault) (out api.AuditErased, err error) {
	if _, p := a.log(false); p != nil {
		return out, p
	}
	e := audit.Erasure{Person: in.Person, Value: in.Value, DespiteHold: in.DespiteHold, DryRun: in.DryRun, Reason: in.Reason, Actor: Actor(ctx), Uplink: a.Shipping != nil}
	faults := slices.Concat(wrong, checkReason(in.Reason))
	given := 0
	for _, text := range []string{in.Person, in.Value, in.Record} {
		if text != "" {
			given++
		}
	}
	if given != 1 {
		faults = append(faults, api.Fault{Field: "person", Problem: "say one of person, value and record"})
	}
	if in.Person != "" && len(in.Person) < leastPerson {
		faults = append(faults, api.Fault{Field: "person", Problem: fmt.Sprintf("is too short to be an address: it has less than %d bytes", leastPerson)})
	}
	if len(in.Value) > mostValue {
		faults = append(faults, api.Fault{Field: "value", Problem: fmt.Sprintf("no value has more than %d bytes", mostValue)})
	}
	faults = append(faults, checkLine("person", in.Person, audit.MaxText)...)
	for i := range faults {
		if faults[i].Field != "reason" && faults[i].Field != "record" {
			faults[i].Value = "" // the answer to a wrong request must not spread what it is to erase
		}
	}
	if len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	if in.Record != "" {
		f, err := a.find(ctx, in.Record)
		if err != nil {
			return out, err
		}
		e.Record = f.ID
	}
	sum, err := audit.Erase(ctx, a.Records, &e)
	out = api.AuditErased{Records: sum.Records, Values: sum.Values, Held: sum.Held}
	if !in.DryRun {
		a.noted(ctx, "values of the audit log erased", slog.Int64("records", out.Records), slog.Int64("values", out.Values), slog.Int64("held", out.Held), slog.String("reason", in.Reason))
	}
	switch {
	case errors.Is(err, audit.ErrHeld):
		return out, api.WrongState.Problem(fmt.Sprintf("a hold was made meanwhile: %d values went before; look at the holds, and ask again", out.Values))
	case errors.Is(err, holdfast.ErrNotFound):
		return out, api.NotFound.Problem("the record was purged meanwhile")
	case err != nil:
		return out, a.refuse(ctx, "erase values of the audit log", err)
	}
	wait, err := a.Records.Unconfirmed(ctx)
	if err != nil {
		return out, a.refuse(ctx, "count erasures that are not confirmed", err)
	}
	for _, u := range wait {
		out.Unconfirmed = append(out.Unconfirmed, api.AuditUnconfirmed{Site: u.Site, Values: u.Values, Since: u.Since})
	}
	return out, nil
}
