package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast/storecopy"
)

// serve records the lanes that this node delivers for. It tells other nodes before this one takes
// its share.
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

func (db *DB) beatEvery() time.Duration {
	return max(time.Duration(beatShare*float64(db.opts.Lease)), 100*time.Millisecond)
}

// beatOn renews the lease, buries dead nodes, and reads the counters of other nodes.
func (db *DB) beatOn(ctx context.Context) {
	beat := time.NewTicker(db.beatEvery())
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
			if err = db.beat(ctx); !db.past.isEntered() {
				break // nothing else can be done
			}
			err = errors.Join(err, db.tickClock(ctx), db.reap(ctx), db.findLost(ctx), db.lookForRoom(ctx), db.sumUp(ctx), db.sumUpNobodys(ctx))
		case <-count.C:
			err = db.count(ctx)
		}
		switch {
		case errors.Is(err, storecopy.ErrMoved), errors.Is(err, storecopy.ErrUnfinished):
			db.halt(err)
			return
		case err != nil && ctx.Err() == nil:
			db.complain(ctx, err)
		}
	}
}

// complain logs, once per outage, that the database is not available.
func (db *DB) complain(ctx context.Context, err error) {
	s := db.self
	s.mu.Lock()
	first := !s.reported
	s.reported = true
	s.mu.Unlock()
	if first {
		db.log.ErrorContext(ctx, "the database is not available", slog.Any("error", err))
	}
}

// awake requests a new lease if the last one is over: this process may have been suspended for so
// long that the store was moved meanwhile. An unavailable database is no reason to refuse the call;
// the call finds that out by itself.
func (db *DB) awake(ctx context.Context) error {
	s := db.self
	if s.isTrusted() || s.owner() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	select {
	case s.pulse <- struct{}{}: // after a running heartbeat, which may find out
	case <-ctx.Done():
		return nil
	}
	defer func() { <-s.pulse }()
	if s.isTrusted() {
		return nil
	}
	if err := db.renew(ctx); errors.Is(err, storecopy.ErrMoved) || errors.Is(err, storecopy.ErrUnfinished) {
		return err
	}
	return nil
}

// halt stops the store for good, and logs why.
func (db *DB) halt(err error) {
	if db.failure.CompareAndSwap(nil, &err) {
		db.log.Error("the store has stopped itself", slog.Any("error", err))
		close(db.failed)
	}
}

func (db *DB) beat(ctx context.Context) error {
	select {
	case db.self.pulse <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-db.self.pulse }()
	return db.renew(ctx)
}

// renew renews the lease, and learns which other nodes are alive. If others have taken over the
// lease, the claims are theirs, and this node starts again under another number.
func (db *DB) renew(ctx context.Context) error {
	ctx = entering(ctx)
	s := db.self
	if db.past.pauses() {
		return errAnother
	}
	turn, err := db.lookBack(ctx)
	if err != nil {
		return err
	}
	if now, entered := db.past.is(); now != turn || !entered {
		if err := db.enterHistory(ctx, s.owner()); err != nil {
			db.past.refused(turn, min(db.opts.Lease/20, time.Second))
			return err
		}
		return nil
	}
	return db.prolong(ctx, turn)
}

// prolong renews the lease in the node's present history.
func (db *DB) prolong(ctx context.Context, turn uint64) error {
	s := db.self
	lasting, release := db.past.within(ctx) // no retry in another history: the arguments belong to this one
	defer release()
	s.mu.Lock()
	owner, lanes := s.number, slices.Clone(s.lanes)
	s.mu.Unlock()
	if lanes == nil {
		lanes = []int32{}
	}
	asked, renewed := time.Now(), false
	if err := db.read(lasting, beatNow, []any{db.opts.Node, owner, micros(db.opts.Lease), lanes}, func(rows pgx.Rows) error {
		renewed = true
		return rows.Scan(nil)
	}); err != nil {
		return fmt.Errorf("renew lease: %w", err)
	}
	if !renewed {
		return db.reenter(ctx, owner)
	}
	others, peers, beats := map[int32][]int64{}, 0, map[int64]int64{}
	if err := db.read(lasting, allNodes, nil, func(rows pgx.Rows) error {
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
	if now, _ := db.past.is(); now != turn {
		return errAnother
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != owner {
		return nil
	}
	s.listened(beats)
	if s.reported {
		s.reported = false
		db.log.InfoContext(ctx, "the database is available again")
	}
	s.trust, s.others, s.peers = asked.Add(s.trustFor()), others, peers
	s.announced(lanes, asked)
	return nil
}

// announced records from when on this node has its share of the lanes that a heartbeat has
// announced. It skips lanes that the node has left meanwhile.
func (s *self) announced(lanes []int32, asked time.Time) {
	for _, l := range lanes {
		if _, known := s.since[l]; known || !s.serving[l] {
			continue
		}
		wait := time.Duration(0)
		if len(s.others[l]) > 1 { // they hear of this node at their next heartbeat
			wait = time.Duration(1.5 * beatShare * float64(s.db.opts.Lease))
		}
		s.since[l] = asked.Add(wait)
	}
}

// listened records which other nodes have renewed their leases.
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

// unheard returns the owners whose heartbeat this node has not seen for half a lease, by its own
// clock. So a step of the database's clock alone ends nobody's lease.
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
	l, err := db.takeName(ctx, lost)
	if err != nil {
		return fmt.Errorf("enter again: %w", err)
	}
	if l.owner == 0 {
		return fmt.Errorf("%w: %q; this node delivers nothing until the other has ended", ErrNodeTaken, db.opts.Node)
	}
	db.log.WarnContext(ctx, "the lease was lost: other nodes have taken over its claims", slog.Int64("owner", lost))
	return db.entered(ctx, l)
}

// reap ends the leases of nodes that are gone. One node buries each of them.
func (db *DB) reap(ctx context.Context) error {
	suspected := db.self.unheard()
	if !db.self.isTrusted() || len(suspected) == 0 {
		return nil // this node may be the one that was away
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
				db.log.WarnContext(ctx, "a node was silent for too long: other nodes take over", slog.String("node", name), slog.String("was", who))
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
