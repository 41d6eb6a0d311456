package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
)

// self is this node's lease. The database says when it ends; the node trusts
// it for a shorter time, counted from before it asked, so that it knows of the
// end before others do, whatever its own clock says.
type self struct {
	db *DB

	pulse    sync.Mutex // held during a beat; tests stop it
	mu       sync.Mutex
	number   int64
	trust    time.Time // monotonic
	lanes    []int32   // that this node delivers for
	serving  map[int32]bool
	since    map[int32]time.Time // when others have certainly heard of it
	others   map[int32][]int64   // owners alive that deliver for a lane, this node among them
	peers    int                 // other nodes alive, at the last beat
	heard    map[int64]lastBeat  // of the others
	beats    chan struct{}       // asks for one now
	left     bool
	reported bool
}

// lastBeat is when an owner was last heard of, on the database's clock, and
// since when this node knows it.
type lastBeat struct {
	beat  int64
	since time.Time
}

// Of the lease so much is trusted, and so often it is renewed. Two beats may
// be lost before others take over.
const (
	trustShare = 0.8
	beatShare  = 0.2
)

// ErrNodeTaken says that another live node has this node's name.
var ErrNodeTaken = errors.New("another node of this name is running")

var errLeaseOver = fmt.Errorf("the database has not heard of this node in time, others take over its claims: %w", holdfast.ErrUnavailable)

func newSelf(db *DB) *self {
	return &self{db: db, serving: map[int32]bool{}, since: map[int32]time.Time{}, others: map[int32][]int64{}, beats: make(chan struct{}, 1)}
}

func (s *self) owner() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}

// trusted returns the owner number while the lease certainly holds.
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

// about tells people which process it is.
func about() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

// enter takes the node's name. One that did not end cleanly has its lease for
// a while: it is waited for, unless somebody renews it.
func (db *DB) enter(ctx context.Context) error {
	var seen int64
	for {
		began := time.Now()
		owner, former, err := db.takeName(ctx, 0)
		if err != nil {
			return err
		}
		if owner != 0 {
			return db.entered(ctx, began, owner, former)
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
			db.log.WarnContext(ctx, "a node of this name was here and did not say goodbye: waiting for its lease to end",
				slog.String("node", db.opts.Node), slog.String("was", who), slog.Duration("lease_left", duration(left)))
		}
		seen = beat
		if err := pause(ctx, min(duration(left)+10*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
}

// takeName returns this start's owner number, and that of the start before; 0:
// the name is taken. A node that lost its lease says which number it had.
func (db *DB) takeName(ctx context.Context, mine int64) (owner, former int64, err error) {
	err = db.own(ctx, func(tx *ownTx) error {
		owner, former = 0, 0
		if err := tx.query(takeName, []any{db.opts.Node, micros(db.opts.Lease), about(), mine},
			func(rows pgx.Rows) error { return rows.Scan(&owner, &former) }); err != nil {
			return err
		}
		if err := tx.checkMoved(); err != nil || former == 0 {
			return err
		}
		return tx.bury(former)
	})
	return owner, former, err
}

func (db *DB) entered(ctx context.Context, asked time.Time, owner, former int64) error {
	s := db.self
	s.mu.Lock()
	s.number, s.trust, s.reported = owner, asked.Add(s.trustFor()), false
	clear(s.since)
	s.mu.Unlock()
	db.tally.restart(owner)
	db.claim.drop(owner)
	db.log.InfoContext(ctx, "node entered", slog.String("node", db.opts.Node), slog.Int64("owner", owner), slog.Bool("after_another_start", former != 0))
	db.wakes.wakeAll()
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

// bury gives back what an owner that is gone had in hand, and takes over its counters.
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
	if err := tx.exec(sumUpTally, owner, 0); err != nil {
		return err
	}
	tx.after = append(tx.after, func() {
		tx.db.claim.rewindAll()
		if total > 0 {
			tx.db.log.Warn("claims of a node that is gone are given back", slog.Int64("owner", owner), slog.Int64("count", total))
		}
	})
	return nil
}

// drop forgets what was in hand under another owner number.
func (c *claims) drop(owner int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for seq, h := range c.held {
		if h.owner != owner {
			delete(c.held, seq)
		}
	}
	c.suspect, c.suspects, c.unplaced = 0, true, true
	c.number = owner << 32
}

func (c *claims) rewindAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		l.whole = time.Time{}
	}
	c.suspects = true
}

// serve notes for which lanes this node delivers. Others are told before it
// takes its share.
func (s *self) serve(ctx context.Context, lanes []int32) error {
	s.mu.Lock()
	added := false
	for _, l := range lanes {
		if !s.serving[l] {
			s.serving[l], added = true, true
			s.lanes = append(s.lanes, l)
		}
	}
	s.mu.Unlock()
	if !added {
		return nil
	}
	return s.db.beat(ctx)
}

// beatOn renews the lease, buries the dead and reads the others' counters.
func (db *DB) beatOn(ctx context.Context) {
	every := max(time.Duration(beatShare*float64(db.opts.Lease)), 100*time.Millisecond)
	beat := time.NewTicker(every)
	defer beat.Stop()
	count := time.NewTicker(time.Second)
	defer count.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return
		case <-db.self.beats:
			err = db.beat(ctx)
		case <-beat.C:
			err = errors.Join(db.beat(ctx), db.reap(ctx), db.sumUp(ctx))
		case <-count.C:
			err = db.count(ctx)
		}
		if err != nil && ctx.Err() == nil {
			db.complain(ctx, err)
		}
	}
}

// complain says once per trouble that the database is not to be had.
func (db *DB) complain(ctx context.Context, err error) {
	s := db.self
	s.mu.Lock()
	first := !s.reported
	s.reported = true
	s.mu.Unlock()
	if first {
		db.log.ErrorContext(ctx, "database not to be had", slog.Any("error", err))
	}
}

func (db *DB) beat(ctx context.Context) error {
	db.self.pulse.Lock()
	defer db.self.pulse.Unlock()
	return db.renew(ctx)
}

// renew renews the lease, and learns who else is alive. A lease that others
// have taken over is lost: what is in hand is theirs, and this node begins
// anew under another number.
func (db *DB) renew(ctx context.Context) error {
	s := db.self
	s.mu.Lock()
	owner, lanes := s.number, slices.Clone(s.lanes)
	s.mu.Unlock()
	if lanes == nil {
		lanes = []int32{}
	}
	asked, renewed := time.Now(), false
	if err := db.read(ctx, beatNow, []any{db.opts.Node, owner, micros(db.opts.Lease), lanes}, func(rows pgx.Rows) error {
		renewed = true
		return rows.Scan(nil)
	}); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if !renewed {
		return db.reenter(ctx, owner)
	}
	others, peers, beats := map[int32][]int64{}, 0, map[int64]int64{}
	if err := db.read(ctx, allNodes, nil, func(rows pgx.Rows) error {
		var who, beat int64
		var serves []int32
		var alive bool
		if err := rows.Scan(&who, &serves, &beat, &alive); err != nil {
			return err
		}
		if who != owner {
			beats[who] = beat
		}
		if !alive {
			return nil
		}
		if who != owner {
			peers++
		}
		for _, l := range serves {
			others[l] = append(others[l], who)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look for other nodes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != owner {
		return nil
	}
	s.listened(beats)
	if s.reported {
		s.reported = false
		db.log.InfoContext(ctx, "database is there again")
	}
	s.trust, s.others, s.peers = asked.Add(s.trustFor()), others, peers
	for _, l := range lanes {
		if _, ok := s.since[l]; !ok {
			wait := time.Duration(0)
			if len(others[l]) > 1 { // they hear of this node at their next beat
				wait = time.Duration(1.5 * beatShare * float64(db.opts.Lease))
			}
			s.since[l] = asked.Add(wait)
		}
	}
	return nil
}

// listened notes which of the others have been heard of since.
func (s *self) listened(beats map[int64]int64) {
	heard := make(map[int64]lastBeat, len(beats))
	for who, beat := range beats {
		h, known := s.heard[who]
		if !known || h.beat != beat {
			h = lastBeat{beat, time.Now()}
		}
		heard[who] = h
	}
	s.heard = heard
}

// unheard are owners that this node itself has not heard of for half a lease,
// so that a step of the database's clock alone ends nobody's lease.
func (s *self) unheard() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []int64{}
	for who, h := range s.heard {
		if time.Since(h.since) >= s.db.opts.Lease/2 {
			list = append(list, who)
		}
	}
	return list
}

func (db *DB) reenter(ctx context.Context, lost int64) error {
	s := db.self
	s.mu.Lock()
	left := s.left
	s.trust = time.Time{}
	s.mu.Unlock()
	if left {
		return nil
	}
	asked := time.Now()
	owner, former, err := db.takeName(ctx, lost)
	if err != nil {
		return fmt.Errorf("enter again: %w", err)
	}
	if owner == 0 {
		return fmt.Errorf("%w: %q; this one delivers nothing until the other has ended", ErrNodeTaken, db.opts.Node)
	}
	db.log.WarnContext(ctx, "the lease was lost: others have taken over what was in hand", slog.Int64("owner", lost))
	return db.entered(ctx, asked, owner, former)
}

// reap ends the leases of nodes that are gone. Each is buried by one node.
func (db *DB) reap(ctx context.Context) error {
	suspected := db.self.unheard()
	if !db.self.isTrusted() || len(suspected) == 0 {
		return nil // it may be this node that was away
	}
	return db.own(ctx, func(tx *ownTx) error {
		var gone []int64
		if err := tx.query(silent, []any{suspected}, func(rows pgx.Rows) error {
			var name, who string
			var owner int64
			if err := rows.Scan(&name, &owner, &who); err != nil {
				return err
			}
			gone = append(gone, owner)
			tx.after = append(tx.after, func() {
				db.log.WarnContext(ctx, "a node was silent for too long: others take over", slog.String("node", name), slog.String("was", who))
			})
			return nil
		}); err != nil {
			return err
		}
		for _, owner := range gone {
			if err := tx.bury(owner); err != nil {
				return err
			}
			if err := tx.exec(dropNode, owner); err != nil {
				return err
			}
		}
		return nil
	})
}

// leave gives back what is in hand and says goodbye.
func (db *DB) leave() error {
	s := db.self
	s.mu.Lock()
	s.left, s.trust = true, time.Time{}
	owner := s.number
	s.mu.Unlock()
	if owner == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(db.life, min(db.opts.Timeout, 5*time.Second))
	defer cancel()
	seqs, tokens := db.claim.all()
	err := db.own(ctx, func(tx *ownTx) error {
		if err := tx.query(giveBack, []any{owner, seqs, tokens}, func(rows pgx.Rows) error {
			var lane int32
			err := rows.Scan(nil, &lane)
			tx.wakes(lane)
			return err
		}); err != nil {
			return err
		}
		if err := tx.exec(sumUpTally, owner, 0); err != nil {
			return err
		}
		return tx.exec(dropNode, owner)
	})
	if err == nil {
		db.wakes.flush(ctx, db)
	}
	if err != nil {
		return fmt.Errorf("leave: %w; others take over when the lease ends", err)
	}
	return nil
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

// Share implements holdfast.Shared: of the requests that a destination bears,
// this node's part. The nodes that deliver for it get equal parts; what is
// left over, and a limit smaller than their number, goes to the first ones,
// beginning with another one for each destination.
func (db *DB) Share(destination string, limit int) int {
	s := db.self
	lane := db.names.number(destination)
	s.mu.Lock()
	defer s.mu.Unlock()
	from, known := s.since[lane]
	if !known {
		return limit // Claim gives nothing before it is
	}
	owners := s.others[lane]
	at := slices.Index(owners, s.number)
	switch {
	case time.Now().Before(from), at < 0 && len(owners) > 0:
		return 0
	case len(owners) <= 1:
		return limit
	}
	n := len(owners)
	h := fnv.New32a()
	_, _ = h.Write([]byte(destination)) // never fails
	rank := (at + int(h.Sum32()%uint32(n))) % n
	share := limit / n
	if rank < limit%n {
		share++
	}
	return share
}

// ready says how long until this node may take its share of a lane.
func (s *self) ready(lane int32) (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, known := s.since[lane]
	if !known {
		return time.Second
	}
	return max(time.Until(from), 0)
}

// Holds implements holdfast.Shared: whether a claim is still this node's.
func (db *DB) Holds(c holdfast.Claim) bool {
	if !db.self.isTrusted() {
		return false
	}
	db.claim.mu.Lock()
	defer db.claim.mu.Unlock()
	h, ok := db.claim.held[c.Seq]
	return ok && h.token == c.Token
}

// pause waits, or returns ctx's error.
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
