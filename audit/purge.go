package audit

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

const (
	purgeStep = 100_000 // records of a log that one record of the purge covers at most
	purgeWait = time.Minute
	purgeLook = 100 * time.Millisecond
)

// Prefix is the records of a log that follow its last purge and are old.
type Prefix struct {
	Count, First, Last int64 // zero Count: none is old
	Since, Until       time.Time
	Hash               Hash // chain hash of the last of them
}

// purged is the Extra of a record of the kind Purged.
type purged struct {
	Log   string    `json:"log"`
	First int64     `json:"first"`
	Last  int64     `json:"last"`
	Count int64     `json:"count"`          // zero: what an older record says is said again, since that one goes
	Since time.Time `json:"since,omitzero"` // when the first of them was written
	Until time.Time `json:"until,omitzero"`
	Hash  string    `json:"hash"` // chain hash of the last of them

	by string // log that has the record, and its number there
	at int64
}

// plan is the purge of one log.
type plan struct {
	purged

	log  int64
	hash Hash
}

// Purge deletes what is older than keep: the own logs, and the copies of others. Holds and Held keep
// records, and all that follow them. The records go only after a signed checkpoint covers the record
// of the purge; so wherever the process dies the logs are intact, and the next call goes on. Purge
// does nothing on a node that does not append or has no key. It returns how many records went.
func (l *Log) Purge(ctx context.Context, keep time.Duration) (gone int64, err error) {
	l.setUp()
	if l.Key == nil {
		return 0, nil
	}
	for more := true; more && l.Leads(); {
		logs, err := l.Store.Logs(ctx)
		if err != nil {
			return gone, fmt.Errorf("purge the audit log: %w", err)
		}
		for _, log := range logs { // what a pass before this one left
			n, err := l.sweep(ctx, log.Log, log.Cut)
			if gone += n; err != nil {
				return gone, fmt.Errorf("purge %s: %w", log.Origin, err)
			}
		}
		var n int64
		n, more, err = l.purge(ctx, logs, keep)
		if gone += n; err != nil {
			return gone, fmt.Errorf("purge the audit log: %w", err)
		}
	}
	return gone, nil
}

// purge takes a step of the purge of each log that has old records. It reports whether one may have more.
func (l *Log) purge(ctx context.Context, logs []*rows.AuditLog, keep time.Duration) (gone int64, more bool, err error) {
	holds, err := l.Store.Holds(ctx)
	if err != nil {
		return 0, false, err
	}
	var plans, again []plan
	for _, log := range logs {
		p, err := l.old(ctx, log, keep, holds)
		more = more || p.Count == purgeStep
		switch {
		case err != nil:
			return 0, false, fmt.Errorf("%s: %w", log.Origin, err)
		case p.Count > 0:
			plans = append(plans, plan{purged{
				Log: log.Origin, First: p.First, Last: p.Last, Count: p.Count, Since: p.Since, Until: p.Until, Hash: hex.EncodeToString(p.Hash[:]),
			}, log.Log, p.Hash})
		case log.Cut > 0: // the record that says so may be among those that go
			again = append(again, plan{purged: purged{Log: log.Origin, First: 1, Last: log.Cut, Hash: hex.EncodeToString(log.CutHash)}})
		}
	}
	if len(plans) == 0 {
		return 0, false, nil
	}
	if err := l.announce(ctx, slices.Concat(plans, again)); err != nil {
		return 0, false, err
	}
	for _, p := range plans {
		cut, err := l.Store.Cut(ctx, p.log, p.Last, p.hash, newestOf(holds))
		if err == nil && cut {
			var n int64
			n, err = l.sweep(ctx, p.log, p.Last)
			gone += n
		}
		if more = more && cut; err != nil {
			return gone, false, fmt.Errorf("%s: %w", p.Log, err)
		}
	}
	return gone, more, nil
}

// old returns the records of a log that may go.
func (l *Log) old(ctx context.Context, log *rows.AuditLog, keep time.Duration, holds []Hold) (p Prefix, err error) {
	last := log.Size
	if log.Own && l.Held != nil {
		last = min(last, l.Held(log.Origin))
	}
	if p, err = l.Store.Old(ctx, log.Log, log.Cut, last, keep, purgeStep); err != nil || p.Count == 0 || len(holds) == 0 {
		return p, err
	}
	held, err := l.held(ctx, log.Log, log.Cut, p.Last, holds)
	if err != nil || held == 0 {
		return p, err
	}
	return l.Store.Old(ctx, log.Log, log.Cut, held-1, keep, purgeStep)
}

// held returns the first of some records that a hold selects, or zero.
func (l *Log) held(ctx context.Context, log, after, last int64, holds []Hold) (seq int64, err error) {
	for seq == 0 && after < last {
		values := map[int64][]Value{}
		if err := l.Store.Values(ctx, log, after+1, after+verifyPage, func(seq int64, v Value) error {
			values[seq] = append(values[seq], v)
			return nil
		}); err != nil {
			return 0, err
		}
		read, end := int64(0), after+verifyPage
		if err := l.Store.Records(ctx, log, after, verifyPage, func(s *Stored) error {
			if seq != 0 || s.Seq > end && read > 0 || s.Seq > last {
				return nil
			}
			r, err := Read(s.Leaf, values[s.Seq])
			if err != nil {
				return fmt.Errorf("record %d: %w", s.Seq, err)
			}
			// Behind a gap the values were not read: then the record begins the next page.
			if read = s.Seq; s.Seq > end {
				read--
				return nil
			}
			if selectsAny(holds, &r) {
				seq = s.Seq
			}
			return nil
		}); err != nil {
			return 0, err
		}
		if read <= after {
			break
		}
		after = read
	}
	return seq, nil
}

// announce puts the purge on record, and returns when a checkpoint covers the records.
func (l *Log) announce(ctx context.Context, plans []plan) error {
	ctx, cancel := context.WithTimeout(ctx, purgeWait)
	defer cancel()
	origin, err := l.Origin(ctx)
	if err != nil {
		return err
	}
	own, err := l.Store.OpenLog(ctx, origin, true)
	if err != nil {
		return err
	}
	wanted := map[string]purged{}
	var entries []holdfast.Entry
	for _, p := range plans {
		detail, err := json.Marshal(p.purged)
		if err != nil {
			return err
		}
		wanted[p.Log] = p.purged
		entries = append(entries, holdfast.Entry{Kind: holdfast.Called, Code: CodePurge, Subject: p.Log, Detail: detail})
	}
	for some := range slices.Chunk(entries, holdfast.MaxEntries) {
		if err := l.Journal.Append(ctx, some...); err != nil {
			return err
		}
	}
	for after := own.Size; ; {
		if after, err = l.meet(ctx, own.Log, after, wanted); err != nil {
			return err
		}
		if len(wanted) == 0 {
			return l.Checkpoint(ctx)
		}
		select {
		case <-ctx.Done():
			return errors.Join(errors.New("the record of the purge is not in the log yet"), ctx.Err())
		case <-time.After(purgeLook):
		}
	}
}

// meet takes out of wanted what new records of the log say.
func (l *Log) meet(ctx context.Context, log, after int64, wanted map[string]purged) (last int64, err error) {
	last = after
	err = l.Store.Records(ctx, log, after, verifyPage, func(s *Stored) error {
		last = s.Seq
		r, err := Read(s.Leaf, nil)
		if err != nil || r.Kind != Purged {
			return err
		}
		var p purged
		if err := json.Unmarshal(r.Extra, &p); err != nil {
			return err
		}
		if w, ok := wanted[p.Log]; ok && w.Last == p.Last && w.Hash == p.Hash {
			delete(wanted, p.Log)
		}
		return nil
	})
	return last, err
}

// sweep deletes records up to a cut, a page at a time. It leaves the store to others for as long as a page took.
func (l *Log) sweep(ctx context.Context, log, cut int64) (gone int64, err error) {
	for cut > 0 {
		began := time.Now()
		n, err := l.Store.Sweep(ctx, log, cut)
		if gone += n; err != nil || n == 0 {
			return gone, err
		}
		select {
		case <-ctx.Done():
			return gone, ctx.Err()
		case <-time.After(time.Since(began)):
		}
	}
	return gone, nil
}
