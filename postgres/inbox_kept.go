package postgres

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

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
	err = db.read(ctx, which, args, func(rows pgx.Rows) error {
		var seq, received int64
		var id []byte
		var m holdfast.Message
		var headers, corr *string
		if err := rows.Scan(&seq, &id, &m.Source, &m.Endpoint, &received, &m.Kind, &m.Payload, &headers, &corr); err != nil {
			return err
		}
		m.ID, m.CorrelationID = idFrom(id), text(corr)
		k := holdfast.KeptMessage{Message: m, Received: time.UnixMicro(received)}
		if headers != nil {
			if err := json.Unmarshal([]byte(*headers), &k.Message.Headers); err != nil {
				db.log.ErrorContext(ctx, "a kept message is damaged: listed without its content", slog.String("message_id", string(m.ID)), slog.Any("error", err))
				k.Damaged, k.Message.Payload, k.Message.Headers = true, nil, nil
			}
		}
		p.Messages = append(p.Messages, k)
		if len(p.Messages) == limit {
			p.Next = seq
		}
		return nil
	})
	if err != nil {
		return holdfast.KeptPage{}, fmt.Errorf("list kept messages: %w", err)
	}
	return p, nil
}

// Sources implements holdfast.InboxLog.
func (db *DB) Sources(ctx context.Context, id holdfast.ID) ([]string, error) {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return nil, fmt.Errorf("look for incoming message: %w: %w", holdfast.ErrInvalid, err)
	}
	var waiting, done []string
	if err := db.read(ctx, sourcesOf, []any{idBytes(id)}, func(rows pgx.Rows) error {
		var source string
		var kept bool
		err := rows.Scan(&source, &kept)
		if kept {
			waiting = append(waiting, source)
		} else {
			done = append(done, source)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for incoming message %s: %w", id, err)
	}
	if len(waiting) > 0 {
		return waiting, nil
	}
	return done, nil
}

// Done implements holdfast.InboxLog.
func (db *DB) Done(ctx context.Context, source string, id holdfast.ID, response []byte) error {
	id, err := holdfast.ParseID(string(id))
	if err != nil {
		return fmt.Errorf("done: %w: %w", holdfast.ErrInvalid, err)
	}
	if err := db.usable(ctx); err != nil {
		return fmt.Errorf("done %s: %w", id, err)
	}
	var fault error
	if err := db.unbound(ctx, func(tx *ownTx) error {
		fault = holdfast.ErrNotFound
		tx.proof = proof{rows: &proofRows{isKept, []any{source, idBytes(id)}}, unless: true}
		return tx.query(finishKept, []any{source, idBytes(id), response}, func(rows pgx.Rows) error {
			var kept bool
			var before []byte
			err := rows.Scan(&kept, &before)
			fault = nil
			if kept {
				tx.countInbox(0, -1)
			} else if !bytes.Equal(before, response) {
				fault = fmt.Errorf("it is done already, with another response: %w", holdfast.ErrState)
			}
			return err
		})
	}); err != nil {
		return fmt.Errorf("done %s: %w", id, err)
	}
	if fault != nil {
		return fmt.Errorf("done %s from %s: %w", id, source, fault)
	}
	return nil
}
