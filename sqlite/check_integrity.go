package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Check reads a page of rows at a time, and leaves the disk to others in
// between.
const (
	checkPage  = 500
	checkPause = 20 * time.Millisecond
)

// IntegrityCheck is the result of reading the whole file in the background:
// every message with its content hash and the ways to it through the indexes,
// every id of the inbox likewise, and, where
// the file is small enough for it to take moments, SQLite's own quick_check.
type IntegrityCheck struct {
	At        time.Time // when it ended
	Took      time.Duration
	Messages  int64  // rows read
	InboxIDs  int64  // rows read
	Broken    int64  // messages that are not what was accepted: parked, final, or kept and listed as damaged; and answers that were dropped
	Structure string // what quick_check said, or why it was not asked
	Err       error  // it could not be finished; ErrDamaged: the store has stopped itself
}

// Integrity returns the last result of the background check, if there is one.
func (db *DB) Integrity() (IntegrityCheck, bool) {
	if c := db.check.Load(); c != nil {
		return *c, true
	}
	return IntegrityCheck{}, false
}

// Check reads the whole file, a page of rows at a time, so that no snapshot is
// held for long, and returns what it found. It is for the background: a node
// calls it some minutes after its start and then once a day. What is damaged in a single message
// parks that message; a file that is damaged stops the store, so that the next
// start salvages it.
func (db *DB) Check(ctx context.Context) IntegrityCheck {
	began := time.Now()
	r := IntegrityCheck{}
	err := db.checkNames(ctx)
	if err == nil {
		err = db.checkMessages(ctx, &r)
	}
	if err == nil {
		err = db.checkInbox(ctx, &r)
	}
	if err == nil {
		err = db.checkStructure(ctx, &r)
	}
	r.At, r.Took, r.Err = time.Now(), time.Since(began), db.noted(err)
	if ctx.Err() != nil {
		return r // not the file's fault
	}
	db.check.Store(&r)
	level := slog.LevelInfo
	if r.Err != nil || r.Broken > 0 {
		level = slog.LevelError
	}
	db.log.LogAttrs(ctx, level, "database file checked", slog.Int64("messages", r.Messages), slog.Int64("inbox_ids", r.InboxIDs),
		slog.Int64("broken", r.Broken), slog.Duration("took", r.Took), slog.String("structure", r.Structure), slog.Any("error", r.Err))
	return r
}

// checkNames finds each name of a destination, sender or endpoint by its index.
// The start does the same.
func (db *DB) checkNames(ctx context.Context) (err error) {
	rows, err := db.query(ctx, wrongNames)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if !rows.Next() {
		return rows.Err()
	}
	v, err := values(rows, 2)
	if err != nil {
		return err
	}
	return wrongName(v[0], v[1])
}

func wrongName(what, name any) error {
	return fmt.Errorf("%w: the name of %s %q is not that of its index", ErrDamaged, what, asText(name))
}

// checkMessages reads messages with their bodies, compares their hashes, and
// finds each by its id.
func (db *DB) checkMessages(ctx context.Context, r *IntegrityCheck) error {
	var broken []int64
	return eachCheckedMessage(ctx, pagesOf(db.query), func(m *checkedRow) {
		if r.Messages++; m.sound {
			return
		}
		if r.Broken++; m.state == holdfast.Pending {
			broken = append(broken, m.seq)
		}
	}, func(more bool) error {
		err := db.parkBroken(ctx, broken)
		broken = nil
		return errors.Join(err, restAfter(ctx, more))
	})
}

// checkInbox finds each id of the inbox by its index: a wrong entry there would
// let the same message in a second time. It drops answers that are not what was answered.
func (db *DB) checkInbox(ctx context.Context, r *IntegrityCheck) error {
	var broken []int64
	return eachCheckedInbox(ctx, pagesOf(db.query), func(m *checkedRow) {
		if r.InboxIDs++; m.sound {
			return
		}
		if r.Broken++; m.Answer && !m.known {
			broken = append(broken, m.seq)
		}
	}, func(more bool) error {
		err := db.dropAnswers(ctx, broken)
		broken = nil
		return errors.Join(err, restAfter(ctx, more))
	})
}

// restAfter leaves the disk to others, where another page follows.
func restAfter(ctx context.Context, more bool) error {
	if !more {
		return nil
	}
	return pause(ctx, checkPause)
}

// quickCheck bounds how long SQLite's own check may hold a snapshot, during
// which the log cannot be emptied.
const quickCheck = 2 * time.Second

// checkStructure asks SQLite. It has no way to do so in pieces: a large file is
// left to the reading of its rows.
func (db *DB) checkStructure(ctx context.Context, r *IntegrityCheck) error {
	bounded, cancel := context.WithTimeout(ctx, quickCheck)
	defer cancel()
	err := db.readers.QueryRowContext(bounded, "PRAGMA quick_check(1)").Scan(&r.Structure)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case bounded.Err() != nil:
		r.Structure = fmt.Sprintf("not asked to the end: it takes more than %s", quickCheck)
		return nil
	case err != nil:
		return err
	case r.Structure != "ok":
		return fmt.Errorf("%w: %s", ErrDamaged, r.Structure)
	}
	return nil
}
