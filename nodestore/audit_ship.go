package nodestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	ownLogs    = `SELECT log, origin, size, cut FROM hf_audit_log WHERE log > 0 AND own ORDER BY log DESC LIMIT 100`
	hashOf     = `SELECT hash FROM hf_audit WHERE log = $1 AND seq = $2`
	cutHashOf  = `SELECT coalesce(cut_hash, head) FROM hf_audit_log WHERE log = $1 AND cut = $2`
	writtenAt  = `SELECT stored FROM hf_audit WHERE log = $1 AND seq = $2`
	shipped    = `SELECT seq, leaf, hash FROM hf_audit WHERE log = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
	shipValues = `SELECT seq, field, salt, value FROM hf_audit_value WHERE log = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq, field`
)

// Logs implements sites.Logs.
func (t *Telemetry) Logs(ctx context.Context) (list []sites.Log, err error) {
	if err := t.db.Read(ctx, ownLogs, nil, func(scan side.Scan) error {
		var l sites.Log
		err := scan(&l.Number, &l.Origin, &l.Size, &l.Cut)
		list = append(list, l)
		return err
	}); err != nil {
		return nil, fmt.Errorf("list own audit logs: %w", err)
	}
	return list, nil
}

// Written implements sites.Logs.
func (t *Telemetry) Written(ctx context.Context, l sites.Log, seq int64) (at time.Time, err error) {
	if err := t.db.Read(ctx, writtenAt, []any{l.Number, seq}, func(scan side.Scan) error {
		var stored int64
		err := scan(&stored)
		at = t.db.Time(rows.Instant(stored))
		return err
	}); err != nil {
		return at, fmt.Errorf("read record %d of %q: %w", seq, l.Origin, err)
	}
	return at, nil
}

// errEnough ends the reading of a batch.
var errEnough = errors.New("enough")

// Batch implements sites.Logs.
func (t *Telemetry) Batch(ctx context.Context, l sites.Log, first, last, most int64) (b sites.Batch, err error) {
	b = sites.Batch{Log: l, First: first}
	if b.Before, err = t.before(ctx, l.Number, first); err == nil && b.Before != nil {
		err = t.fill(ctx, &b, min(last, first+sites.BatchRecords-1), most)
	}
	if err != nil {
		return sites.Batch{}, fmt.Errorf("read records from %d of %q: %w", first, l.Origin, err)
	}
	return b, nil
}

// before returns the chain hash of the record before seq, or nil if it is gone.
func (t *Telemetry) before(ctx context.Context, log, seq int64) (hash []byte, err error) {
	if seq == 1 {
		return make([]byte, len(audit.Hash{})), nil
	}
	for _, sql := range []string{hashOf, cutHashOf} {
		if err := t.db.Read(ctx, sql, []any{log, seq - 1}, func(scan side.Scan) error {
			var h []byte
			err := scan(&h)
			hash = bytes.Clone(h)
			return err
		}); err != nil || hash != nil {
			return hash, err
		}
	}
	return nil, nil
}

func (t *Telemetry) fill(ctx context.Context, b *sites.Batch, last, most int64) error {
	values := map[int64][]audit.Value{}
	size := map[int64]int64{}
	if err := t.db.Read(ctx, shipValues, []any{b.Log.Number, b.First, last}, func(scan side.Scan) error {
		var seq int64
		var v audit.Value
		var salt []byte
		err := scan(&seq, &v.Field, &salt, &v.Text)
		v.Salt = bytes.Clone(salt)
		values[seq] = append(values[seq], v)
		size[seq] += int64(len(v.Text))
		return err
	}); err != nil {
		return err
	}
	var bytesIn int64
	err := t.db.Read(ctx, shipped, []any{b.Log.Number, b.First, last}, func(scan side.Scan) error {
		var seq int64
		var leaf, hash []byte
		if err := scan(&seq, &leaf, &hash); err != nil {
			return err
		}
		bytesIn += int64(len(leaf)) + size[seq]
		if seq != b.Last()+1 || len(b.Records) > 0 && bytesIn > most {
			return errEnough
		}
		b.Records = append(b.Records, sites.Record{Leaf: bytes.Clone(leaf), Values: values[seq]})
		b.End = bytes.Clone(hash)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}
