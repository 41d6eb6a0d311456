package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// incoming is a message on its way into the inbox, with its canonical id.
type incoming struct {
	m       holdfast.Message
	id      driver.Value
	hash    []byte
	headers driver.Value
}

func newIncoming(m holdfast.Message) (in incoming, err error) {
	if err := holdfast.NormalizeIncoming(&m); err != nil {
		return in, err
	}
	in = incoming{m: m, id: idValue(m.ID), hash: m.ContentHash()}
	if len(m.Headers) > 0 {
		b, err := json.Marshal(m.Headers)
		if err != nil {
			return in, fmt.Errorf("encode headers: %w", err)
		}
		in.headers = string(b)
	}
	return in, nil
}

// inboxEntry is what the inbox knows about an incoming message.
type inboxEntry struct {
	known   bool
	kept    bool
	seq     int64
	receipt holdfast.Receipt
	err     error // ErrConflict or ErrTooOld
}

// look looks the message's id up.
func (in *incoming) look(tx *writeTx, source int64, retention time.Duration) (inboxEntry, error) {
	var v inboxEntry
	var hash []byte
	found, err := tx.conn.one(findInbox, func(row []driver.Value) error {
		v = inboxEntry{known: true, seq: asInt(row[0]), kept: asInt(row[2]) == 1}
		hash = asBytes(row[1])
		v.receipt = tx.w.db.answered(&in.m, asBytes(row[3]), row[4])
		return nil
	}, source, in.id)
	switch {
	case err != nil:
		return v, err
	case found && len(hash) > 0 && !bytes.Equal(hash, in.hash): // without a hash, only the id was salvaged
		v.err = fmt.Errorf("receive %s from %s: %w", in.m.ID, in.m.Source, holdfast.ErrConflict)
	case !found && in.m.Attempt.Forgotten(retention):
		v.err = fmt.Errorf("receive %s from %s: first tried %s ago, ids are remembered for %s: %w",
			in.m.ID, in.m.Source, in.m.Attempt.FirstAgo.Round(time.Second), retention, holdfast.ErrTooOld)
	}
	return v, nil
}

// source interns a sender's name. Only the writer calls it.
func (tx *writeTx) source(name string) (int64, error) {
	known := tx.w.db.sources
	if tx.private != nil {
		known = tx.private.sources
	}
	if n, ok := known[name]; ok {
		return n, nil
	}
	if _, err := tx.exec(insertSource, name); err != nil {
		return 0, err
	}
	var n int64
	if _, err := tx.conn.one(findSource, func(v []driver.Value) error {
		n = asInt(v[0])
		return nil
	}, name); err != nil {
		return 0, err
	}
	if len(known) >= routeCache {
		clear(known)
	}
	known[name] = n
	tx.undo = append(tx.undo, func() { delete(known, name) })
	return n, nil
}

// remember inserts the id. A seq of 0 means that another row has the id.
func (tx *writeTx) remember(in *incoming, source int64, kept bool, response []byte, retention time.Duration) (int64, error) {
	now := tx.tick()
	var processed driver.Value
	if !kept {
		processed = now
	}
	seq, err := tx.conn.insert(insertInbox, source, in.id, in.m.Endpoint, in.hash, asBit(kept), now, processed,
		after(now, in.m.Attempt.Memory(retention)), nullBytes(response), answerHash(in.m.ID, response))
	if err != nil || seq == 0 {
		return 0, err
	}
	tx.inboxed++
	tx.wrote(&tx.first.inbox, &tx.last.inbox, seq)
	e := holdfast.Entry{Kind: holdfast.Handled, ID: in.m.ID, Subject: in.m.Source}
	if kept {
		e.Kind = holdfast.KeptToFetch
	}
	if tx.followed() {
		e.Detail = detail("endpoint", in.m.Endpoint)
	}
	return seq, tx.note(0, &e)
}

// Process implements holdfast.InboxStore: the id first, then the handler, then the response, in one
// commit. Duplicates that arrive at the same time wait for each other, since there is one writer.
func (db *DB) Process(ctx context.Context, m holdfast.Message, retention time.Duration, h holdfast.Handler[*Tx]) (holdfast.Receipt, error) {
	in, err := newIncoming(m)
	if err == nil {
		err = db.ready()
	}
	if err != nil {
		return holdfast.Receipt{}, fmt.Errorf("process: %w", err)
	}
	var receipt holdfast.Receipt
	began := time.Now()
	if full := db.room.refusal(); full != nil {
		known, err := db.recognise(ctx, retention, full, in.m)
		if err != nil {
			return holdfast.Receipt{}, fmt.Errorf("process: %w", err)
		}
		db.observeReceived(&in.m, known[0].Receipt.Duplicate, time.Since(began), known[0].Err)
		return known[0].Receipt, known[0].Err
	}
	err = db.Do(ctx, func(ctx context.Context, tx *Tx) (err error) {
		receipt, err = tx.process(ctx, &in, retention, h)
		return err
	})
	db.observeReceived(&in.m, receipt.Duplicate, time.Since(began), err)
	if err != nil {
		return holdfast.Receipt{}, err
	}
	return receipt, nil
}

// arrive inserts the id if it is new. Inside a write transaction nobody else can write between the
// insert and the look.
func (in *incoming) arrive(tx *writeTx, retention time.Duration) (v inboxEntry, seq int64, err error) {
	source, err := tx.source(in.m.Source)
	if err != nil {
		return v, 0, err
	}
	// Most messages are new, so the insert finds out. A message that may have been known and
	// forgotten is looked up first.
	if !in.m.Attempt.Forgotten(retention) {
		if seq, err = tx.remember(in, source, false, nil, retention); err != nil || seq != 0 {
			return v, seq, err
		}
	}
	v, err = in.look(tx, source, retention)
	if err == nil && !v.known && v.err == nil {
		err = fmt.Errorf("remember %s: neither new nor known", in.m.ID)
	}
	return v, 0, err
}

func (db *DB) observeReceived(m *holdfast.Message, duplicate bool, took time.Duration, err error) {
	if err == nil {
		db.received.Add(1)
		if duplicate {
			db.duplicates.Add(1)
		}
	}
	if o := db.opts.Observer; o != nil {
		o.ObserveReceived(holdfast.ReceivedInfo{Source: m.Source, Endpoint: m.Endpoint, Duplicate: duplicate, Took: took, Err: err})
	}
}

// Inbox returns an inbox that remembers ids in this file. Each call returns a new one without
// handlers: keep the one with which handlers are registered.
func (db *DB) Inbox() *holdfast.Inbox[*Tx] { return &holdfast.Inbox[*Tx]{Store: db} }

func nullBytes(b []byte) driver.Value {
	if b == nil {
		return nil
	}
	return b
}
