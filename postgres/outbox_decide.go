package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// decision is an operator's decision about one message. The row is locked before its state is read,
// so that the decision never overwrites another one, and no pass overwrites the decision.
type decision struct {
	id    holdfast.ID
	verb  holdfast.Verb
	force bool
	ttl   time.Duration // new TTL after a requeue
	in    time.Duration // time until the next attempt after a reschedule
	actor string
	now   int64
	fault error
	twice bool // the message is looked up for the second time
}

// Requeue implements holdfast.Outbox.
func (db *DB) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	return db.decide(ctx, &decision{id: id, verb: holdfast.VerbRequeue, force: r.Force, ttl: r.TTL, actor: r.Actor})
}

// Discard implements holdfast.Outbox.
func (db *DB) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return db.decide(ctx, &decision{id: id, verb: holdfast.VerbDiscard, actor: actor})
}

// Reschedule implements holdfast.Outbox.
func (db *DB) Reschedule(ctx context.Context, id holdfast.ID, r holdfast.Reschedule) (holdfast.Record, error) {
	return db.decide(ctx, &decision{id: id, verb: holdfast.VerbReschedule, in: r.In, actor: r.Actor})
}

func (db *DB) decide(ctx context.Context, k *decision) (holdfast.Record, error) {
	id, err := k.verb.Check(k.id, k.ttl, k.in)
	if err != nil {
		return holdfast.Record{}, err
	}
	k.id = id
	if err := db.usable(ctx); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, err)
	}
	if k.now, err = db.askClock(ctx); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, err)
	}
	if err := db.unbound(ctx, func(tx *ownTx) error {
		k.twice = false // reset for each try of the transaction
		return tx.decide(k)
	}); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, err)
	}
	if k.fault != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, k.fault)
	}
	// The decision is committed. It stands even if the caller's ctx has ended, or if the record
	// cannot be read.
	r, err := db.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		db.log.ErrorContext(ctx, "decision made, record not read", slog.String("message_id", string(id)), slog.Any("error", err))
		r = holdfast.Record{Message: holdfast.Message{ID: id}, State: k.verb.LeadsTo()}
	}
	return r, nil
}

// operated is the message of a decision.
type operated struct {
	seq, ttl         int64
	lane             int32
	key, destination string

	found   bool
	state   holdfast.State
	givenUp bool
	expires int64 // while it is not final
	lasts   int64 // its lifetime, which ends at expires
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
	if err := tx.lockOperated(&row); err != nil {
		return err
	}
	switch {
	case !row.found && !k.twice: // it became final just now, or was purged
		k.twice = true
		return tx.decide(k)
	case !row.found:
		k.fault = holdfast.ErrNotFound
		return nil
	case row.givenUp:
		k.fault = fmt.Errorf("it is %s, and is discarded when that attempt has ended: %w", row.state, holdfast.ErrState)
		return nil
	case !k.verb.From(row.state):
		k.fault = fmt.Errorf("it is %s: %w", row.state, holdfast.ErrState)
		return nil
	}
	if err := tx.carryOut(k, &row); err != nil || k.fault != nil {
		return err
	}
	tx.wakes(row.lane)
	tx.after = append(tx.after, func() { tx.db.claim.rewind(row.lane) })
	return tx.placeKeys(keys)
}

// lockOperated reads the state of the message, and locks it.
func (tx *ownTx) lockOperated(row *operated) error {
	if err := tx.query(lockFinal, []any{row.seq}, func(rows pgx.Rows) error {
		var state int16
		err := rows.Scan(&state)
		row.found, row.state = true, holdfast.State(state)
		return err
	}); err != nil || row.found {
		return err
	}
	return tx.query(lockQueued, []any{row.seq}, func(rows pgx.Rows) error {
		var claimed bool
		err := rows.Scan(&claimed, &row.givenUp, &row.expires, &row.lasts)
		if row.found = true; row.expires == never {
			row.lasts = 0
		}
		if claimed {
			row.state = holdfast.Claimed
		}
		return err
	})
}

// carryOut changes a locked row.
func (tx *ownTx) carryOut(k *decision, row *operated) error {
	reason, actor := string(holdfast.ReasonOperator), nullText(cleanText(k.actor))
	switch {
	case k.verb == holdfast.VerbRequeue:
		tx.count(row.lane, moved(row.state, holdfast.Pending))
		return tx.exec(requeueOne, row.seq, cmp.Or(micros(k.ttl), row.ttl), k.force, actor)
	case k.verb == holdfast.VerbReschedule:
		return tx.reschedule(k, row, actor)
	case row.state == holdfast.Claimed:
		return tx.exec(markGivenUp, row.seq, reason, actor)
	case row.state == holdfast.Pending:
		return tx.discardQueued([]int64{row.seq}, actor)
	}
	tx.count(row.lane, moved(row.state, holdfast.Discarded))
	return tx.exec(discardFinal, []int64{row.seq}, reason, actor)
}

// reschedule restarts the TTL of a pending message that would have expired by the clock, but is
// held.
func (tx *ownTx) reschedule(k *decision, row *operated, actor *string) error {
	guard, ttl := tx.db.clock.guard, int64(0)
	left := duration(guard.EndByClock(row.expires, row.lasts) - k.now)
	switch {
	case row.state == holdfast.Pending && guard.Judge(k.now, row.expires, row.lasts) == belief.Held:
		ttl = cmp.Or(row.ttl, row.lasts)
	case k.in >= left:
		k.fault = k.verb.TooLate(k.in, left)
		return nil
	}
	return tx.exec(reschedule, row.seq, micros(k.in), actor, ttl)
}

func (tx *ownTx) discardQueued(seqs []int64, actor *string) error {
	return tx.query(discardQueued, []any{seqs, string(holdfast.ReasonOperator), actor}, func(rows pgx.Rows) error {
		var lane int32
		err := rows.Scan(&lane)
		tx.count(lane, moved(holdfast.Pending, holdfast.Discarded))
		return err
	})
}

// endGivenUp discards messages that were given up while in hand, and are no longer in hand.
func (tx *ownTx) endGivenUp() error {
	for {
		var seqs []int64
		var keys []orderingKey
		if err := tx.query(givenUp, []any{sweepWrite}, func(rows pgx.Rows) error {
			var seq int64
			var k orderingKey
			err := rows.Scan(&seq, &k.lane, &k.key)
			if seqs = append(seqs, seq); k.key != "" {
				keys = append(keys, k)
			}
			return err
		}); err != nil || len(seqs) == 0 {
			return err
		}
		if err := tx.lockKeys(keys); err != nil {
			return err
		}
		if err := tx.discardQueued(seqs, nil); err != nil {
			return err
		}
		if err := tx.placeKeys(keys); err != nil || len(seqs) < sweepWrite {
			return err
		}
	}
}

// moved returns the effect of a change of state on the counters.
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
