package admin

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// Rotate hands over to another signing key. It returns the checkpoint that both have signed.
func (a Audit) Rotate(ctx context.Context, in *api.AuditRotation, wrong ...api.Fault) (out api.AuditCheckpoint, err error) {
	l, p := a.log(true)
	if p != nil {
		return out, p
	}
	faults := slices.Concat(wrong, checkReason(in.Reason))
	var from *audit.Public
	if in.From != "" {
		key, err := audit.ParsePublic(in.From)
		if from = &key; err != nil {
			faults = append(faults, api.Fault{Field: "from", Value: api.Clip(in.From), Problem: "is not a verifier key: NAME+HASH+KEY, as a checkpoint names it"})
		}
	}
	if len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	note, c, err := l.Rotate(ctx, from, in.Reason, Actor(ctx))
	if errors.Is(err, audit.ErrKey) {
		a.Log().LogAttrs(ctx, slog.LevelWarn, "audit key not changed", slog.Any("error", err))
		return out, api.WrongState.Problem("the file of the new key, beside audit.key, cannot be used; the node's log says why")
	}
	switch {
	case errors.Is(err, audit.ErrOtherKey):
		return out, api.WrongState.Problem("the key to be replaced, which from names, does not sign, and has not handed over; a checkpoint names the key that signs")
	case errors.Is(err, audit.ErrWitness):
		return out, api.Unavailable.Problem("the witness is away: either nothing has changed, or the change ends by itself once it is back; asked again with the same from, the key changes once").With("Retry-After", "60")
	case err != nil:
		return out, a.unsigned(ctx, err)
	}
	a.noted(ctx, "audit key changed", slog.String("key", c.Signer()), slog.String("reason", in.Reason))
	return checkpointOf(note, &c), nil
}
