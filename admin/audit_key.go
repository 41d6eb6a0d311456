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
	if faults := slices.Concat(wrong, checkReason(in.Reason)); len(faults) > 0 {
		return out, api.Faulty(withoutRepeats(faults)...)
	}
	note, c, err := l.Rotate(ctx, in.Reason, Actor(ctx))
	if errors.Is(err, audit.ErrKey) {
		a.Log().LogAttrs(ctx, slog.LevelWarn, "audit key not changed", slog.Any("error", err))
		return out, api.WrongState.Problem("the file of the new key, beside audit.key, cannot be used; the node's log says why")
	}
	switch {
	case errors.Is(err, audit.ErrWitness):
		return out, api.Unavailable.Problem("the witness is away: either nothing has changed, or the change ends by itself once it is back; then sign a checkpoint, which names the key, before asking again").With("Retry-After", "60")
	case err != nil:
		return out, a.unsigned(ctx, err)
	}
	a.noted(ctx, "audit key changed", slog.String("key", c.Signer()), slog.String("reason", in.Reason))
	return checkpointOf(note, &c), nil
}
