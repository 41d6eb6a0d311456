package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// maxStrikes is how often in a row the disk may refuse before the store stops.
const maxStrikes = 8

// beginError is a fault of the transaction itself. Running each work alone would meet it again.
type beginError struct{ error }

func (e *beginError) Unwrap() error { return e.error }

// commit writes the group in one transaction. If anything in it fails, commit writes each work in
// its own transaction, so that a fault affects only its own caller.
func (w *writer) commit(group []*job) {
	if err := w.trusted(); err != nil {
		finishAll(group, err)
		return
	}
	if group = w.admit(group); len(group) == 0 {
		return
	}
	began := time.Now()
	err := w.transact(group)
	if errors.Is(translate(err), holdfast.ErrDiskFull) && w.restartLog() {
		err = w.transact(group)
	}
	if err == nil {
		w.pace = (7*w.pace + time.Since(began)) / 8
		finishAll(group, nil)
		return
	}
	fault := w.judge(err)
	full := errors.Is(fault, holdfast.ErrDiskFull)
	if full {
		group = w.retryWithReserve(group)
	}
	if _, ok := errors.AsType[*beginError](err); ok || len(group) == 1 && (!full || !mayUseLastRoom(group[0].work)) {
		finishAll(group, fault)
		return
	}
	for i, j := range group {
		// The error of the job before may mean that the disk must prove itself.
		if err := w.trusted(); err != nil {
			finishAll(group[i:], err)
			return
		}
		finish(j, w.alone(j))
	}
}

func finish(j *job, err error) {
	j.err = err
	j.done <- struct{}{}
}

func finishAll(group []*job, err error) {
	for _, j := range group {
		finish(j, err)
	}
}

// transact runs the group in one transaction. After the commit it publishes the changes to memory.
func (w *writer) transact(group []*job) (err error) {
	tx := &w.tx
	tx.begin(w)
	defer func() {
		if p := recover(); p != nil {
			w.db.log.Error("panic in a transaction", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic in a transaction: %v", p)
		}
		if err != nil {
			tx.rollback()
		}
	}()
	if err := w.begin(); err != nil {
		return &beginError{err}
	}
	for _, j := range group {
		if err := j.work.apply(tx); err != nil {
			return err
		}
	}
	if err := w.saveClock(tx); err != nil {
		return err
	}
	if err := w.conn.commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	tx.publish()
	return w.db.present()
}

func (w *writer) begin() error {
	if err := w.conn.begin(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return w.tx.enter()
}

// conclude is the last step of a transaction of Do.
func (w *writer) conclude(tx *writeTx) error {
	if tx.doubted {
		if err := tx.recall(); err != nil {
			return err
		}
	}
	return w.saveClock(tx)
}

// saveClock writes the store's clock to the file for the next start: now and then, and when the
// belief in the clock has changed. Of several processes only the owner writes it.
func (w *writer) saveClock(tx *writeTx) error {
	const every = int64(time.Minute / time.Microsecond)
	saved, news := w.db.clockSaved, w.db.clock.guard.News()
	if tx.now-saved.at < every && news == saved.news || !w.db.owns.Load() {
		return nil
	}
	w.db.clockSaved = clockSaved{tx.now, news}
	tx.undo = append(tx.undo, func() { w.db.clockSaved = saved })
	return w.db.noteClock(w.conn, tx.now)
}

// clockSaved says which state of the clock is in the file.
type clockSaved struct {
	at   int64
	news uint64
}

// judge translates an error for the caller, and notes what it says about the disk.
func (w *writer) judge(err error) error {
	if err == nil {
		return nil
	}
	err = translate(err)
	if errors.Is(err, errIO) && w.db.room.spent() {
		err = fmt.Errorf("%w: %w", holdfast.ErrDiskFull, err) // a checkpoint may still prove it wrong
	}
	w.note(err)
	if w.fatal != nil {
		return w.closedError()
	}
	return err
}

// note remembers a write that failed. The kernel may have dropped what it could not write, and a
// later sync would succeed without it.
func (w *writer) note(err error) {
	if errors.Is(err, holdfast.ErrDiskFull) {
		if !w.db.Full() { // small writes may find room between large ones
			w.db.log.Error("disk full: messages are refused until there is room", slog.String("path", w.db.path))
		}
		w.db.full.Store(int64(time.Since(w.born)) | 1)
		w.db.room.met()
	}
	if errors.Is(err, errIO) {
		w.suspect = true
		w.db.log.Error("write failed", slog.Any("error", err))
	}
	if errors.Is(err, errLostOwnership) || errors.Is(err, errGone) {
		w.stop(err)
	}
	w.db.damaged(err)
}

// trusted returns an error if a commit could not be believed: after a failed write, until a
// truncating checkpoint has rewritten everything.
func (w *writer) trusted() error {
	if w.fatal != nil {
		return w.closedError()
	}
	if w.doubted.Swap(false) {
		w.suspect = true
	}
	if !w.suspect {
		return nil
	}
	err := w.proveRoom()
	if err == nil {
		w.suspect, w.strikes = false, 0
		w.db.log.Warn("disk answers again after a failed write")
		return nil
	}
	err = fmt.Errorf("checkpoint after a failed write: %w", err)
	if errors.Is(err, holdfast.ErrDiskFull) || errors.Is(err, errReader) {
		return err // neither means that the disk is broken
	}
	if w.strikes++; w.strikes >= maxStrikes {
		w.stop(err)
		return w.closedError()
	}
	return err
}

// stop stops the store: it accepts nothing more, and DB.Failed tells.
func (w *writer) stop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fatal != nil {
		return
	}
	w.fatal, w.closing = err, true
	w.db.log.Error("store stopped", slog.Any("error", err))
	close(w.db.failed)
}
