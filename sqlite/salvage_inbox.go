package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
)

// salvagedMemory is how long a salvaged id is kept at least: the end of its retention may be
// damaged.
const salvagedMemory = 7 * 24 * time.Hour

// inbox salvages the rows of the inbox.
func (s *salvage) inbox(ctx context.Context) (err error) {
	s.eachOf("hf_inbox", inboxColumns, func(r sqlitefile.Row) {
		if err == nil {
			err = s.incoming(ctx, r)
		}
	})
	if err != nil {
		return err
	}
	s.orphans(func(table bool, r sqlitefile.Row) {
		if err == nil && table && len(r.Values) == inboxColumns && r.Null(0) {
			err = s.incoming(ctx, r)
		}
	})
	return err
}

func (s *salvage) incoming(ctx context.Context, r sqlitefile.Row) error {
	if idFrom(r.Values[2]) == "" {
		return nil // the index has it
	}
	waits := r.Int(5) == 1
	body, ok := sqlitefile.Row{}, false
	if waits {
		body, ok = s.keptBody(r.ID)
	}
	// Under every name that the sender may have had: an additional id does no harm.
	for _, source := range s.sources[r.Int(1)] {
		if waits && (!ok || !s.keptIntact(r, body, source)) {
			continue
		}
		if err := s.add(ctx, len(body.Bytes(2))+len(r.Bytes(9)), func(tx *writeTx) error {
			return s.insertIncoming(tx, r, body, source, waits)
		}); err != nil {
			return err
		}
	}
	return nil
}

// keptBody finds the body of a message that waits in the inbox.
func (s *salvage) keptBody(seq int64) (sqlitefile.Row, bool) {
	if r, ok := s.old.Find(s.roots["hf_inbox_body"], seq); ok && len(r.Values) == inboxBodyColumns {
		return r, true
	}
	if s.kept == nil {
		s.kept = map[int64]sqlitefile.Row{}
		bytes := 0
		keep := func(r sqlitefile.Row) {
			if bytes < strayBytes {
				s.kept[r.ID] = r
				bytes += len(r.Bytes(2))
			}
		}
		s.eachOf("hf_inbox_body", inboxBodyColumns, keep)
		s.orphans(func(table bool, r sqlitefile.Row) {
			if table && len(r.Values) == inboxBodyColumns && r.Null(0) && r.Text(1) != "" {
				keep(r)
			}
		})
	}
	r, ok := s.kept[seq]
	return r, ok
}

func (s *salvage) keptIntact(r, body sqlitefile.Row, source string) bool {
	return keptIntact(&holdfast.Message{
		ID: idFrom(r.Values[2]), Source: source, Kind: holdfast.Kind(body.Text(1)), Endpoint: r.Text(3), Payload: body.Bytes(2), CorrelationID: body.Text(4),
	}, body.Text(3), body.Values[5])
}

func (s *salvage) insertIncoming(tx *writeTx, r, body sqlitefile.Row, name string, waits bool) error {
	source, err := tx.source(name)
	if err != nil {
		return err
	}
	now := tx.tick()
	received := min(max(r.Int(6), 0), now)
	var processed driver.Value
	if !waits {
		processed = now
		if !r.Null(7) {
			processed = min(r.Int(7), now)
		}
	}
	expires := min(max(r.Int(8), after(now, salvagedMemory)), after(now, holdfast.LongestMemory))
	hash := r.Bytes(4)
	if len(hash) != 32 {
		hash = []byte{}
	}
	response, answer := r.Bytes(9), r.Values[10]
	if !answerIntact(idFrom(r.Values[2]), response, answer) {
		response, answer = nil, r.Int(10) // the hash shows that there was a response
	}
	seq, err := tx.conn.insert(salvageInbox, r.ID, source, r.Values[2], r.Text(3), hash, asBit(waits), received, processed, expires, nullBytes(response), answer)
	if err != nil || seq == 0 {
		return err
	}
	tx.inboxed++
	if !waits {
		s.count(func(d *Damage) { d.Salvaged.InboxIDs++ })
		return nil
	}
	tx.kept++
	s.count(func(d *Damage) { d.Salvaged.InboxKept++ })
	_, err = tx.exec(insertInboxBody, seq, body.Text(1), payload(body.Bytes(2)), nullText(body.Text(3)), nullText(body.Text(4)), body.Int(5))
	return err
}

// inboxByIndex remembers the ids that only the index has. It leaves out waiting messages whose
// content is lost: nobody has processed them, and their senders may send them again.
func (s *salvage) inboxByIndex(ctx context.Context) (err error) {
	waits := map[int64]struct{}{}
	s.old.Index(s.roots["hf_inbox_kept"], func(r sqlitefile.Row) { waits[r.Int(0)] = struct{}{} })
	s.entries("sqlite_autoindex_hf_inbox_1", inboxIndex, func(r sqlitefile.Row) {
		if err != nil || idFrom(r.Values[1]) == "" {
			return
		}
		_, lost := waits[r.Int(2)]
		for _, source := range s.sources[r.Int(0)] {
			if err = s.add(ctx, 0, func(tx *writeTx) error { return s.rememberID(tx, source, r.Values[1], lost) }); err != nil {
				return
			}
		}
	})
	return err
}

func (s *salvage) rememberID(tx *writeTx, name string, id driver.Value, lost bool) error {
	source, err := tx.source(name)
	if err != nil {
		return err
	}
	known, err := tx.conn.one(findInbox, exists, source, id)
	if err != nil || known {
		return err
	}
	if lost {
		s.count(func(d *Damage) { d.Lost++ })
		return nil
	}
	now := tx.tick()
	seq, err := tx.conn.insert(insertInbox, source, id, "", []byte{}, int64(0), now, now, after(now, 4*salvagedMemory), nil, nil)
	if err != nil || seq == 0 {
		return err
	}
	tx.inboxed++
	s.count(func(d *Damage) { d.Salvaged.InboxIDs++ })
	return nil
}

// events salvages the journal, except entries of messages that were not salvaged.
func (s *salvage) events(ctx context.Context) (err error) {
	one := func(r sqlitefile.Row) {
		kind, state := r.Int(2), r.Int(3)
		if err != nil || kind < 1 || kind > int64(holdfast.PersonRemoved) || state < 0 || state > int64(holdfast.Discarded) {
			return
		}
		err = s.add(ctx, 0, func(tx *writeTx) error {
			args := []driver.Value{r.ID}
			for i := 1; i <= 10; i++ {
				args = append(args, r.Int(i))
			}
			args[4] = min(r.Int(4), tx.tick())
			if r.Null(1) {
				args[1] = nil
			}
			for i := 11; i <= 15; i++ {
				args = append(args, nullText(r.Text(i)))
			}
			var id driver.Value
			if !r.Null(16) && idFrom(r.Values[16]) != "" {
				id = r.Values[16]
			}
			args = append(args, id, nullText(r.Text(17)))
			n, err := tx.exec(salvageEvent, args...)
			s.count(func(d *Damage) { d.Salvaged.Events += n })
			return err
		})
	}
	s.eachOf("hf_entry", eventColumnCount, one)
	if err != nil {
		return err
	}
	s.orphans(func(table bool, r sqlitefile.Row) {
		if table && len(r.Values) == eventColumnCount && r.Null(0) {
			one(r)
		}
	})
	return err
}
