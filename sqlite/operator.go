package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// decision is an operator's requeue or discard of one message. The state it
// starts from is part of each update, so that it never overwrites a pass, and
// no pass overwrites it.
type decision struct {
	db    *DB
	id    holdfast.ID
	to    holdfast.State
	force bool
	ttl   time.Duration
	actor string
	fault error
}

func (k *decision) size() (int, int) { return 1, 256 }

// Requeue implements holdfast.Outbox.
func (db *DB) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	if r.TTL < 0 {
		return holdfast.Record{}, fmt.Errorf("requeue %s: %w: %w", id, holdfast.ErrInvalid,
			&holdfast.FieldError{Field: "ttl", Value: r.TTL.String(), Problem: "must not be negative"})
	}
	return db.decide(ctx, "requeue", &decision{db: db, id: id, to: holdfast.Pending, force: r.Force, ttl: r.TTL, actor: r.Actor})
}

// Discard implements holdfast.Outbox.
func (db *DB) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return db.decide(ctx, "discard", &decision{db: db, id: id, to: holdfast.Discarded, actor: actor})
}

func (db *DB) decide(ctx context.Context, verb string, k *decision) (holdfast.Record, error) {
	id, err := holdfast.ParseID(string(k.id))
	if err != nil {
		return holdfast.Record{}, fmt.Errorf("%s: %w: %w", verb, holdfast.ErrInvalid, err)
	}
	k.id = id
	if err := db.writer.do(ctx, k); err != nil {
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

// operated is the row an operator decides about.
type operated struct {
	seq, lane   int64
	state       holdfast.State
	cycle       int
	tries       int
	okey        string
	destination string
	ttl         time.Duration
}

func (k *decision) apply(tx *writeTx) error {
	k.fault = nil
	var row operated
	found, err := tx.conn.one(findForOperator, func(v []driver.Value) error {
		row = operated{asInt(v[0]), asInt(v[1]), holdfast.State(asInt(v[2])), int(asInt(v[3])), int(asInt(v[4])), asText(v[5]), asText(v[6]), duration(asInt(v[7]))}
		return nil
	}, idValue(k.id))
	if err != nil {
		return err
	}
	if !found {
		k.fault = holdfast.ErrNotFound
		return nil
	}
	// The lifecycle lets pending become many things, but not by a person.
	if !row.state.Final() || !row.state.CanBecome(k.to) {
		k.fault = fmt.Errorf("it is %s: %w", tx.w.db.lanes.shown(row.seq, row.state), holdfast.ErrState)
		return nil
	}
	l, err := tx.lane(row.destination)
	if err != nil {
		return err
	}
	ev := event{message: row.seq, kind: holdfast.GivenUp, state: k.to, cycle: row.cycle, attempt: row.tries, actor: k.actor, reason: string(holdfast.ReasonOperator)}
	if k.to == holdfast.Pending {
		ev.kind, ev.cycle, ev.attempt, ev.reason = holdfast.Requeued, row.cycle+1, 0, ""
		err = tx.requeue(k, &row, l)
	} else {
		_, err = tx.exec(discardOne, row.seq, int64(row.state), tx.tick(), ev.reason)
	}
	if err != nil {
		return err
	}
	tx.moves = append(tx.moves, change{l, row.state, k.to})
	if err := tx.event(&ev); err != nil {
		return err
	}
	if k.to == holdfast.Discarded {
		return tx.keyLeft(l, row.okey) // a strict key may have waited for it
	}
	return nil
}

func (tx *writeTx) requeue(k *decision, row *operated, l *lane) error {
	due, expires := tx.tick(), int64(never)
	if ttl := cmp.Or(k.ttl, row.ttl); ttl > 0 {
		expires = after(due, ttl)
	}
	blocked := false
	if row.okey != "" {
		// The key may have another head by now.
		var err error
		if blocked, err = tx.keyIsBlocked(l, row.okey, row.seq); err != nil {
			return err
		}
		if blocked {
			due = expires
		}
	}
	if _, err := tx.exec(requeueOne, row.seq, int64(row.state), due, nullInstant(expires), asBit(k.force), asBit(blocked)); err != nil {
		return err
	}
	tx.expires(expires)
	tx.fresh = append(tx.fresh, freshRow{lane: l, due: due})
	return nil
}

// Counts implements holdfast.Outbox from memory.
func (db *DB) Counts() holdfast.Counts {
	ls := db.lanes
	c := holdfast.Counts{
		Lanes: map[string]holdfast.LaneCounts{},
		Inbox: max(db.inboxSize.Load(), 0), Kept: db.keptSize.Load(),
		Received: db.received.Load(), Duplicates: db.duplicates.Load(),
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for name, l := range ls.byName {
		c.Lanes[name] = l.counts
		c.Pending += l.counts.Pending
		c.Parked += l.counts.Parked
		c.Expired += l.counts.Expired
	}
	c.Claimed = int64(len(ls.leases))
	return c
}
