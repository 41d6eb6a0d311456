package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// self is this node's lease. The database decides when it ends. The node trusts it for a shorter
// time, counted from before its request, so that it knows of the end before other nodes do,
// whatever its own clock says.
type self struct {
	db *DB

	pulse    chan struct{} // capacity 1: full during a heartbeat; tests block heartbeats with it
	mu       sync.Mutex
	number   int64
	trust    time.Time // the lease is trusted until then; monotonic
	lanes    []int32   // lanes that this node delivers for
	serving  map[int32]bool
	since    map[int32]time.Time // when all others have certainly heard of it
	others   map[int32][]int64   // live owners that deliver for a lane, including this node
	peers    int                 // other live nodes, at the last heartbeat
	heard    map[int64]lastBeat  // the last heartbeats of the others
	beats    chan struct{}       // requests a heartbeat now
	left     bool
	reported bool
}

// lastBeat is the last heartbeat of an owner, on the database's clock, and when this node learned
// of it.
type lastBeat struct {
	beat  int64
	since time.Time
}

// trustShare is the part of the lease that is trusted; beatShare is the part after which it is
// renewed. Two heartbeats may be lost before others take over.
const (
	trustShare = 0.8
	beatShare  = 0.2
)

// ErrNodeTaken means that another live node has this node's name.
var ErrNodeTaken = errors.New("another node of this name is running")

var errLeaseOver = fmt.Errorf("this node did not renew its lease in time: other nodes take over its claims: %w", holdfast.ErrUnavailable)

func newSelf(db *DB) *self {
	return &self{db: db, serving: map[int32]bool{}, since: map[int32]time.Time{}, others: map[int32][]int64{}, beats: make(chan struct{}, 1), pulse: make(chan struct{}, 1)}
}

func (s *self) owner() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// trusted returns the owner number, if the lease certainly holds.
func (s *self) trusted() (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !time.Now().Before(s.trust) {
		return 0, errLeaseOver
	}
	return s.number, nil
}

func (s *self) isTrusted() bool {
	_, err := s.trusted()
	return err == nil
}

// distrust ends the lease and drops the numbers of lanes, since both belong to a history that is
// over.
func (s *self) distrust() {
	s.mu.Lock()
	s.trust, s.lanes = time.Time{}, nil
	clear(s.serving)
	clear(s.since)
	clear(s.others)
	s.mu.Unlock()
	s.askBeat()
}

func (s *self) hasLeft() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// about describes this process for people.
func about() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// enter takes the node's name. If a node of that name did not end cleanly, enter waits for its
// lease to end, and fails if somebody renews that lease. A stop meanwhile interrupts no request, so
// that the store knows whether it has the name and must give it back.
func (db *DB) enter(ctx context.Context) error {
	var seen int64
	for {
		l, err := db.takeName(context.WithoutCancel(ctx), 0)
		if err != nil {
			return err
		}
		if l.owner != 0 {
			return db.entered(context.WithoutCancel(ctx), l)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var beat, left int64
		var who string
		if err := db.read(ctx, lookName, []any{db.opts.Node}, func(rows pgx.Rows) error { return rows.Scan(&beat, &left, &who) }); err != nil {
			return err
		}
		if seen != 0 && beat != seen {
			return fmt.Errorf("%w: %q is %s; give each node a name of its own", ErrNodeTaken, db.opts.Node, who)
		}
		if seen == 0 {
			db.log.WarnContext(ctx, "a node of this name has not ended cleanly: waiting for its lease to end",
				slog.String("node", db.opts.Node), slog.String("was", who), slog.Duration("lease_left", duration(left)))
		}
		seen = beat
		if err := db.tickClock(ctx); err != nil {
			return err
		}
		if err := pause(ctx, min(duration(left)+10*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

// lease is the result of taking the node's name.
type lease struct {
	asked         time.Time
	owner, former int64  // owner number of this start (0: the name is taken), and of the start before (0: none)
	turn          uint64 // the history that the lease belongs to
}

// takeName takes the node's name under a new number. The number is greater than all former ones of
// this process, even if a history gives numbers again. mine is the number of a node that has lost
// its lease.
func (db *DB) takeName(ctx context.Context, mine int64) (l lease, err error) {
	l.asked = time.Now()
	err = db.own(ctx, func(tx *ownTx) error {
		l.turn, l.owner, l.former = tx.turn, 0, 0
		if err := tx.query(takeName, []any{db.opts.Node, micros(db.opts.Lease), about(), mine},
			func(rows pgx.Rows) error { return rows.Scan(&l.owner, &l.former) }); err != nil {
			return err
		}
		if err := tx.checkMoved(); err != nil || l.former == 0 {
			return err
		}
		return tx.bury(l.former)
	})
	return l, err
}

func (db *DB) entered(ctx context.Context, l lease) error {
	s := db.self
	s.mu.Lock()
	s.number, s.trust, s.reported = l.owner, l.asked.Add(s.trustFor()), false
	clear(s.since)
	clear(s.heard)
	s.mu.Unlock()
	db.tally.restart(l.owner)
	db.claim.drop(l.owner)
	db.past.enter(l.turn)
	db.log.InfoContext(ctx, "node entered", slog.String("node", db.opts.Node), slog.Int64("owner", l.owner), slog.Bool("after_another_start", l.former != 0))
	db.wakes.here.RingAll()
	if err := db.renew(ctx); err != nil {
		return err
	}
	if !s.alone() {
		db.tellOthers(ctx, hello)
	}
	return nil
}

func (s *self) alone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers == 0
}

func (s *self) askBeat() {
	select {
	case s.beats <- struct{}{}:
	default:
	}
}

func (s *self) trustFor() time.Duration { return time.Duration(trustShare * float64(s.db.opts.Lease)) }

// bury gives back the claims of an owner that is gone, and takes over its counters.
func (tx *ownTx) bury(owner int64) error {
	if err := tx.exec(readTables); err != nil {
		return err
	}
	total := int64(0)
	if err := tx.query(reclaimDead, []any{owner, aloneAfter}, func(rows pgx.Rows) error {
		var lane int32
		var n int64
		err := rows.Scan(&lane, &n)
		tx.wakes(lane)
		total += n
		return err
	}); err != nil {
		return err
	}
	if err := tx.endGivenUp(); err != nil {
		return err
	}
	if err := tx.exec(sumUpTally, owner, 0); err != nil {
		return err
	}
	tx.after = append(tx.after, func() {
		tx.db.claim.rewindAll()
		if total > 0 {
			tx.db.log.Warn("gave back the claims of a node that is gone", slog.Int64("owner", owner), slog.Int64("count", total))
		}
	})
	return nil
}

// drop forgets the claims under another owner number.
func (c *claims) drop(owner int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.held)
	c.suspect, c.suspects, c.unplaced, c.lost = 0, true, true, nil
	c.number = owner << 32
}

// forget drops the claims, and also the places where lanes are read: the lanes' numbers belong to a
// history that is over. A concurrent claim keeps nothing.
func (c *claims) forget() {
	c.drop(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanes = nil
}

func (c *claims) rewindAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		l.reread(false)
	}
	c.suspects = true
}

// leave gives back the claims and ends the lease.
func (db *DB) leave() error {
	ctx, cancel := context.WithTimeout(db.life, min(db.opts.Timeout, 5*time.Second))
	defer cancel()
	s := db.self
	err := db.catchUp(ctx)
	s.mu.Lock()
	s.left, s.trust = true, time.Time{}
	owner := s.number
	s.mu.Unlock()
	if owner == 0 {
		return nil
	}
	if err != nil {
		return notLeft(err)
	}
	if err := db.tickClock(ctx); err != nil { // the time that has passed since the last heartbeat
		db.log.WarnContext(ctx, "the time could not be recorded", slog.Any("error", err))
	}
	err = db.own(ctx, func(tx *ownTx) error {
		if err := tx.exec(lockNode, owner); err != nil {
			return err
		}
		if err := tx.giveBackHeld(owner); err != nil {
			return err
		}
		if err := tx.endGivenUp(); err != nil {
			return err
		}
		if err := tx.exec(sumUpTally, owner, 0); err != nil {
			return err
		}
		return tx.exec(dropNode, owner)
	})
	if err != nil {
		return notLeft(err)
	}
	db.wakes.flush(ctx, db)
	return nil
}

func notLeft(err error) error {
	return fmt.Errorf("leave: %w; other nodes take over when the lease ends", err)
}

// catchUp enters a history that this store has met since its last heartbeat: a node gives back
// nothing in a history that it has not entered.
func (db *DB) catchUp(ctx context.Context) error {
	ctx, release := both(ctx, db.past.patience)
	defer release()
	for try := 0; db.self.owner() != 0 && !db.past.isEntered(); try++ {
		if err := db.beat(ctx); err != nil && (!isAway(err) || backOff(ctx, try) != nil) {
			return err
		}
	}
	return nil
}

// giveBackHeld gives back the claims by their numbers. If there may be claims that are not in
// memory, it gives back all that have this owner.
func (tx *ownTx) giveBackHeld(owner int64) error {
	if tx.db.claim.unsure() {
		if err := tx.exec(readTables); err != nil {
			return err
		}
		return tx.query(giveBackAll, []any{owner}, func(rows pgx.Rows) error {
			var lane int32
			err := rows.Scan(&lane)
			tx.wakes(lane)
			return err
		})
	}
	seqs, tokens := tx.db.claim.all()
	return tx.query(giveBack, []any{owner, seqs, tokens}, func(rows pgx.Rows) error {
		var lane int32
		err := rows.Scan(nil, &lane, nil)
		tx.wakes(lane)
		return err
	})
}

func (c *claims) all() (seqs, tokens []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seqs, tokens = []int64{}, []int64{}
	for _, seq := range slices.Sorted(maps.Keys(c.held)) {
		seqs, tokens = append(seqs, seq), append(tokens, c.held[seq].token)
	}
	return seqs, tokens
}

// pause waits for d, or until ctx ends, and then returns the error of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
