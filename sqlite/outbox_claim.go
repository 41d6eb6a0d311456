package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/belief"
)

// claimBytes limits the payloads that one Claim call reads from the table.
const claimBytes = 8 << 20

// Claim implements holdfast.Store. Messages that were just committed come from memory, at once. The
// table is read if it may hold more. The read uses the writer's connection, so that a row that was
// settled a moment ago is never claimed again.
func (db *DB) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	batch := holdfast.Batch{Next: make(map[string]time.Duration, len(slots))}
	if owns, err := db.hands(ctx); err != nil || !owns {
		return batch, err
	}
	ls := db.lanes
	k := &tableClaim{db: db, slots: slots}
	now := db.clock.now()
	ls.mu.Lock()
	k.durable = ls.careful > 0
	for name, n := range slots {
		l := ls.locked(name)
		had := len(batch.Claims)
		if n > 0 && !k.durable {
			batch.Claims = ls.popFresh(l, n, now, batch.Claims)
			batch.Claims = ls.popAhead(l, n-len(batch.Claims)+had, now, batch.Claims)
		}
		n -= len(batch.Claims) - had
		if n > 0 && l.needsTable(now) {
			k.table, k.wants = append(k.table, l), append(k.wants, n)
		}
	}
	full := k.durable && ls.room() == 0
	suspects := k.durable && len(ls.suspects) > 0
	ls.mu.Unlock()
	if full {
		for name := range slots {
			batch.Next[name] = roomPoll
		}
		return batch, nil
	}
	if len(k.table) > 0 || suspects {
		// Claims from memory are returned even if the table cannot be read now.
		if err := k.run(ctx, &batch); err != nil && len(batch.Claims) == 0 {
			return batch, fmt.Errorf("claim: %w", err)
		}
	}
	now = db.clock.now()
	ls.mu.Lock()
	for name := range slots {
		if wait := ls.locked(name).untilDue(now); wait >= 0 {
			batch.Next[name] = wait
		}
	}
	ls.mu.Unlock()
	return batch, nil
}

// hands reports whether this process hands messages out. A new owner's dispatcher is woken.
func (db *DB) hands(ctx context.Context) (bool, error) {
	err := db.writer.usable(ctx)
	if err == nil && !db.owns.Load() {
		return false, nil
	}
	if err == nil {
		err = db.Present()
	}
	if err != nil {
		return false, fmt.Errorf("claim: %w", err)
	}
	return true, nil
}

// tableClaim reads due rows of some lanes. After an unclean stop it also writes the claims to disk,
// and so counts each attempt before it is made.
type tableClaim struct {
	db      *DB
	slots   map[string]int
	table   []*lane // the lanes of slots for which the table must be read
	wants   []int
	durable bool
	first   bool // only rows that were never tried: see outbox_claim_first.go

	claims  []holdfast.Claim
	lanes   []*lane // of the claims, if they are durable
	expired []int64
	held    []int64       // expired if the clock is right: see outbox_held.go
	broken  []int64       // not what was accepted: see check_hash.go
	cleared []int64       // no longer suspects
	got     map[*lane]int // number of suspects that were claimed
	bytes   int
	bundle  int64  // of the last message that has one
	payload []byte // of that bundle
}

func (k *tableClaim) run(ctx context.Context, batch *holdfast.Batch) (err error) {
	if k.durable {
		err = k.db.writer.do(ctx, k)
	} else {
		err = k.db.writer.inspect(ctx, k.read)
	}
	if err != nil && k.durable {
		return err
	}
	if batch.Claims == nil {
		batch.Claims = k.claims
	} else {
		batch.Claims = append(batch.Claims, k.claims...)
	}
	if len(k.broken) > 0 {
		err = errors.Join(err, k.db.parkBroken(ctx, k.broken))
	}
	if len(k.held) > 0 {
		err = errors.Join(err, k.db.holdRows(ctx, k.held))
	}
	if len(k.expired) == 0 {
		return err
	}
	n, expireErr := k.db.expireRows(ctx, k.expired)
	if n > 0 {
		k.db.observeExpired(n)
	}
	return errors.Join(err, expireErr)
}

func (k *tableClaim) size() (int, int) { return len(k.table), 0 }

func (k *tableClaim) read(c *conn) error {
	if !k.db.owns.Load() {
		return nil // no longer the owner
	}
	for i, l := range k.table {
		if l.id == 0 { // the lane has had no message yet
			found, err := c.one(findLane, func(v []driver.Value) error {
				l.id, l.order = asInt(v[0]), asInt(v[1])
				return nil
			}, l.name)
			if err != nil {
				return err
			}
			if !found {
				k.db.lanes.mu.Lock()
				l.caughtUp, l.nextDue = true, never
				k.db.lanes.mu.Unlock()
				continue
			}
		}
		read := k.readLane
		if k.first {
			read = k.readFirst
		}
		if err := read(c, l, min(k.wants[i]-k.got[l], k.share(len(k.table)-i))); err != nil {
			return err
		}
	}
	return nil
}

// readLane claims up to want due rows after the lane's cursor, in pages.
func (k *tableClaim) readLane(c *conn, l *lane, want int) error {
	ls := k.db.lanes
	for want > 0 && k.bytes < claimBytes {
		now := k.db.writer.instant()
		ls.mu.Lock()
		due, seq, turn := l.cursorDue, l.cursorSeq, l.rewinds
		page, rows := want, 0
		if due == math.MinInt64 {
			page += min(l.leased, 1024) // after a rewind, leased rows come first
		}
		ls.mu.Unlock()
		full := false
		err := c.each(claimPage, func(v []driver.Value) error {
			rows++
			if full = want == 0 || k.bytes >= claimBytes; full {
				return errStop
			}
			return k.take(c, l, v, now, turn, &want)
		}, l.id, now, due, seq, int64(page))
		if err != nil || full {
			return err
		}
		if rows < page {
			if done, err := k.reachedEnd(c, l, now, turn); err != nil || done {
				return err
			}
		}
	}
	return nil
}

// take claims one row, unless it is leased already or its time is over. It stops the page if the
// lane was rewound meanwhile.
func (k *tableClaim) take(c *conn, l *lane, v []driver.Value, now int64, turn uint64, want *int) error {
	claim, due, err := k.db.readClaim(c, l, v)
	if err != nil {
		return err
	}
	if v[20] != nil {
		k.once(&claim.Message, asInt(v[20]))
	}
	ls := k.db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.rewinds != turn {
		return errStop
	}
	if k.first {
		l.firstDue, l.firstSeq = due, claim.Seq
	} else {
		l.cursorDue, l.cursorSeq = due, claim.Seq
	}
	if _, leased := ls.leases[claim.Seq]; leased {
		return nil
	}
	if !intact(&claim.Message, v) {
		k.broken = append(k.broken, claim.Seq)
		return nil
	}
	switch verdict := k.db.clock.judgeClaim(&claim, asInt(v[18]), now); {
	case verdict == belief.Over:
		k.expired = append(k.expired, claim.Seq)
		return nil
	case verdict == belief.Held:
		k.held = append(k.held, claim.Seq)
		return nil
	case asInt(v[11]) == 1:
		return nil // blocked by its key, and due only for its expiry
	}
	if k.claims == nil {
		k.claims = make([]holdfast.Claim, 0, min(*want, 64))
	}
	*want--
	k.bytes += len(claim.Message.Payload)
	if k.durable {
		k.lanes = append(k.lanes, l)
	} else {
		claim = ls.lease(l, claim, now, false)
	}
	k.claims = append(k.claims, claim)
	return nil
}

// once gives the consecutive messages of one bundle the same payload.
func (k *tableClaim) once(m *holdfast.Message, bundle int64) {
	if bundle != k.bundle {
		k.bundle, k.payload = bundle, m.Payload
	}
	m.Payload = k.payload
}

// reachedEnd notes that memory knows all rows of the lane that are due by now, unless the lane was
// rewound meanwhile.
func (k *tableClaim) reachedEnd(c *conn, l *lane, now int64, turn uint64) (bool, error) {
	next := int64(never)
	if _, err := c.one(nextDue, func(v []driver.Value) error {
		next = asInt(v[0])
		return nil
	}, l.id, now); err != nil {
		return false, err
	}
	ls := k.db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l.rewinds != turn {
		return false, nil
	}
	ls.dropAhead(l)
	if next >= heldDue {
		next = never // until they are released
	}
	l.caughtUp, l.nextDue = true, next
	l.cursorDue, l.cursorSeq = max(l.cursorDue, now), math.MaxInt64
	return true, nil
}

// instant returns the latest instant at which a committed row can be due.
func (w *writer) instant() int64 { return max(w.db.clock.now(), w.tx.now) }

// readClaim makes a claim from a row of claimColumns.
func (db *DB) readClaim(c *conn, l *lane, v []driver.Value) (holdfast.Claim, int64, error) {
	names, err := db.routeNames(c, asInt(v[2]))
	if err != nil {
		return holdfast.Claim{}, 0, err
	}
	claim := holdfast.Claim{
		Seq: asInt(v[0]), Failures: int(asInt(v[5])), Tries: int(asInt(v[6])), Revision: int(asInt(v[19])), Expires: -1, Created: db.clock.wall(asInt(v[21])),
		Message: holdfast.Message{
			ID: idFrom(v[1]), Source: names.source, Destination: l.name, Endpoint: names.endpoint, Kind: names.kind,
			OrderingKey: asText(v[9]), Payload: payload(v[12]), CorrelationID: asText(v[14]),
			TTL: duration(asInt(v[16])),
			Attempt: holdfast.Attempt{
				Cycle: int(asInt(v[7])), FirstAgo: time.Duration(asInt(v[8])), Forced: asInt(v[10]) == 1,
			},
		},
	}
	if v[4] != nil {
		claim.Expires = time.Duration(asInt(v[4]))
	}
	db.readExtras(&claim.Message, asText(v[13]), asText(v[15]))
	return claim, asInt(v[3]), nil
}
