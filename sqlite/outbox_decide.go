package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// decision is an operator's decision about one message. Each update names the state that it starts
// from, so that a decision never overwrites a pass, and a pass never overwrites a decision.
type decision struct {
	db    *DB
	id    holdfast.ID
	verb  holdfast.Verb
	force bool
	ttl   time.Duration // for a requeue
	in    time.Duration // for a reschedule
	actor string
	fault error
}

func (k *decision) size() (int, int) { return 1, 256 }

// Requeue implements holdfast.Outbox.
func (db *DB) Requeue(ctx context.Context, id holdfast.ID, r holdfast.Requeue) (holdfast.Record, error) {
	return db.decide(ctx, &decision{db: db, id: id, verb: holdfast.VerbRequeue, force: r.Force, ttl: r.TTL, actor: r.Actor})
}

// Discard implements holdfast.Outbox.
func (db *DB) Discard(ctx context.Context, id holdfast.ID, actor string) (holdfast.Record, error) {
	return db.decide(ctx, &decision{db: db, id: id, verb: holdfast.VerbDiscard, actor: actor})
}

// Reschedule implements holdfast.Outbox.
func (db *DB) Reschedule(ctx context.Context, id holdfast.ID, r holdfast.Reschedule) (holdfast.Record, error) {
	return db.decide(ctx, &decision{db: db, id: id, verb: holdfast.VerbReschedule, in: r.In, actor: r.Actor})
}

func (db *DB) decide(ctx context.Context, k *decision) (holdfast.Record, error) {
	id, err := k.verb.Check(k.id, k.ttl, k.in)
	if err != nil {
		return holdfast.Record{}, err
	}
	k.id = id
	if err := db.writer.do(ctx, k); err != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, err)
	}
	if k.fault != nil {
		return holdfast.Record{}, fmt.Errorf("%s %s: %w", k.verb, id, k.fault)
	}
	// The decision is made, even if its caller no longer waits or the row cannot be read.
	r, err := db.Get(context.WithoutCancel(ctx), id)
	if err != nil {
		db.log.ErrorContext(ctx, "decision made, record not read", slog.String("message_id", string(id)), slog.Any("error", err))
		r = holdfast.Record{Message: holdfast.Message{ID: id}, State: k.verb.LeadsTo()}
	}
	return r, nil
}

// operated is the row that an operator decides about.
type operated struct {
	seq          int64
	state        holdfast.State // in the table
	shown        holdfast.State // as people see it: a leased message is claimed
	cycle, tries int
	okey         string
	lane         *lane
	ttl          time.Duration
	expires      int64
	lasts        int64 // from the begin of its time to expires
	blocked      bool
	givenUp      bool
}

func (k *decision) apply(tx *writeTx) error {
	k.fault = nil
	row, err := k.find(tx)
	if err != nil || k.fault != nil {
		return err
	}
	switch {
	case row.givenUp && !row.shown.Final():
		k.fault = fmt.Errorf("it is %s, and is discarded when that attempt has ended: %w", row.shown, holdfast.ErrState)
		return nil
	case !k.verb.From(row.shown):
		k.fault = fmt.Errorf("it is %s: %w", row.shown, holdfast.ErrState)
		return nil
	}
	switch k.verb {
	case holdfast.VerbRequeue:
		return tx.requeue(k, &row)
	case holdfast.VerbDiscard:
		return tx.discard(k, &row)
	case holdfast.VerbReschedule:
		return tx.reschedule(k, &row)
	}
	return fmt.Errorf("%s: %w", k.verb, holdfast.ErrState)
}

func (k *decision) find(tx *writeTx) (row operated, err error) {
	destination := ""
	found, err := tx.conn.one(findForOperator, func(v []driver.Value) error {
		row = operated{
			seq: asInt(v[0]), state: holdfast.State(asInt(v[1])), cycle: int(asInt(v[2])), tries: int(asInt(v[3])), okey: asText(v[4]),
			ttl: duration(asInt(v[6])), expires: never, blocked: asInt(v[8]) == 1, givenUp: asInt(v[9]) == 1, lasts: asInt(v[10]),
		}
		if destination = asText(v[5]); v[7] != nil {
			row.expires = asInt(v[7])
		}
		return nil
	}, idValue(k.id))
	if err != nil {
		return row, err
	}
	if !found {
		k.fault = holdfast.ErrNotFound
		return row, nil
	}
	row.shown = row.state
	if row.state == holdfast.Pending && tx.holds(row.seq) {
		row.shown = holdfast.Claimed
	}
	row.lane, err = tx.lane(destination)
	return row, err
}

func (tx *writeTx) requeue(k *decision, row *operated) error {
	due, expires := tx.tick(), int64(never)
	if ttl := cmp.Or(k.ttl, row.ttl); ttl > 0 {
		expires = after(due, ttl)
	}
	keyed := row.okey != ""
	if keyed { // it is released as a message that waits for its key
		due = expires
		if _, err := tx.exec(clearStart, row.seq); err != nil {
			return err
		}
	}
	if _, err := tx.exec(requeueOne, row.seq, int64(row.state), due, nullInstant(expires), asBit(k.force), asBit(keyed)); err != nil {
		return err
	}
	tx.expires(expires)
	tx.moves = append(tx.moves, change{row.lane, row.state, holdfast.Pending})
	if err := tx.event(&event{message: row.seq, kind: holdfast.Requeued, state: holdfast.Pending, cycle: row.cycle + 1, actor: k.actor}); err != nil {
		return err
	}
	if !keyed {
		tx.fresh = append(tx.fresh, freshRow{lane: row.lane, due: due})
	}
	return tx.placeKey(row.lane, row.okey)
}

func (tx *writeTx) discard(k *decision, row *operated) error {
	// If another process may have it in hand, that process ends it: one beside the owner cannot
	// know.
	if !row.shown.Final() && !tx.takesBack(row.lane, row.seq) {
		if _, err := tx.exec(markGivenUp, row.seq, int64(row.state)); err != nil {
			return err
		}
		tx.w.db.marks.Store(true)
		return tx.event(&event{
			message: row.seq, kind: holdfast.GivenUp, state: row.shown, cycle: row.cycle, attempt: row.tries,
			reason: string(holdfast.ReasonOperator), actor: k.actor,
		})
	}
	return tx.giveUp(row, k.actor)
}

// giveUp discards a message that nobody has in hand.
func (tx *writeTx) giveUp(row *operated, actor string) error {
	reason := string(holdfast.ReasonOperator)
	if _, err := tx.exec(discardOne, row.seq, int64(row.state), tx.tick(), reason); err != nil {
		return err
	}
	tx.moves = append(tx.moves, change{row.lane, row.state, holdfast.Discarded})
	if err := tx.event(&event{
		message: row.seq, kind: holdfast.GivenUp, state: holdfast.Discarded, cycle: row.cycle, attempt: row.tries, reason: reason, actor: actor,
	}); err != nil {
		return err
	}
	return tx.placeKey(row.lane, row.okey)
}

func (tx *writeTx) reschedule(k *decision, row *operated) error {
	now := tx.tick()
	due, expires, code := after(now, k.in), driver.Value(nil), ""
	if tx.isHeld(row, now) {
		end := after(due, cmp.Or(row.ttl, duration(row.lasts)))
		expires, code = end, holdfast.CodeRenewed
		tx.expires(end)
	} else if end := tx.w.db.clock.guard.EndByClock(row.expires, row.lasts); due >= end {
		k.fault = k.verb.TooLate(k.in, span(now, end))
		return nil
	}
	if !tx.takesBack(row.lane, row.seq) {
		tx.w.db.marks.Store(true)
	}
	if _, err := tx.exec(rescheduleOne, row.seq, int64(row.state), due, expires); err != nil {
		return err
	}
	if row.blocked {
		if _, err := tx.exec(setStart, row.seq, due); err != nil {
			return err
		}
	} else {
		tx.fresh = append(tx.fresh, freshRow{lane: row.lane, due: due})
	}
	return tx.event(&event{
		message: row.seq, kind: holdfast.Rescheduled, state: row.shown, cycle: row.cycle, attempt: row.tries, took: micros(k.in), actor: k.actor, code: code,
	})
}

// isHeld reports whether the message is pending and would have expired if the clock were believed.
func (tx *writeTx) isHeld(row *operated, now int64) bool {
	return row.shown == holdfast.Pending && tx.w.db.clock.judge(now, row.expires, row.lasts) == belief.Held
}

// holds reports whether a dispatcher has the message in hand, as far as this process knows.
func (tx *writeTx) holds(seq int64) bool {
	if _, over := tx.ended[seq]; over {
		return false
	}
	ls := tx.w.db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	_, leased := ls.leases[seq]
	return leased
}

// takesBack makes sure that nobody has a pending message in hand or gets it from memory. Only the
// owner can do so.
func (tx *writeTx) takesBack(l *lane, seq int64) bool {
	if !tx.w.db.owns.Load() {
		return false
	}
	if _, over := tx.ended[seq]; over {
		return true
	}
	return tx.w.db.lanes.untake(l, seq)
}

// endGivenUp discards a message that was given up while it was in hand, and reports whether it was.
func (tx *writeTx) endGivenUp(seq int64) (ended bool, err error) {
	row := operated{seq: seq}
	destination, actor := "", ""
	ended, err = tx.conn.one(givenUpRow, func(v []driver.Value) error {
		row.state, row.cycle, row.tries, row.okey = holdfast.State(asInt(v[0])), int(asInt(v[1])), int(asInt(v[2])), asText(v[3])
		destination, actor = asText(v[4]), asText(v[5])
		return nil
	}, seq)
	if err != nil || !ended {
		return false, err
	}
	if row.lane, err = tx.lane(destination); err != nil {
		return false, err
	}
	return true, tx.giveUp(&row, actor)
}

// carryOut carries out decisions that wait for the owner. Every transaction begins with them.
func (db *DB) carryOut(ctx context.Context) error {
	if !db.decided.Load() || !db.owns.Load() {
		return nil
	}
	return db.writer.do(ctx, workFunc(func(*writeTx) error { return nil }))
}

// carryOutAtStart leaves decisions that it cannot carry out to the next transaction.
func (db *DB) carryOutAtStart(ctx context.Context) {
	if err := db.carryOut(context.WithoutCancel(ctx)); err != nil {
		db.log.ErrorContext(ctx, "earlier discards are not carried out yet: the next write does it", slog.Any("error", err))
	}
}

// carryOut does the owner's part of decisions that other processes have made, or that were open
// when the owner before died.
func (tx *writeTx) carryOut() error {
	db := tx.w.db
	type marked struct {
		seq         int64
		destination string
	}
	var list []marked
	if err := tx.conn.each(givenUpRows, func(v []driver.Value) error {
		list = append(list, marked{asInt(v[0]), asText(v[1])})
		return nil
	}); err != nil {
		return err
	}
	for _, m := range list {
		l, err := tx.lane(m.destination)
		if err != nil {
			return err
		}
		if !tx.takesBack(l, m.seq) {
			continue // its settlement ends it
		}
		if _, err := tx.endGivenUp(m.seq); err != nil {
			return err
		}
	}
	type key struct{ destination, key string }
	var keys []key
	if err := tx.conn.each(requeuedKeys, func(v []driver.Value) error {
		keys = append(keys, key{asText(v[0]), asText(v[1])})
		return nil
	}, db.heard); err != nil {
		return err
	}
	for _, k := range keys {
		l, err := tx.lane(k.destination)
		if err != nil {
			return err
		}
		if err := tx.placeKey(l, k.key); err != nil {
			return err
		}
	}
	db.marks.Store(true)
	tx.after = append(tx.after, func() {
		db.decided.Store(false)
		db.heard = never
	})
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
