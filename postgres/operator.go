package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// decision is an operator's requeue or discard of one message. The row is
// locked before its state is looked at, so that it never overwrites another
// operator's, and no pass overwrites it.
type decision struct {
	id    holdfast.ID
	to    holdfast.State
	force bool
	ttl   time.Duration
	actor string
	fault error
	twice bool // it was looked for a second time
}

// Requeue implements holdfast.Outbox.
func (db *DB) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if r.TTL < 0 {
		return holdfast.Record{}, fmt.Errorf("requeue %s: %w: %w", id, holdfast.ErrInvalid,
			&holdfast.FieldError{Field: "ttl", Value: r.TTL.String(), Problem: "must not be negative"})
	}
	return db.decide(ctx, "requeue", &decision{id: id, to: holdfast.Pending, force: r.Force, ttl: r.TTL, actor: r.Actor})
}

// Discard implements holdfast.Outbox.
func (db *DB) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return db.decide(ctx, "discard", &decision{id: id, to: holdfast.Discarded, actor: actor})
}

func (db *DB) decide(ctx context.Context, verb string, k *decision) (holdfast.Record, error) {
	id, err := holdfast.ParseID(string(k.id))
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("%s: %w: %w", verb, holdfast.ErrInvalid, err)
	}
	k.id = id
	if err := db.usable(ctx); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if err := db.own(ctx, func(tx *ownTx) error {
		k.twice = false // of this transaction
		return tx.decide(k)
	}); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", verb, id, err)
	}
	if k.fault != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", verb, id, k.fault)
	}
	// It has been done, whoever still waits for it, and also if it cannot be
	// shown.
	r, err := db.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		db.log.ErrorContext(ctx, "decision made, record not read", slog.String("message_id", string(id)), slog.Any("error", err))
		r = holdfast.Record{Message: holdfast.Message{ID: id}, State: k.to}
	}
	return r, nil
}

// operated is the message that an operator decides about.
type operated struct {
	seq, ttl         int64
	lane             int32
	key, destination string

	final        bool
	state        int16
	cycle, tries int
}

func (tx *ownTx) decide(k *decision) error {
	k.fault = nil
	var row operated
	if err := tx.query(findOperated, []any{idBytes(k.id)}, func(rows pgx.Rows) error {
		return rows.Scan(&row.seq, &row.lane, &row.key, &row.destination, &row.ttl)
	}); err != nil {
		return err
	}
	if row.seq == 0 {
		k.fault = holdfast.ErrNotFound
		return nil
	}
	var keys []orderingKey
	if row.key != "" {
		keys = []orderingKey{{row.lane, row.key}}
	}
	if err := tx.lockKeys(keys); err != nil {
		return err
	}
	if err := tx.query(lockFinal, []any{row.seq}, func(rows pgx.Rows) error {
		row.final = true
		return rows.Scan(&row.state, &row.cycle, &row.tries)
	}); err != nil {
		return err
	}
	state := holdfast.State(row.state)
	if !row.final || !state.CanBecome(k.to) {
		return tx.refuse(k, &row, state)
	}
	var err error
	if k.to == holdfast.Pending {
		err = tx.exec(requeueOne, row.seq, cmp.Or(micros(k.ttl), row.ttl), k.force, nullText(cleanText(k.actor)))
	} else {
		err = tx.exec(discardOne, row.seq, string(holdfast.ReasonOperator), nullText(cleanText(k.actor)))
	}
	if err != nil {
		return err
	}
	tx.count(row.lane, moved(state, k.to))
	tx.wakes(row.lane)
	tx.after = append(tx.after, func() { tx.db.claim.rewind(row.lane) })
	return tx.placeKeys(keys)
}

// refuse says in which state the message is.
func (tx *ownTx) refuse(k *decision, row *operated, state holdfast.State) error {
	if !row.final {
		queued := false
		if err := tx.query(isQueued, []any{row.seq}, func(rows pgx.Rows) error {
			var claimed bool
			err := rows.Scan(&claimed)
			if queued = true; claimed {
				state = holdfast.Claimed
			}
			return err
		}); err != nil {
			return err
		}
		if !queued && !k.twice { // it became final this moment, or was purged
			k.twice = true
			return tx.decide(k)
		}
		if !queued {
			k.fault = holdfast.ErrNotFound
			return nil
		}
	}
	k.fault = fmt.Errorf("it is %s: %w", state, holdfast.ErrState)
	return nil
}

// moved is what a change of state does to the counters.
func moved(from, to holdfast.State) (c holdfast.LaneCounts) {
	for state, n := range map[holdfast.State]int64{from: -1, to: 1} {
		switch state {
		case holdfast.Pending, holdfast.Claimed:
			c.Pending += n
		case holdfast.Parked:
			c.Parked += n
		case holdfast.Expired:
			c.Expired += n
		case holdfast.Delivered, holdfast.Discarded:
		}
	}
	return c
}
