package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
)

// Kept implements holdfast.InboxLog.
func (db *DB) Kept(ctx context.Context, q holdfast.KeptQuery) (p holdfast.KeptPage, err error) {
	limit := q.Limit
	if limit == 0 {
		limit = 50
	}
	limit = min(max(limit, 1), 500)
	which, args := keptAll, []any{q.After, limit}
	if q.Endpoint != "" {
		which, args = keptOf, append(args, q.Endpoint)
	}
	rows, err := db.query(ctx, which, args...)
	if err != nil {
		return p, fmt.Errorf("list kept messages: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	damaged := false
	for rows.Next() {
		v, err := values(rows, 10)
		if err != nil {
			return p, fmt.Errorf("list kept messages: %w", err)
		}
		k := db.keptMessage(v)
		if k.Damaged {
			damaged = true
			db.log.ErrorContext(ctx, "a kept message is damaged: listed without its content", slog.String("message_id", string(k.Message.ID)))
		}
		p.Messages = append(p.Messages, k)
		if len(p.Messages) == limit {
			p.Next = asInt(v[0])
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || !damaged {
		return p, err
	}
	// One damaged message is listed as damaged, but damaged names affect many. Check them only now:
	// there may be one connection.
	if err := db.checkNames(ctx); err != nil {
		return holdfast.KeptPage{}, fmt.Errorf("list kept messages: %w", db.noted(err))
	}
	return p, nil
}

// keptMessage makes a message from a row of keptColumns.
func (db *DB) keptMessage(v []any) holdfast.KeptMessage {
	k := holdfast.KeptMessage{
		Message: holdfast.Message{
			ID: idFrom(v[1]), Source: asText(v[2]), Endpoint: asText(v[3]), Kind: holdfast.Kind(asText(v[5])), Payload: payload(v[6]), CorrelationID: asText(v[8]),
		},
		Received: db.clock.wall(asInt(v[4])),
	}
	if !keptIntact(&k.Message, asText(v[7]), v[9]) || v[7] != nil && json.Unmarshal([]byte(asText(v[7])), &k.Message.Headers) != nil {
		k.Damaged, k.Message.Payload, k.Message.Headers = true, nil, nil
	}
	return k
}

// Sources implements holdfast.InboxLog.
func (db *DB) Sources(ctx context.Context, id holdfast.ID) (list []string, err error) {
	id, err = holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("look for incoming message: %w: %w", holdfast.ErrInvalid, err)
	}
	rows, err := db.query(ctx, sourcesOf, idValue(id))
	if err != nil {
		return nil, fmt.Errorf("look for incoming message %s: %w", id, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var waiting, done []string
	for rows.Next() {
		var source string
		var kept bool
		if err := rows.Scan(&source, &kept); err != nil {
			return nil, fmt.Errorf("look for incoming message %s: %w", id, err)
		}
		if kept {
			waiting = append(waiting, source)
		} else {
			done = append(done, source)
		}
	}
	if len(waiting) > 0 {
		return waiting, rows.Err()
	}
	return done, rows.Err()
}

// finishKept ends a kept message.
type finishKept struct {
	source   string
	id       holdfast.ID
	response []byte
	fault    error
}

func (k *finishKept) size() (int, int) { return 2, len(k.response) }

func (k *finishKept) apply(tx *writeTx) error {
	k.fault = nil
	var source, seq int64
	var kept bool
	var answer driver.Value
	found, err := tx.conn.one(findSource, func(v []driver.Value) error {
		source = asInt(v[0])
		return nil
	}, k.source)
	if err == nil && found {
		found, err = tx.conn.one(findInbox, func(v []driver.Value) error {
			seq, kept, answer = asInt(v[0]), asInt(v[2]) == 1, v[4]
			return nil
		}, source, idValue(k.id))
	}
	switch {
	case err != nil:
		return err
	case !found:
		k.fault = holdfast.ErrNotFound
		return nil
	case !kept && !answerIntact(k.id, k.response, answer):
		k.fault = fmt.Errorf("it is done already, with another response: %w", holdfast.ErrState)
		return nil
	case !kept:
		return nil
	}
	n, err := tx.exec(finishInbox, seq, tx.tick(), nullBytes(k.response), answerHash(k.id, k.response))
	if err != nil || n == 0 {
		return err
	}
	tx.kept--
	if _, err = tx.exec(deleteInboxBody, seq); err != nil {
		return err
	}
	return tx.note(0, &holdfast.Entry{Kind: holdfast.Handled, ID: k.id, Subject: k.source})
}

// Done implements holdfast.InboxLog.
func (db *DB) Done(ctx context.Context, source string, id holdfast.ID, response []byte) error {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return fmt.Errorf("done: %w: %w", holdfast.ErrInvalid, err)
	}
	k := &finishKept{source: source, id: id, response: response}
	if err := db.writer.do(ctx, k); err != nil {
		return fmt.Errorf("done %s: %w", id, err)
	}
	if k.fault != nil {
		return fmt.Errorf("done %s from %s: %w", id, source, k.fault)
	}
	return nil
}
