package nodestore

import (
	"bytes"
	"context"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	findLog  = `SELECT log FROM hf_audit_log WHERE origin = $1`
	lastLog  = `SELECT coalesce(max(log), 0) FROM hf_audit_log`
	lastUsed = `SELECT log FROM hf_audit WHERE log > $1 ORDER BY log DESC LIMIT 1` // by records of a log whose row was lost

	takeLease = `INSERT INTO hf_meta AS m (key, value) VALUES ('audit', hf_now() + $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value
		WHERE CAST(m.value AS bigint) < hf_now() OR CAST(m.value AS bigint) = $1 OR CAST(m.value AS bigint) > hf_now() + $2 + $2`
	readLease = `SELECT CAST(value AS bigint) FROM hf_meta WHERE key = 'audit'`

	standing     = `SELECT count(*) FROM hf_audit WHERE log = $1`
	lastRecord   = `SELECT seq FROM hf_audit WHERE log = $1 ORDER BY seq DESC LIMIT 1`
	auditRecords = `SELECT seq, leaf, hash, id, at, channel, kind, status, failed, site, node, coalesce(instance, ''), coalesce(actor, ''),
		coalesce(target, ''), coalesce(corr, '') FROM hf_audit WHERE log = $1 AND seq > $2 ORDER BY seq LIMIT $3`
	auditValues      = `SELECT seq, field, salt, value FROM hf_audit_value WHERE log = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq, field`
	auditTile        = `SELECT hashes FROM hf_audit_tile WHERE log = $1 AND level = $2 AND number = $3`
	auditGaps        = `SELECT first, last, hash FROM hf_audit_gap WHERE log = $1 ORDER BY first`
	auditCheckpoints = `SELECT size, root, note, seen FROM hf_audit_checkpoint WHERE origin = $1 AND size > $2 ORDER BY size LIMIT $3`
	auditHandOvers   = `SELECT note FROM hf_audit_checkpoint WHERE origin = $1 AND note LIKE '%key %key %' ORDER BY size`
	largerNote       = `SELECT 1 FROM hf_audit_checkpoint WHERE origin = $1 AND size > $2 LIMIT 1`
	lockOwn          = `SELECT log FROM hf_audit_log WHERE origin = $1 FOR UPDATE` // one checkpoint after the other
	newestCheckpoint = `SELECT size, root, note, seen FROM hf_audit_checkpoint WHERE origin = $1 ORDER BY size DESC LIMIT 1`
)

// Audit keeps logs of audit records.
type Audit struct{ db side.Store }

var _ audit.Store = (*Audit)(nil)

// Incarnation implements audit.Store.
func (a *Audit) Incarnation(ctx context.Context) (string, error) { return (*Sites)(a).Incarnation(ctx) }

// OpenLog implements audit.Store.
func (a *Audit) OpenLog(ctx context.Context, origin string, own bool) (l *rows.AuditLog, err error) {
	if l, err = a.findLog(ctx, origin); l != nil || err != nil {
		return l, err
	}
	err = a.db.Change(ctx, side.Cost{Complete: true}, func(tx side.Tx) error {
		known := false
		if err := tx.Read(findLog, []any{origin}, func(side.Scan) error { known = true; return nil }); err != nil || known {
			return err
		}
		number, err := nextLog(tx)
		if err != nil {
			return err
		}
		// Another node may have been faster: then this adds nothing.
		_, err = tx.Add(&rows.AuditLog{Log: number, Origin: origin, Own: own, Opened: rows.Now, Head: make([]byte, len(audit.Hash{}))})
		return err
	})
	if err == nil {
		l, err = a.findLog(ctx, origin)
	}
	if err == nil && l == nil {
		err = holdfast.ErrUnavailable // another log took the number at the same moment
	}
	if err != nil {
		return nil, fmt.Errorf("open audit log %s: %w", origin, err)
	}
	return l, nil
}

// nextLog returns the number of a new log.
func nextLog(tx side.Tx) (number int64, err error) {
	higher := func(scan side.Scan) error {
		n := int64(0)
		err := scan(&n)
		number = max(number, n)
		return err
	}
	if err = tx.Read(lastLog, nil, higher); err == nil {
		err = tx.Read(lastUsed, []any{number}, higher)
	}
	return number + 1, err
}

func (a *Audit) findLog(ctx context.Context, origin string) (found *rows.AuditLog, err error) {
	logs, err := a.Logs(ctx)
	for _, l := range logs {
		if l.Origin == origin {
			found = l
		}
	}
	return found, err
}

// Lease implements audit.Store. A lease that ends too late was made by a clock that was wrong.
func (a *Audit) Lease(ctx context.Context, mine int64) (lease int64, err error) {
	if err = a.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		lease = 0
		taken, err := tx.Exec(takeLease, mine, rows.Micros(audit.LeaseFor))
		if err != nil || taken == 0 {
			return err
		}
		return tx.Read(readLease, nil, func(scan side.Scan) error { return scan(&lease) })
	}); err != nil {
		return 0, fmt.Errorf("take lease: %w", err)
	}
	return lease, nil
}

// Sign implements audit.Store.
func (a *Audit) Sign(ctx context.Context, c *rows.AuditCheckpoint, by audit.Public) error {
	if err := a.db.Change(ctx, side.Cost{}, func(tx side.Tx) error {
		if err := tx.Read(lockOwn, []any{c.Origin}, func(scan side.Scan) error { return scan(new(int64)) }); err != nil {
			return err
		}
		var handOvers []string
		if err := tx.Read(auditHandOvers, []any{c.Origin}, func(scan side.Scan) error {
			var note string
			err := scan(&note)
			handOvers = append(handOvers, note)
			return err
		}); err != nil {
			return err
		}
		late := false
		if audit.HandsOver(c.Note) {
			if err := tx.Read(largerNote, []any{c.Origin, c.Size}, func(side.Scan) error { late = true; return nil }); err != nil {
				return err
			}
		}
		if heir, _ := audit.Heir(handOvers, by); late || heir != by {
			return audit.ErrOutdated
		}
		return addCheckpoint(tx, c)
	}); err != nil {
		return fmt.Errorf("add checkpoint %d of %s: %w", c.Size, c.Origin, err)
	}
	return nil
}

// addCheckpoint adds a checkpoint. One that hands over takes the place of one of the same size.
func addCheckpoint(tx side.Tx, c *rows.AuditCheckpoint) error {
	if audit.HandsOver(c.Note) {
		return tx.Put(c)
	}
	_, err := tx.Add(c)
	return err
}

// Standing implements audit.Store.
func (a *Audit) Standing(ctx context.Context, log int64) (n int64, err error) {
	err = a.db.Read(ctx, standing, []any{log}, func(scan side.Scan) error { return scan(&n) })
	return n, err
}

// Logs implements audit.Reader.
func (a *Audit) Logs(ctx context.Context) (list []*rows.AuditLog, err error) {
	if err := a.db.EachRow(ctx, rows.Range{Table: rows.Of((*rows.AuditLog)(nil))}, func(r rows.Row) error {
		list = append(list, r.(*rows.AuditLog)) //nolint:forcetypeassert // asked for
		return nil
	}); err != nil {
		return nil, fmt.Errorf("list audit logs: %w", err)
	}
	return list, nil
}

// Last implements audit.Reader.
func (a *Audit) Last(ctx context.Context, log int64) (seq int64, err error) {
	err = a.db.Read(ctx, lastRecord, []any{log}, func(scan side.Scan) error { return scan(&seq) })
	return seq, err
}

// Records implements audit.Reader.
func (a *Audit) Records(ctx context.Context, log, after int64, limit int, yield func(r *audit.Stored) error) error {
	var r audit.Stored
	var id []byte
	var c rows.AuditRecord
	r.SameColumns = func(r *audit.Record) bool { return sameID(id, r.ID) && r.Matches(&c) }
	return a.db.Read(ctx, auditRecords, []any{log, after, int64(limit)}, func(scan side.Scan) error {
		if err := scan(&r.Seq, &r.Leaf, &r.Hash, &id, &c.At, &c.Channel, &c.Kind, &c.Status, &c.Failed, &c.Site, &c.Node, &c.Instance, &c.Actor, &c.Target, &c.Corr); err != nil {
			return err
		}
		return yield(&r)
	})
}

// sameID reports whether a column has an id, in the form of either store: both keep a UUID as 16 bytes,
// and PostgreSQL puts a byte before it that says so.
func sameID(column []byte, id holdfast.ID) bool {
	u, ok := id.UUID()
	want := u[:]
	if !ok {
		want = []byte(id)
	}
	return bytes.Equal(column, want) || len(column) == len(want)+1 && bytes.Equal(column[1:], want)
}

// Values implements audit.Reader.
func (a *Audit) Values(ctx context.Context, log, first, last int64, yield func(seq int64, v audit.Value) error) error {
	return a.db.Read(ctx, auditValues, []any{log, first, last}, func(scan side.Scan) error {
		var seq int64
		var v audit.Value
		if err := scan(&seq, &v.Field, &v.Salt, &v.Text); err != nil {
			return err
		}
		v.Salt = bytes.Clone(v.Salt)
		return yield(seq, v)
	})
}

// Tile implements audit.Reader.
func (a *Audit) Tile(ctx context.Context, log, level, number int64) (hashes []byte, err error) {
	err = a.db.Read(ctx, auditTile, []any{log, level, number}, func(scan side.Scan) error { return scan(&hashes) })
	return bytes.Clone(hashes), err
}

// Gaps implements audit.Reader.
func (a *Audit) Gaps(ctx context.Context, log int64, yield func(first, last int64, hash audit.Hash) error) error {
	return a.db.Read(ctx, auditGaps, []any{log}, func(scan side.Scan) error {
		g, err := gapOf(scan)
		if err != nil {
			return err
		}
		return yield(g.First, g.Last, g.hash)
	})
}

// Checkpoints implements audit.Reader.
func (a *Audit) Checkpoints(ctx context.Context, origin string, size int64, limit int, yield func(c *rows.AuditCheckpoint) error) error {
	return a.db.Read(ctx, auditCheckpoints, []any{origin, size, int64(limit)}, func(scan side.Scan) error {
		c, err := checkpointOf(origin, scan)
		if err != nil {
			return err
		}
		return yield(c)
	})
}

// Newest implements audit.Store.
func (a *Audit) Newest(ctx context.Context, origin string) (c *rows.AuditCheckpoint, err error) {
	err = a.db.Read(ctx, newestCheckpoint, []any{origin}, func(scan side.Scan) error {
		c, err = checkpointOf(origin, scan)
		return err
	})
	return c, err
}

// HandOvers implements audit.SignedReader.
func (a *Audit) HandOvers(ctx context.Context, origin string) (list []string, err error) {
	err = a.db.Read(ctx, auditHandOvers, []any{origin}, func(scan side.Scan) error {
		var note string
		err := scan(&note)
		list = append(list, note)
		return err
	})
	return list, err
}

func checkpointOf(origin string, scan side.Scan) (*rows.AuditCheckpoint, error) {
	c := &rows.AuditCheckpoint{Origin: origin}
	var seen int64
	if err := scan(&c.Size, &c.Root, &c.Note, &seen); err != nil {
		return nil, err
	}
	c.Root, c.Seen = bytes.Clone(c.Root), rows.Instant(seen)
	return c, nil
}
