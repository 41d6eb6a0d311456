package nodestore

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	lockCopy  = `SELECT log, coalesce(site, ''), size, cut, coalesce(cut_hash, head) FROM hf_audit_log WHERE origin = $1 FOR UPDATE`
	siteLogs  = `SELECT count(*) FROM hf_audit_log WHERE site = $1`
	nameTaken = `SELECT 1 FROM hf_site WHERE name = $1 AND revoked IS NULL UNION ALL SELECT 1 FROM hf_audit_log WHERE own AND origin >= $2 AND origin < $3`
	growCopy  = `UPDATE hf_audit_log SET size = $2, head = $3 WHERE log = $1 AND size < $2`
	dropGap   = `DELETE FROM hf_audit_gap WHERE log = $1 AND first = $2`
	near      = `SELECT seq, hash FROM hf_audit WHERE log = $1 AND seq BETWEEN $2 AND $3 ORDER BY seq`
	nextLeaf  = `SELECT leaf FROM hf_audit WHERE log = $1 AND seq = $2`
	copyState = `SELECT log, size FROM hf_audit_log WHERE origin = $1 AND site = $2`
)

// numberTries limits how often a new log takes the number after the last, which another node of
// central may take at the same time.
const numberTries = 20

// Telemetry keeps the audit logs of sites at central, and reads at a site those that central shall get.
type Telemetry struct{ db side.Store }

var (
	_ sites.Copies = (*Telemetry)(nil)
	_ sites.Logs   = (*Telemetry)(nil)
)

// arriving is a batch whose records have been read and chained.
type arriving struct {
	*sites.Batch

	site    string
	hashes  []audit.Hash // of the chain, one for each record
	leaves  []audit.Hash
	records []*rows.AuditRecord
	values  [][]rows.Row // of each record
}

// Copy implements sites.Copies.
func (t *Telemetry) Copy(ctx context.Context, site string, b *sites.Batch) (c sites.Copy, err error) {
	in, err := arrive(site, b)
	if err == nil {
		cost := side.Cost{Rows: len(b.Records) + len(b.Calls), Bytes: in.bytes(), Complete: true}
		err = t.db.Change(ctx, cost, func(tx side.Tx) error {
			c, err = in.write(tx)
			return err
		})
	}
	if err != nil {
		return sites.Copy{}, fmt.Errorf("copy records %d to %d of %q: %w", b.First, b.Last(), b.Log.Origin, err)
	}
	return c, nil
}

// arrive checks all of a batch that can be checked without the store.
func arrive(site string, b *sites.Batch) (*arriving, error) {
	if audit.OriginSite(b.Log.Origin) == "" || len(b.Log.Origin) > 256 {
		return nil, fmt.Errorf("its log has no valid name: %w", holdfast.ErrInvalid)
	}
	const most = 1 << 52 // so that a number is the same in all programs that read JSON
	if len(b.Before) != len(audit.Hash{}) || len(b.End) != len(audit.Hash{}) || b.First < 1 || b.First > most || len(b.Records) > sites.BatchRecords || len(b.Records) == 0 {
		return nil, fmt.Errorf("its numbers or hashes are not valid: %w", holdfast.ErrInvalid)
	}
	in := &arriving{Batch: b, site: site, hashes: make([]audit.Hash, len(b.Records)), leaves: make([]audit.Hash, len(b.Records))}
	before := audit.Hash(b.Before)
	if b.First == 1 && before != (audit.Hash{}) {
		return nil, fmt.Errorf("%w before the first record", sites.ErrBroken)
	}
	for i := range b.Records {
		seq := b.First + int64(i)
		in.leaves[i] = audit.LeafHash(b.Records[i].Leaf)
		before = audit.ChainHash(seq, before, in.leaves[i])
		in.hashes[i] = before
	}
	if !bytes.Equal(before[:], b.End) {
		return nil, fmt.Errorf("%w its end", sites.ErrBroken)
	}
	for i := range b.Records {
		if err := in.read(b.First+int64(i), &b.Records[i]); err != nil {
			return nil, fmt.Errorf("record %d: %w", b.First+int64(i), err)
		}
	}
	return in, nil
}

// read makes the rows of a record. Its number in the store comes later.
func (in *arriving) read(seq int64, r *sites.Record) error {
	of, err := audit.Read(r.Leaf, r.Values)
	if err != nil {
		return fmt.Errorf("%w: %w", sites.ErrUnreadable, err)
	}
	if of.Site != audit.OriginSite(in.Log.Origin) && of.Site != notify.UnknownSite {
		return fmt.Errorf("it names site %.64q: %w", of.Site, sites.ErrForeign)
	}
	row := audit.Row(0, seq, &of, r.Leaf, in.hashes[len(in.records)])
	row.Site = audit.SiteOf(&rows.AuditLog{Origin: in.Log.Origin, Site: in.site}, of.Site)
	var values []rows.Row
	for _, v := range r.Values {
		values = append(values, &rows.AuditValue{Seq: seq, Field: v.Field, At: row.At, Salt: v.Salt, Value: v.Text})
	}
	for _, text := range []string{string(of.ID), row.Channel, row.Kind, row.Status, of.Node, of.Instance, of.Actor, of.Target, of.Correlation} {
		if len(text) > audit.MaxText { // an index could not hold it
			return fmt.Errorf("a text of %d bytes: %w", len(text), sites.ErrUnreadable)
		}
	}
	in.records, in.values = append(in.records, row), append(in.values, values)
	return nil
}

func (in *arriving) bytes() (n int) {
	for i := range in.Records {
		n += 2 * len(in.Records[i].Leaf)
		for _, v := range in.Records[i].Values {
			n += 2 * len(v.Text)
		}
	}
	return n
}

// copied is the row of a copy, and its gaps.
type copied struct {
	log, size, cut int64
	cutHash        []byte // while cut is not 0
	gaps           []gap
}

// write writes what is new. It refuses before it writes.
func (in *arriving) write(tx side.Tx) (c sites.Copy, err error) {
	at, err := in.log(tx)
	if err != nil {
		return c, err
	}
	list, err := in.new(tx, at)
	if err != nil {
		return c, err
	}
	gaps := without(at.gaps, in.First, in.Last(), audit.Hash(in.Before))
	if in.First > at.size+1 {
		gaps = append(gaps, gap{sites.Range{First: at.size + 1, Last: in.First - 1}, audit.Hash(in.Before)})
	}
	if len(gaps) > sites.MaxGaps && len(gaps) > len(at.gaps) {
		return c, sites.ErrGaps
	}
	if len(list) > 0 {
		err = in.put(tx, at, list, gaps)
	}
	if err == nil {
		err = putCalls(tx, in.site, in.Log.Number, in.Calls)
	}
	return sites.Copy{Origin: in.Log.Origin, Size: max(at.size, in.Last()), Gaps: rangesOf(gaps)}, err
}

// log finds the row of the log, or makes it.
func (in *arriving) log(tx side.Tx) (at copied, err error) {
	for range numberTries {
		found, owner := false, ""
		if err := tx.Read(lockCopy, []any{in.Log.Origin}, func(scan side.Scan) error {
			found = true
			return scan(&at.log, &owner, &at.size, &at.cut, &at.cutHash)
		}); err != nil {
			return at, err
		}
		if found && owner != in.site { // this store's own have none
			return at, fmt.Errorf("its log is that of site %.64q: %w", owner, sites.ErrForeign)
		}
		if found {
			at.gaps, err = gapsOf(tx.Read, at.log)
			return at, err
		}
		if err := in.newLog(tx); err != nil {
			return at, err
		}
	}
	return at, fmt.Errorf("number a log: %w", holdfast.ErrUnavailable)
}

func (in *arriving) newLog(tx side.Tx) error {
	var have, next int64
	err := in.mayName(tx)
	if err == nil {
		err = tx.Read(siteLogs, []any{in.site}, func(scan side.Scan) error { return scan(&have) })
	}
	if err == nil && have >= sites.MaxLogs {
		err = fmt.Errorf("the site has %d logs here: %w", have, holdfast.ErrInvalid)
	}
	if err == nil {
		next, err = nextLog(tx)
	}
	if err == nil {
		_, err = tx.Add(&rows.AuditLog{Log: next, Origin: in.Log.Origin, Site: in.site, Opened: rows.Now, Head: make([]byte, len(audit.Hash{}))})
	}
	return err
}

// mayName refuses a log that has the name of another site, or of this store's own logs. A site may call itself
// something else than central does: the credential says whose log it is.
func (in *arriving) mayName(tx side.Tx) error {
	name, taken := audit.OriginSite(in.Log.Origin), false
	if name == in.site {
		return nil
	}
	prefix := "holdfast/" + name
	if err := tx.Read(nameTaken, []any{name, prefix + "/", prefix + "0"}, func(side.Scan) error { taken = true; return nil }); err != nil {
		return err
	}
	if taken {
		return fmt.Errorf("its log bears the name of site %.64q, and another has that name: %w", name, sites.ErrForeign)
	}
	return nil
}

// new returns the rows of the records that are not here, after it has compared the batch with what is.
func (in *arriving) new(tx side.Tx, at copied) (list []rows.Row, err error) {
	here := map[int64][]byte{}
	if err := tx.Read(near, []any{at.log, in.First - 1, in.Last() + 1}, func(scan side.Scan) error {
		var seq int64
		var hash []byte
		err := scan(&seq, &hash)
		here[seq] = bytes.Clone(hash)
		return err
	}); err != nil {
		return nil, err
	}
	if at.cut > 0 {
		here[at.cut] = at.cutHash
	}
	if hash, ok := here[in.First-1]; ok && !bytes.Equal(hash, in.Before) {
		return nil, fmt.Errorf("%w record %d", sites.ErrBroken, in.First-1)
	}
	if hash, ok := here[in.Last()+1]; ok && in.Last() >= at.cut {
		if err := in.joins(tx, at.log, hash); err != nil {
			return nil, err
		}
	}
	for i, r := range in.records {
		hash, ok := here[r.Seq]
		switch {
		case ok && !bytes.Equal(hash, in.hashes[i][:]):
			return nil, fmt.Errorf("%w record %d", sites.ErrBroken, r.Seq)
		case ok || r.Seq <= at.cut:
			continue
		}
		r.Log = at.log
		list = append(list, r)
		for _, v := range in.values[i] {
			v.(*rows.AuditValue).Log = at.log //nolint:forcetypeassert // made above
			list = append(list, v)
		}
	}
	return list, nil
}

// joins checks that the record after the batch, which is here, follows it.
func (in *arriving) joins(tx side.Tx, log int64, hash []byte) error {
	seq := in.Last() + 1
	return tx.Read(nextLeaf, []any{log, seq}, func(scan side.Scan) error {
		var leaf []byte
		if err := scan(&leaf); err != nil {
			return err
		}
		if h := audit.ChainHash(seq, in.hashes[len(in.hashes)-1], audit.LeafHash(leaf)); !bytes.Equal(h[:], hash) {
			return fmt.Errorf("%w record %d", sites.ErrBroken, seq)
		}
		return nil
	})
}

func (in *arriving) put(tx side.Tx, at copied, list []rows.Row, gaps []gap) error {
	if _, err := tx.Add(list...); err != nil {
		return err
	}
	if _, err := tx.Exec(growCopy, at.log, in.Last(), in.End); err != nil {
		return err
	}
	if err := replaceGaps(tx, at.log, at.gaps, gaps); err != nil {
		return err
	}
	detail, err := json.Marshal(struct {
		Log   string `json:"log"`
		First int64  `json:"first"`
		Last  int64  `json:"last"`
		Hash  string `json:"hash"`
	}{in.Log.Origin, in.First, in.Last(), hex.EncodeToString(in.End)})
	if err == nil {
		err = tx.Note(&holdfast.Entry{Kind: holdfast.Copied, Subject: in.Log.Origin, Detail: detail})
	}
	return err
}

// Copied implements sites.Copies.
func (t *Telemetry) Copied(ctx context.Context, site string, origins []string) ([]sites.Copy, error) {
	list := make([]sites.Copy, len(origins))
	for i, origin := range origins {
		list[i].Origin = origin
		var log int64
		err := t.db.Read(ctx, copyState, []any{origin, site}, func(scan side.Scan) error { return scan(&log, &list[i].Size) })
		if err == nil && log != 0 {
			var gaps []gap
			gaps, err = gapsOf(func(sql string, args []any, row func(side.Scan) error) error { return t.db.Read(ctx, sql, args, row) }, log)
			list[i].Gaps = rangesOf(gaps)
		}
		if err != nil {
			return nil, fmt.Errorf("read the copy of %q: %w", origin, err)
		}
	}
	return list, nil
}
