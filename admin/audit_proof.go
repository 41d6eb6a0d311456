package admin

import (
	"context"
	"errors"

	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/audit"
)

// log returns the node's own log, which has a key if signs is set.
func (a Audit) log(signs bool) (*audit.Log, *api.Problem) {
	switch {
	case a.AuditLog == nil:
		return nil, api.Unsupported.Problem("this node keeps no audit log: audit.off is set")
	case signs && a.AuditLog.Key == nil:
		return nil, api.Unsupported.Problem("this node signs no audit log: it has no audit.key")
	}
	return a.AuditLog, nil
}

// Checkpoint signs what the node's own log has now, and returns that.
func (a Audit) Checkpoint(ctx context.Context) (out api.AuditCheckpoint, err error) {
	l, p := a.log(true)
	if p != nil {
		return out, p
	}
	note, c, err := l.Signed(ctx)
	if err != nil {
		return out, a.unsigned(ctx, err)
	}
	return checkpointOf(note, &c), nil
}

func checkpointOf(note string, c *audit.Checkpoint) api.AuditCheckpoint {
	return api.AuditCheckpoint{Log: c.Origin, Records: c.Size, Time: c.Time, Key: c.Signer(), Note: note}
}

// unsigned explains why the log could not be signed.
func (a Audit) unsigned(ctx context.Context, err error) *api.Problem {
	switch {
	case errors.Is(err, audit.ErrRewritten):
		return api.WrongState.Problem(err.Error() + ": verify it")
	case errors.Is(err, audit.ErrEmpty):
		return api.WrongState.Problem("the audit log has no record yet")
	case errors.Is(err, audit.ErrWitness):
		return api.Unavailable.Problem("the checkpoint is signed, and the witness could not keep it; it gets it as soon as it can").With("Retry-After", "60")
	}
	return a.refuse(ctx, "sign the audit log", err)
}

// Prove returns the proof that a record is in the log. If no checkpoint covers the record yet, it signs one.
func (a Audit) Prove(ctx context.Context, id string) (out api.AuditProof, err error) {
	f, err := a.find(ctx, id)
	if err != nil {
		return out, err
	}
	proof, err := audit.Prove(ctx, a.Records, &f)
	if l, p := a.log(true); errors.Is(err, audit.ErrNotSigned) && p == nil {
		if err = l.Checkpoint(ctx); err != nil && !errors.Is(err, audit.ErrWitness) {
			return out, a.unsigned(ctx, err)
		}
		proof, err = audit.Prove(ctx, a.Records, &f)
	}
	switch {
	case errors.Is(err, audit.ErrNotSigned):
		return out, api.WrongState.Problem("no signed checkpoint covers the record yet, and this node cannot sign one")
	case errors.Is(err, audit.ErrNoBatch):
		return out, api.WrongState.Problem("this node no longer has what links the record to its own log, or lacks the record before it; prove it at its site")
	case err != nil:
		return out, a.refuse(ctx, "prove the audit record", err)
	}
	out = api.AuditProof{
		Version: proof.Version, Leaf: proof.Leaf, Index: proof.Index, Size: proof.Size, Hashes: proof.Hashes, Checkpoint: proof.Checkpoint, HandOvers: proof.HandOvers,
	}
	if c := proof.Copy; c != nil {
		out.Copy = &api.AuditCopyProof{Log: c.Log, Seq: c.Seq, Leaf: c.Leaf, Before: c.Before, Following: c.Following}
	}
	return out, nil
}
