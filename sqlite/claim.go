package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// claimBytes bounds the payloads that one Claim call reads from the table.
const claimBytes = 8 << 20

// Claim implements holdfast.Store. Messages that were just committed come
// from memory, at once; the table is read where it may hold more, on the
// writer's connection, so that a row which was settled a moment ago is never
// handed out again.
func (db *DB) Claim(ctx context.Context, slots map[string]int) (holdfast.Batch, error) {
	batch := holdfast.Batch{Next: -1}
	ls := db.lanes
	var table []*lane
	var wants []int
	now := db.clock.now()
	ls.mu.Lock()
	for name, n := range slots {
		l := ls.locked(name)
		had := len(batch.Claims)
		if n > 0 && ls.careful == 0 {
			batch.Claims = ls.popFresh(l, n, now, batch.Claims)
		}
		n -= len(batch.Claims) - had
		if n > 0 && l.needsTable(now) {
			table, wants = append(table, l), append(wants, n)
		}
	}
	ls.claimed += int64(len(batch.Claims))
	ls.mu.Unlock()
	if len(table) > 0 {
		// Claims in hand are answered even if the table cannot be read now.
		if err := db.claimFromTable(ctx, table, wants, &batch); err != nil && len(batch.Claims) == 0 {
			return batch, fmt.Errorf("claim: %w", err)
		}
	}
	now = db.clock.now()
	ls.mu.Lock()
	for name := range slots {
		if wait := ls.locked(name).untilDue(now); wait >= 0 && (batch.Next < 0 || wait < batch.Next) {
			batch.Next = wait
		}
	}
	ls.mu.Unlock()
	return batch, nil
}

func (db *DB) claimFromTable(ctx context.Context, table []*lane, wants []int, batch *holdfast.Batch) error {
	db.lanes.mu.Lock()
	careful := db.lanes.careful > 0
	db.lanes.mu.Unlock()
	k := &tableClaim{db: db, table: table, wants: wants, durable: careful}
	var err error
	if careful {
		if err = db.writer.do(ctx, k); err != nil {
			k.release()
		}
	} else {
		err = db.writer.inspect(ctx, func(c *conn) error { return k.read(c) })
	}
	batch.Claims = append(batch.Claims, k.claims...)
	if len(k.expired) == 0 {
		return err
	}
	n, expireErr := db.expireRows(ctx, k.expired)
	if expireErr == nil && n > 0 {
		db.observeExpired(n)
	}
	if err == nil {
		err = expireErr
	}
	return err
}

// tableClaim reads due rows of some lanes. After an unclean stop it also
// writes the claims down, and counts the attempt before it is made.
type tableClaim struct {
	db      *DB
	table   []*lane
	wants   []int
	durable bool

	claims  []holdfast.Claim
	expired []int64
	bytes   int
}

func (k *tableClaim) size() (int, int) { return len(k.table), 0 }

func (k *tableClaim) apply(tx *writeTx) error {
	// Undone and run again, it must not hold the leases of the first run.
	k.release()
	if err := k.read(tx.conn); err != nil {
		k.release()
		return err
	}
	for i := range k.claims {
		c := &k.claims[i]
		n, err := tx.exec(claimDurably, c.Seq)
		if err != nil || n != 1 {
			k.release()
			return fmt.Errorf("claim %s: %d rows: %w", c.Message.ID, n, err)
		}
	}
	return nil
}

func (k *tableClaim) release() {
	ls := k.db.lanes
	ls.mu.Lock()
	for i := range k.claims {
		l := ls.leases[k.claims[i].Seq].lane
		delete(ls.leases, k.claims[i].Seq)
		if l != nil {
			l.rewind()
		}
	}
	ls.mu.Unlock()
	k.claims, k.expired, k.bytes = nil, nil, 0
}

func (k *tableClaim) read(c *conn) error {
	for i, l := range k.table {
		if l.id == 0 { // never had a message
			found, err := c.one(findLane, func(v []driver.Value) error {
				l.id, l.strict = asInt(v[0]), asInt(v[1]) == 1
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
		if err := k.readLane(c, l, k.wants[i]); err != nil {
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
		due, seq := l.cursorDue, l.cursorSeq
		held := len(ls.leases)
		ls.mu.Unlock()
		page, rows, full := want, 0, false
		if due == math.MinInt64 {
			page += min(held, 1024) // after a rewind leased rows come first
		}
		err := c.each(claimPage, func(v []driver.Value) error {
			rows++
			if want == 0 || k.bytes >= claimBytes {
				full = true
				return nil
			}
			taken, err := k.take(c, l, v, now)
			if taken {
				want--
			}
			return err
		}, l.id, now, due, seq, int64(page))
		if err != nil {
			return err
		}
		if rows < page && !full {
			return k.reachedEnd(c, l, now)
		}
	}
	return nil
}

// take leases one row unless it is leased already or its time is over.
func (k *tableClaim) take(c *conn, l *lane, v []driver.Value, now int64) (bool, error) {
	claim, due, err := k.db.readClaim(c, l, v)
	if err != nil {
		return false, err
	}
	ls := k.db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.cursorDue, l.cursorSeq = due, claim.Seq
	if _, leased := ls.leases[claim.Seq]; leased {
		return false, nil
	}
	if expires := int64(claim.Expires); expires >= 0 && expires <= now {
		if ok, why := k.db.clock.mayExpire(); ok {
			k.expired = append(k.expired, claim.Seq)
			return false, nil
		} else if claim.Message.OrderingKey != "" && due == expires {
			k.db.log.Warn("expiry suspended", slog.String("why", why))
			return false, nil // blocked by its key: only due because it would expire
		}
	}
	k.bytes += len(claim.Message.Payload)
	k.claims = append(k.claims, ls.lease(l, claim, now, k.durable))
	ls.claimed++
	return true, nil
}

// reachedEnd notes that memory knows all due rows of the lane up to now.
func (k *tableClaim) reachedEnd(c *conn, l *lane, now int64) error {
	next := int64(never)
	if _, err := c.one(nextDue, func(v []driver.Value) error {
		next = asInt(v[0])
		return nil
	}, l.id, now); err != nil {
		return err
	}
	ls := k.db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l.caughtUp, l.nextDue = true, next
	l.cursorDue, l.cursorSeq = max(l.cursorDue, now), math.MaxInt64
	return nil
}

// instant is the latest that any committed row can have been made due at.
func (w *writer) instant() int64 { return max(w.db.clock.now(), w.tx.now) }

// readClaim makes a claim of a row of claimColumns.
func (db *DB) readClaim(c *conn, l *lane, v []driver.Value) (holdfast.Claim, int64, error) {
	names, err := db.routeNames(c, asInt(v[2]))
	if err != nil {
		return holdfast.Claim{}, 0, err
	}
	claim := holdfast.Claim{
		Seq: asInt(v[0]), Failures: int(asInt(v[5])), Tries: int(asInt(v[6])), Expires: -1,
		Message: holdfast.Message{
			ID: idFrom(v[1]), Source: names.source, Destination: l.name, Endpoint: names.endpoint, Kind: names.kind,
			OrderingKey: asText(v[9]), Payload: asBytes(v[11]), CorrelationID: asText(v[13]),
			TTL: time.Duration(asInt(v[15])) * time.Microsecond,
			Attempt: holdfast.Attempt{
				Cycle: int(asInt(v[7])), FirstAgo: time.Duration(asInt(v[8])), Forced: asInt(v[10]) == 1,
			},
		},
	}
	if v[4] != nil {
		claim.Expires = time.Duration(asInt(v[4]))
	}
	// What cannot be read back is not a reason to stop the lane: the message
	// goes on without, and the receiver's answer decides.
	if h := asText(v[12]); h != "" {
		if err := json.Unmarshal([]byte(h), &claim.Message.Headers); err != nil {
			db.log.Error("stored headers unreadable", slog.String("message_id", string(claim.Message.ID)), slog.Any("error", err))
		}
	}
	if r := asText(v[14]); r != "" {
		claim.Message.Retry = &holdfast.RetryPolicy{}
		if err := json.Unmarshal([]byte(r), claim.Message.Retry); err != nil {
			claim.Message.Retry = nil
			db.log.Error("stored retry policy unreadable", slog.String("message_id", string(claim.Message.ID)), slog.Any("error", err))
		}
	}
	return claim, asInt(v[3]), nil
}
