package postgres

import (
	"context"
	"log/slog"
	"maps"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// counters are the counters in memory (SF-15): the changes of this node, known at once, and the
// changes of all others, read from time to time. The table has one row per change, written in the
// same transaction, so that the sum is exact and no two transactions write the same row. Rows of
// one owner are summed up when there are many.
type counters struct {
	mu     sync.Mutex
	owner  int64
	own    sums
	others sums
	rows   int // rows of this owner since the last summing up
}

// sums are changes by lane.
type sums struct {
	lanes       map[int32]holdfast.LaneCounts
	inbox, kept int64
}

func newCounters() *counters {
	return &counters{own: sums{lanes: map[int32]holdfast.LaneCounts{}}, others: sums{lanes: map[int32]holdfast.LaneCounts{}}}
}

func (s *sums) add(lane int32, c holdfast.LaneCounts) {
	l := s.lanes[lane]
	s.lanes[lane] = holdfast.LaneCounts{Pending: l.Pending + c.Pending, Parked: l.Parked + c.Parked, Expired: l.Expired + c.Expired}
}

// count records a change of a lane's counters.
func (tx *ownTx) count(lane int32, c holdfast.LaneCounts) {
	if tx.counts == nil {
		tx.counts = map[int32]holdfast.LaneCounts{}
	}
	l := tx.counts[lane]
	tx.counts[lane] = holdfast.LaneCounts{Pending: l.Pending + c.Pending, Parked: l.Parked + c.Parked, Expired: l.Expired + c.Expired}
}

// countInbox records a change of the inbox's counters.
func (tx *ownTx) countInbox(inbox, kept int64) {
	tx.inbox += inbox
	tx.kept += kept
}

// changes are the rows of the table for a transaction's changes.
type changes struct {
	lanes                                 []int32
	pending, parked, expired, inbox, kept []int64
}

func (tx *ownTx) changes() (c changes) {
	add := func(lane int32, l holdfast.LaneCounts, inbox, kept int64) {
		c.lanes = append(c.lanes, lane)
		c.pending, c.parked, c.expired = append(c.pending, l.Pending), append(c.parked, l.Parked), append(c.expired, l.Expired)
		c.inbox, c.kept = append(c.inbox, inbox), append(c.kept, kept)
	}
	for lane, l := range tx.counts {
		if l != (holdfast.LaneCounts{}) {
			add(lane, l, 0, 0)
		}
	}
	if tx.inbox != 0 || tx.kept != 0 {
		add(0, holdfast.LaneCounts{}, tx.inbox, tx.kept)
	}
	return c
}

func (tx *ownTx) queueTally(b *pgx.Batch) {
	if c := tx.changes(); len(c.lanes) > 0 {
		b.Queue(insertTally, tx.owner, c.lanes, c.pending, c.parked, c.expired, c.inbox, c.kept)
	}
}

// meet learns the names of lanes that only other nodes have used so far.
func (db *DB) meet(ctx context.Context, counts map[int32]holdfast.LaneCounts) {
	turn := db.names.now()
	for lane := range counts {
		if db.names.lane(lane) != "" {
			continue
		}
		if err := db.read(ctx, readLane, []any{lane}, func(rows pgx.Rows) error {
			var name string
			err := rows.Scan(&name)
			db.names.rememberLane(turn, name, lane)
			return err
		}); err != nil {
			db.log.WarnContext(ctx, "could not read the name of a lane", slog.Any("error", err))
		}
	}
}

// add applies the changes of a committed transaction. If the node has another owner number by now,
// count reads those rows as another owner's.
func (t *counters) add(tx *ownTx) {
	if len(tx.counts) == 0 && tx.inbox == 0 && tx.kept == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner != tx.owner {
		return
	}
	for lane, c := range tx.counts {
		t.own.add(lane, c)
	}
	t.own.inbox += tx.inbox
	t.own.kept += tx.kept
	t.rows += len(tx.counts) + 1
}

// restart counts the changes that are stored under a former owner number as those of others.
func (t *counters) restart(owner int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for lane, c := range t.own.lanes {
		t.others.add(lane, c)
	}
	t.others.inbox += t.own.inbox
	t.others.kept += t.own.kept
	t.owner, t.rows = owner, 0
	t.own = sums{lanes: map[int32]holdfast.LaneCounts{}}
}

// count reads the changes of other owners. If others have taken over this node's lease, its own
// changes are among theirs already: then it reads nothing, and the next heartbeat finds out.
func (db *DB) count(ctx context.Context) error {
	t, turn := db.tally, db.names.now()
	t.mu.Lock()
	owner := t.owner
	t.mu.Unlock()
	s, lost := sums{lanes: map[int32]holdfast.LaneCounts{}}, false
	if err := db.read(ctx, readTally, []any{owner}, func(rows pgx.Rows) error {
		var lane int32
		var name string
		var c holdfast.LaneCounts
		var inbox, kept int64
		if err := rows.Scan(&lost, &lane, &name, &c.Pending, &c.Parked, &c.Expired, &inbox, &kept); err != nil {
			return err
		}
		if lane != 0 {
			db.names.rememberLane(turn, name, lane)
			s.add(lane, c)
		}
		s.inbox += inbox
		s.kept += kept
		return nil
	}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner == owner && !lost {
		t.others = s
	}
	return nil
}

// sumUp merges the rows of each lane into one when this owner has written many.
func (db *DB) sumUp(ctx context.Context) error {
	const many = 500
	t := db.tally
	t.mu.Lock()
	owner, rows := t.owner, t.rows
	t.mu.Unlock()
	if rows < many {
		return nil
	}
	err := db.own(ctx, func(tx *ownTx) error { return tx.exec(sumUpTally, owner, owner) })
	if err == nil {
		t.mu.Lock()
		t.rows -= rows
		t.mu.Unlock()
	}
	return err
}

// sumUpNobodys does the same for rows that callers' transactions have written. One node does it at
// a time.
func (db *DB) sumUpNobodys(ctx context.Context) error {
	const many, most = 500, 20000
	n := 0
	if err := db.read(ctx, countNobodys, []any{many}, func(rows pgx.Rows) error { return rows.Scan(&n) }); err != nil || n < many {
		return err
	}
	return db.own(ctx, func(tx *ownTx) error {
		if mine, err := tx.upkeep(upkeepTally); err != nil || !mine {
			return err
		}
		return tx.exec(sumUpNobodys, most)
	})
}

// Counts implements holdfast.Outbox from memory. It includes changes of other nodes after a second
// or two.
func (db *DB) Counts() holdfast.Counts {
	t := db.tally
	c := holdfast.Counts{Received: db.received.Load(), Duplicates: db.duplicates.Load(), Claimed: db.claim.inHand()}
	t.mu.Lock()
	defer t.mu.Unlock()
	all := sums{lanes: maps.Clone(t.others.lanes)}
	for lane, l := range t.own.lanes {
		all.add(lane, l)
	}
	c.Lanes = make(map[string]holdfast.LaneCounts, len(all.lanes))
	for lane, l := range all.lanes {
		c.Lanes[db.names.lane(lane)] = l
	}
	c.Inbox, c.Kept = max(t.own.inbox+t.others.inbox, 0), max(t.own.kept+t.others.kept, 0)
	for _, l := range c.Lanes {
		c.Pending += l.Pending
		c.Parked += l.Parked
		c.Expired += l.Expired
	}
	return c
}
