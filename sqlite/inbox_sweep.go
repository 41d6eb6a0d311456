package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-mq/holdfast/internal/belief"
)

// SweepInbox implements holdfast.InboxLog. It never deletes messages that wait to be fetched.
func (db *DB) SweepInbox(ctx context.Context, retention time.Duration) (int, bool, error) {
	if !db.owns.Load() {
		return 0, false, nil // the owner does it
	}
	if db.ready() != nil {
		return 0, false, nil
	}
	s := &db.sweeps
	s.mu.Lock()
	defer s.mu.Unlock()
	now := db.clock.now()
	if sane, _ := db.clock.look(); !sane {
		return 0, false, nil
	}
	page, read, err := db.forgetPage(ctx, now, db.clock.guard.Before(now, micros(retention)))
	if err != nil {
		return 0, false, fmt.Errorf("sweep inbox: %w", err)
	}
	done := 0
	for len(page) > 0 {
		n := min(len(page), sweepWrite)
		k := &forget{seqs: page[:n], now: now}
		if err := db.writer.do(ctx, k); err != nil {
			return done, false, fmt.Errorf("sweep inbox: %w", err)
		}
		done += k.done
		page = page[n:]
	}
	if read < sweepPage {
		s.forgotten = 0
		return done, false, nil
	}
	return done, true, nil
}

func (db *DB) forgetPage(ctx context.Context, now, receivedBefore int64) (page []int64, read int, err error) {
	s := &db.sweeps
	rows, err := db.query(ctx, forgettable, s.forgotten, sweepPage)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var seq, kept, received, expires, since int64
		if err := rows.Scan(&seq, &kept, &received, &expires, &since); err != nil {
			return nil, 0, err
		}
		if received > receivedBefore {
			return page, 0, nil // all rows that follow are younger
		}
		read++
		s.forgotten = seq
		if kept == 0 && expires < now && db.clock.judge(now, expires, expires-since) == belief.Over {
			page = append(page, seq)
		}
	}
	return page, read, rows.Err()
}

// forget deletes ids whose retention is over.
type forget struct {
	seqs []int64
	now  int64
	done int
}

func (k *forget) size() (int, int) { return len(k.seqs), 0 }

func (k *forget) apply(tx *writeTx) error {
	k.done = 0
	for _, seq := range k.seqs {
		n, err := tx.exec(purgeInbox, seq, k.now)
		if err != nil {
			return err
		}
		k.done += int(n)
	}
	tx.inboxed -= int64(k.done)
	return nil
}
