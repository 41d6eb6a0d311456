package nodestore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	// handedOver finds two keys: the first one hands over to the second.
	handedOver = `SELECT size, root, note, seen FROM hf_audit_checkpoint WHERE origin = $1 AND size >= $2 AND note LIKE '%key %key %' ORDER BY size LIMIT 1`
	thinNotes  = `DELETE FROM hf_audit_checkpoint WHERE origin = $1 AND size = $2 AND note NOT LIKE '%key %key %'
		AND EXISTS (SELECT 1 FROM hf_audit_checkpoint AS o WHERE o.origin = $1 AND o.size < $2 AND o.seen > hf_now() - $3)`
	copyOwner = `SELECT coalesce(site, '') FROM hf_audit_log WHERE origin = $1`
	isOwnLog  = `SELECT 1 FROM hf_audit_log WHERE origin = $1 AND own`
)

var _ audit.PeerStore = (*Audit)(nil)

// Owner returns the site whose log this store has a copy of, by the credential with which it came; "": it has none.
func (a *Audit) Owner(ctx context.Context, origin string) (site string, err error) {
	if err = a.db.Read(ctx, copyOwner, []any{origin}, func(scan side.Scan) error { return scan(&site) }); err != nil {
		return "", fmt.Errorf("read whose log %s is: %w", origin, err)
	}
	return site, nil
}

// Following implements audit.PeerStore.
func (a *Audit) Following(ctx context.Context, origin string, size int64) (c *rows.AuditCheckpoint, err error) {
	if size > 0 { // whoever has nothing believes the key that it sees first
		err = a.db.Read(ctx, handedOver, []any{origin, size}, func(scan side.Scan) error {
			c, err = checkpointOf(origin, scan)
			return err
		})
	}
	if err == nil && c == nil {
		c, err = a.Newest(ctx, origin)
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s from %d on: %w", origin, size, err)
	}
	if c != nil && c.Size < size {
		c = nil
	}
	return c, nil
}

// Contradict implements audit.PeerStore.
func (a *Audit) Contradict(ctx context.Context, c *rows.AuditCheckpoint) error {
	if err := a.db.Change(ctx, side.Cost{}, func(tx side.Tx) error { return addCheckpoint(tx, c) }); err != nil {
		return fmt.Errorf("add checkpoint %d of %s: %w", c.Size, c.Origin, err)
	}
	return nil
}

// Witness implements audit.PeerStore.
func (a *Audit) Witness(ctx context.Context, c *rows.AuditCheckpoint, before int64) error {
	if err := a.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		own := false
		if err := tx.Read(isOwnLog, []any{c.Origin}, func(side.Scan) error { own = true; return nil }); err != nil || own {
			return err // nobody else says anything of our log
		}
		if err := addCheckpoint(tx, &rows.AuditCheckpoint{Origin: c.Origin, Size: c.Size, Root: bytes.Clone(c.Root), Note: c.Note, Seen: rows.Now}); err != nil || before == 0 || before == c.Size {
			return err
		}
		_, err := tx.Exec(thinNotes, c.Origin, before, rows.Micros(24*time.Hour))
		return err
	}); err != nil {
		return fmt.Errorf("keep checkpoint %d of %s: %w", c.Size, c.Origin, err)
	}
	return nil
}
