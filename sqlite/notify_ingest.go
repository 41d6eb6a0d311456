package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
)

var _ notify.Store = (*DB)(nil)

// notifies says whether messages of notifications wait in the lane.
func (l *lane) notifies() bool {
	_, ok := notify.ChannelOf(l.name)
	return ok
}

// ingest is the work of one Ingest call.
type ingest struct {
	list    []ingested
	results []holdfast.Result
	bytes   int
}

// ingested is a notification with its column values.
type ingested struct {
	notify.Incoming

	id      driver.Value
	key     driver.Value // the id of the first copy's message
	copies  []entry
	invalid error
}

// Ingest implements notify.Store.
func (db *DB) Ingest(ctx context.Context, list ...notify.Incoming) ([]holdfast.Result, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := db.ready(); err != nil {
		return nil, fmt.Errorf("ingest notifications: %w", err)
	}
	k := &ingest{list: make([]ingested, len(list))}
	for i := range list {
		in := &k.list[i]
		in.Incoming = list[i]
		if in.invalid = in.prepare(db.opts.Source); in.invalid != nil {
			in.invalid = fmt.Errorf("ingest notification %s: %w", list[i].Notification.ID, in.invalid)
		}
		k.bytes += in.size()
	}
	if err := db.writer.do(ctx, k); err != nil {
		return nil, fmt.Errorf("ingest notifications: %w", err)
	}
	k.tell(ctx, db.log)
	return k.results, nil
}

// prepare checks and encodes.
func (in *ingested) prepare(source string) error {
	ms, err := in.Normalized(source)
	if err != nil {
		return err
	}
	in.id, in.key, in.copies = idValue(in.Notification.ID), idValue(in.Notification.Key()), make([]entry, len(ms))
	for i := range ms {
		in.copies[i].m = ms[i]
		if err := in.copies[i].encode(); err != nil {
			return err
		}
	}
	return nil
}

func (in *ingested) size() int {
	n := 512
	for i := range in.copies {
		n += 256 + len(in.copies[i].m.Payload)
	}
	return n
}

func (k *ingest) size() (int, int) {
	n := 0
	for i := range k.list {
		n += 2 * max(len(k.list[i].copies), 1)
	}
	return n, k.bytes
}

func (k *ingest) apply(tx *writeTx) error {
	k.results = make([]holdfast.Result, len(k.list))
	for i := range k.list {
		in, r := &k.list[i], &k.results[i]
		if r.Err = in.invalid; r.Err != nil {
			continue
		}
		var err error
		if r.Receipt, err = tx.ingest(in); errors.Is(err, holdfast.ErrConflict) {
			r.Err = fmt.Errorf("ingest notification %s: %w", in.Notification.ID, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// tell logs what is new, once it is on disk (OI-18).
func (k *ingest) tell(ctx context.Context, log *slog.Logger) {
	if !log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	for i := range k.list {
		if n := &k.list[i].Notification; k.results[i].Err == nil && !k.results[i].Receipt.Duplicate {
			log.LogAttrs(ctx, slog.LevelInfo, "notification stored", slog.String("message_id", string(n.ID)),
				slog.String("site", n.Origin.Site), slog.Int("copies", len(k.list[i].copies)))
		}
	}
}

// ingest writes one notification with its messages, or finds the one that its
// site has sent under its id: first among those whose message is purged, then by its message.
// ErrConflict, by which nothing has been written, is the caller's alone.
func (tx *writeTx) ingest(in *ingested) (holdfast.Receipt, error) {
	r, found, err := tx.knownNotification(in, findArchived, in.id, in.Notification.Origin.Site)
	if err != nil || found {
		return r, err
	}
	if len(in.copies) > 1 { // what is found out too late would leave a part of them
		if r, found, err := tx.knownNotification(in, findNotification, in.id, in.Notification.Origin.Site, in.key); err != nil || found {
			return r, err
		}
		for i := range in.copies {
			taken, err := tx.conn.one(findSeq, exists, in.copies[i].id)
			if err != nil {
				return r, err
			}
			if taken {
				return r, takenID(in.copies[i].m.ID)
			}
		}
	}
	for i := range in.copies {
		e := &in.copies[i]
		switch receipt, err := tx.insert(e); {
		case len(in.copies) == 1 && (receipt.Duplicate || errors.Is(err, holdfast.ErrConflict)): // nothing has been written
			if r, found, err := tx.knownNotification(in, findNotification, in.id, in.Notification.Origin.Site, in.key); err != nil || found {
				return r, err
			}
			return r, takenID(e.m.ID)
		case receipt.Duplicate || errors.Is(err, holdfast.ErrConflict): // it was not there above
			return r, fmt.Errorf("insert message %s: both new and known", e.m.ID)
		case err != nil:
			return r, err
		}
		if err := tx.insertCopy(in, i, tx.last.message); err != nil {
			return r, err
		}
	}
	return holdfast.Receipt{ID: in.Notification.ID, State: holdfast.Pending}, nil
}

func takenID(id holdfast.ID) error {
	return fmt.Errorf("another message has the id %s: %w", id, holdfast.ErrConflict)
}

func (tx *writeTx) knownNotification(in *ingested, find statement, args ...driver.Value) (r holdfast.Receipt, found bool, err error) {
	same := false
	found, err = tx.conn.one(find, func(v []driver.Value) error {
		same = bytes.Equal(asBytes(v[0]), in.Hash[:])
		r = holdfast.Receipt{ID: in.Notification.ID, State: tx.w.db.lanes.shown(asInt(v[1]), holdfast.State(asInt(v[2]))), Duplicate: true}
		return nil
	}, args...)
	if err == nil && found && !same {
		return holdfast.Receipt{}, true, fmt.Errorf("its site has sent the id with other content: %w", holdfast.ErrConflict)
	}
	return r, found, err
}

// insertCopy writes what lists show of one message. The text is in its payload.
func (tx *writeTx) insertCopy(in *ingested, i int, seq int64) error {
	n := &in.Notification
	o := &n.Origin
	var message, enqueued driver.Value
	if i > 0 {
		message = in.copies[i].id
	}
	if !o.Enqueued.IsZero() {
		enqueued = o.Enqueued.UnixMicro()
	}
	_, err := tx.exec(insertNotification, seq, in.id, int64(i), message, in.Channels[i], n.Type, n.List, n.Subject,
		o.Site, o.Instance, o.Script, o.Execution, o.ParentExecution, enqueued, in.Hash[:], tx.now)
	return err
}
