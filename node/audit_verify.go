package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/internal/namedfile"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// AuditReport is what a verification of audit logs found.
type AuditReport = audit.Report

// KeyError is a verifier key that is none.
type KeyError struct{ err error }

func (e *KeyError) Error() string { return e.err.Error() }
func (e *KeyError) Unwrap() error { return e.err }

// VerifyAudit verifies the audit logs of a configured store, whether or not nodes use it. Nothing is changed in it.
// keys are verifier keys; without any, that of the node's own key file counts. Without a witness the configured
// one counts. origin is the only log to verify; empty: all.
func VerifyAudit(ctx context.Context, c *config.Config, keys []string, witness, origin string) (r AuditReport, err error) {
	o := audit.VerifyOptions{Origin: origin}
	if o.Keys, err = verifierKeys(keys); err != nil {
		return r, err
	}
	if path := c.AuditKey(); len(keys) == 0 && path != "" {
		if _, err := os.Stat(path); err == nil {
			k, err := audit.OpenKey(path)
			if err != nil {
				return r, err
			}
			o.Keys = append(o.Keys, k.Public())
		} else if !errors.Is(err, fs.ErrNotExist) {
			return r, fmt.Errorf("look for the audit key: %w", err)
		}
	}
	if o.Witness, err = notesOf(&c.Audit, witness); err != nil {
		return r, err
	}
	s, err := StorePlace{folder: c.Data, database: c.Store}.reader(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return audit.Verify(ctx, outside{s}, o)
}

// VerifyAuditExport verifies an audit log that was exported to a file, in JSON Lines and without a filter. Only
// keys and a witness that are given count.
func VerifyAuditExport(ctx context.Context, file string, keys []string, witness string) (r AuditReport, err error) {
	o := audit.VerifyOptions{}
	if o.Keys, err = verifierKeys(keys); err != nil {
		return r, err
	}
	if o.Witness, err = notesOf(&config.Audit{}, witness); err != nil {
		return r, err
	}
	f, err := os.Open(file) //nolint:gosec // whoever asks names it
	if err != nil {
		return r, fmt.Errorf("open the export: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return audit.VerifyExport(ctx, f, o)
}

// mostProof is more than a proof has: two records of the largest kind, and the hashes of a batch.
const mostProof = 8 << 20

// VerifyAuditProof verifies a file with a proof of one record. Only keys and a witness that are given count.
func VerifyAuditProof(file string, keys []string, witness string) (r AuditReport, err error) {
	o := audit.VerifyOptions{}
	if o.Keys, err = verifierKeys(keys); err != nil {
		return r, err
	}
	if o.Witness, err = notesOf(&config.Audit{}, witness); err != nil {
		return r, err
	}
	text, err := namedfile.Read(file, mostProof)
	if err != nil {
		return r, fmt.Errorf("open the proof: %w", err)
	}
	return audit.VerifyProof(text, o)
}

func verifierKeys(texts []string) (list []audit.Public, err error) {
	for _, text := range texts {
		k, err := audit.ParsePublic(text)
		if err != nil {
			return nil, &KeyError{err}
		}
		list = append(list, k)
	}
	return list, nil
}

// outside reads the audit logs of a store from outside of its nodes.
type outside struct{ from storecopy.Exporter }

var _ audit.Reader = outside{}

// each calls yield for the rows after one, until yield returns false.
func (x outside) each(ctx context.Context, after rows.Row, page int64, yield func(r rows.Row) (more bool, err error)) error {
	t := rows.Of(after)
	for w := (rows.Range{Table: t, After: t.Place(after), Limit: page}); ; {
		list, err := x.from.Read(ctx, w)
		if err != nil {
			return err
		}
		for _, r := range list {
			if more, err := yield(r); err != nil || !more {
				return err
			}
		}
		if int64(len(list)) < page {
			return nil
		}
		w.After = t.Place(list[len(list)-1])
	}
}

const outsidePage = 1000

// Logs implements audit.Reader.
func (x outside) Logs(ctx context.Context) (list []*rows.AuditLog, err error) {
	err = x.each(ctx, &rows.AuditLog{}, outsidePage, func(r rows.Row) (bool, error) {
		list = append(list, r.(*rows.AuditLog)) //nolint:forcetypeassert // asked for
		return true, nil
	})
	return list, err
}

// Last implements audit.Reader. It looks only beyond the end that the log should have.
func (x outside) Last(ctx context.Context, log int64) (seq int64, err error) {
	logs, err := x.Logs(ctx)
	for _, l := range logs {
		if l.Log == log {
			seq = l.Size
		}
	}
	if err != nil {
		return 0, err
	}
	err = x.each(ctx, &rows.AuditRecord{Log: log, Seq: seq}, 1, func(r rows.Row) (bool, error) {
		if k := r.(*rows.AuditRecord); k.Log == log { //nolint:forcetypeassert // asked for
			seq = k.Seq
		}
		return false, nil
	})
	return seq, err
}

// Records implements audit.Reader.
func (x outside) Records(ctx context.Context, log, after int64, limit int, yield func(r *audit.Stored) error) error {
	return x.each(ctx, &rows.AuditRecord{Log: log, Seq: after}, int64(limit), func(r rows.Row) (bool, error) {
		k := r.(*rows.AuditRecord) //nolint:forcetypeassert // asked for
		if limit--; k.Log != log || limit < 0 {
			return false, nil
		}
		return true, yield(&audit.Stored{Seq: k.Seq, Leaf: k.Leaf, Hash: k.Hash, SameColumns: func(r *audit.Record) bool {
			return r.ID == k.ID && r.Matches(k)
		}})
	})
}

// Values implements audit.Reader.
func (x outside) Values(ctx context.Context, log, first, last int64, yield func(seq int64, v audit.Value) error) error {
	return x.each(ctx, &rows.AuditValue{Log: log, Seq: first - 1, Field: "~"}, outsidePage, func(r rows.Row) (bool, error) { // no field follows "~"
		k := r.(*rows.AuditValue) //nolint:forcetypeassert // asked for
		if k.Log != log || k.Seq > last {
			return false, nil
		}
		return true, yield(k.Seq, audit.Value{Field: k.Field, Salt: k.Salt, Text: k.Value})
	})
}

// Tile implements audit.Reader.
func (x outside) Tile(ctx context.Context, log, level, number int64) (hashes []byte, err error) {
	err = x.each(ctx, &rows.AuditTile{Log: log, Level: level, Number: number - 1}, 1, func(r rows.Row) (bool, error) {
		if k := r.(*rows.AuditTile); k.Log == log && k.Level == level && k.Number == number { //nolint:forcetypeassert // asked for
			hashes = k.Hashes
		}
		return false, nil
	})
	return hashes, err
}

// Gaps implements audit.Reader.
func (x outside) Gaps(ctx context.Context, log int64, yield func(first, last int64, hash audit.Hash) error) error {
	return x.each(ctx, &rows.AuditGap{Log: log}, outsidePage, func(r rows.Row) (bool, error) {
		k := r.(*rows.AuditGap) //nolint:forcetypeassert // asked for
		if k.Log != log {
			return false, nil
		}
		hash := audit.Hash{}
		copy(hash[:], k.Hash)
		return true, yield(k.First, k.Last, hash)
	})
}

// Checkpoints implements audit.Reader.
func (x outside) Checkpoints(ctx context.Context, origin string, size int64, limit int, yield func(c *rows.AuditCheckpoint) error) error {
	return x.each(ctx, &rows.AuditCheckpoint{Origin: origin, Size: size}, int64(limit), func(r rows.Row) (bool, error) {
		k := r.(*rows.AuditCheckpoint) //nolint:forcetypeassert // asked for
		if limit--; k.Origin != origin || limit < 0 {
			return false, nil
		}
		return true, yield(k)
	})
}
