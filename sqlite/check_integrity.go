package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// Check reads a page of rows at a time, and leaves the disk to others between two pages.
const (
	checkPage  = 500
	checkPause = 20 * time.Millisecond
)

// IntegrityCheck is the result of reading the whole file in the background. The check reads every
// message with its content hash and its entries in the indexes, and every id of the inbox likewise.
// If the file is so small that it takes moments, SQLite's own quick_check runs as well.
type IntegrityCheck struct {
	At        time.Time // when it ended
	Took      time.Duration
	Messages  int64  // rows read
	InboxIDs  int64  // rows read
	Broken    int64  // rows that are not what was accepted: messages that are parked, final, or kept and listed as damaged; and answers that were dropped
	Structure string // what quick_check said, or why it did not run
	Err       error  // why the check could not finish; ErrDamaged: the store has stopped itself
}

// Integrity returns the last result of the background check, if there is one.
func (db *DB) Integrity() (IntegrityCheck, bool) {
	if c := db.check.Load(); c != nil {
		return *c, true
	}
	return IntegrityCheck{}, false
}

// Check reads the whole file and returns what it found. It reads a page of rows at a time, so that
// it holds no snapshot for long. It is for the background: a node calls it some minutes after its
// start and then once a day. If a single message is damaged, Check parks it. If the file is
// damaged, Check stops the store, and the next start salvages the file.
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
		return r // the file is not at fault
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

// checkNames looks up each name of a destination, sender or endpoint by its index. The start does
// the same.
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
	return fmt.Errorf("%w: the name of %s %q differs from its index", ErrDamaged, what, asText(name))
}

// checkMessages reads messages with their bodies, compares their hashes, and looks up each by its
// id.
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

// checkInbox looks up each id of the inbox by its index: with a wrong entry, the same message would
// get in a second time. It drops damaged answers.
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

// restAfter leaves the disk to others if another page follows.
func restAfter(ctx context.Context, more bool) error {
	if !more {
		return nil
	}
	return pause(ctx, checkPause)
}

// quickCheck limits how long SQLite's own check may hold a snapshot. Meanwhile the log cannot be
// emptied.
const quickCheck = 2 * time.Second

// checkStructure runs SQLite's quick_check, which cannot be done in pieces. For a large file, the
// check of the rows must suffice.
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
