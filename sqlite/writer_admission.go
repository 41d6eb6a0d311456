package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// mayUseLastRoom reports whether work may use the last room on the disk: it ends messages, records
// what has happened already, frees room, or is small and bounded. All other work is refused while
// the disk is full.
func mayUseLastRoom(k work) bool {
	switch k := k.(type) {
	case *settle, *expire, *decision, *finishKept, *forget, *purge, *configure, *tableClaim, *reached, *purgeNotifications, workFunc:
		return true
	case *sideChange:
		return k.cost.LastRoom
	case *arrival:
		return k.responses != nil // the local program has been called
	}
	return false
}

// admit refuses work that would grow the file while the disk is full, and returns the rest.
func (w *writer) admit(group []*job) []*job {
	w.returnSpare()
	if !w.db.room.shut.Load() {
		return group
	}
	var refused error
	rest := group[:0:0]
	for _, j := range group {
		if mayUseLastRoom(j.work) {
			rest = append(rest, j)
			continue
		}
		if refused == nil {
			refused = w.db.room.refusal()
		}
		if refused == nil { // the room was opened meanwhile
			rest = append(rest, j)
			continue
		}
		finish(j, refused)
	}
	return rest
}

// retryWithReserve continues a group that has met a full disk. It refuses work that would grow the
// file, if the disk is full for everybody. The rest gets the room that can be made. It returns the
// jobs without an answer yet.
func (w *writer) retryWithReserve(group []*job) []*job {
	group = w.admit(group)
	for _, j := range group {
		if !mayUseLastRoom(j.work) {
			return group
		}
	}
	for len(group) > 0 && w.useReserve() {
		if err := w.trusted(); err != nil {
			finishAll(group, err)
			return nil
		}
		err := w.judge(w.transact(group))
		switch {
		case err == nil:
			finishAll(group, nil)
			return nil
		case !errors.Is(err, holdfast.ErrDiskFull):
			return group // each alone
		}
	}
	return group
}

// alone runs one work in its own transaction, with all the room that can be made for it.
func (w *writer) alone(j *job) error {
	if !mayUseLastRoom(j.work) {
		if err := w.db.room.refusal(); err != nil {
			return err
		}
	}
	err := w.judge(w.transact([]*job{j}))
	for errors.Is(err, holdfast.ErrDiskFull) && mayUseLastRoom(j.work) && w.useReserve() {
		if err := w.trusted(); err != nil {
			return err
		}
		err = w.judge(w.transact([]*job{j}))
	}
	return err
}

// growth returns by how many bytes the database file must still grow until it holds everything in
// the log.
func (w *writer) growth() (int64, error) {
	pages, err := w.conn.pragma("PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	size, err := w.conn.pragma("PRAGMA page_size")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(pages, 10, 64)
	each, sizeErr := strconv.ParseInt(size, 10, 64)
	s, statErr := os.Stat(w.db.path)
	if err := errors.Join(err, sizeErr, statErr); err != nil {
		return 0, err
	}
	return max(n*each-s.Size(), 0), nil
}

// restartLog writes everything in the log into the database, so that the log can be overwritten
// from its start: the log's room on the disk is its own. It does nothing if the disk has no room
// for that, since half a checkpoint uses up the rest and brings nothing.
func (w *writer) restartLog() bool {
	if need, err := w.growth(); err != nil || w.db.room.free() < need && w.db.room.free() >= 0 {
		return false
	}
	err := w.checkpoint("RESTART")
	if errors.Is(err, errIO) {
		w.note(err)
	}
	return err == nil && !w.suspect
}

// restartLogWithReserve is restartLog that uses the reserve, if that is enough.
func (w *writer) restartLogWithReserve() {
	r := &w.db.room
	need, err := w.growth()
	if err != nil || r.free()+r.reserve.holds() < need {
		return
	}
	r.giveUntil(need)
	w.restartLog()
}

// useReserve gives up a part of the reserve for a commit that met no room, and reports whether
// there may be room now. The room is in the restarted log if the reserve allows that, otherwise
// after it.
func (w *writer) useReserve() bool {
	r := &w.db.room
	if !r.hopeless.IsZero() && time.Since(r.hopeless) < 200*time.Millisecond {
		return false // a group of many asks once for each
	}
	some, err := r.reserve.give()
	if err != nil {
		w.db.log.Error("give up reserve", slog.Any("error", err))
	}
	if !some {
		r.hopeless = time.Now()
		return false
	}
	r.close()
	w.restartLogWithReserve()
	w.db.log.Warn("reserve used to record outcomes", slog.Int64("left_bytes", r.reserve.holds()), slog.String("folder", r.folder))
	return true
}

// proveRoom makes the disk prove itself by a checkpoint that rewrites everything. It gives up the
// reserve for that if necessary.
func (w *writer) proveRoom() error {
	for {
		err := w.checkpoint("TRUNCATE")
		if err == nil {
			return nil
		}
		if errors.Is(err, errIO) && w.db.room.spent() {
			err = fmt.Errorf("%w: %w", holdfast.ErrDiskFull, err)
		}
		if !errors.Is(err, holdfast.ErrDiskFull) {
			return err
		}
		w.note(err)
		if some, giveErr := w.db.room.reserve.give(); giveErr != nil || !some {
			return errors.Join(err, giveErr)
		}
	}
}

// errReader means that a checkpoint could not finish, for a harmless reason.
var errReader = errors.New("a reader holds the file")

// checkpoint writes the whole log into the database, or returns an error. It waits for readers only
// for a moment, since everybody waits for it.
func (w *writer) checkpoint(mode string) error {
	before, err := w.conn.pragma("PRAGMA busy_timeout") // the connection may be the caller's
	if err != nil {
		return translate(err)
	}
	if _, err := w.conn.pragma("PRAGMA busy_timeout = 500"); err != nil {
		return translate(err)
	}
	busy, err := w.conn.pragma("PRAGMA wal_checkpoint(" + mode + ")")
	_, back := w.conn.pragma("PRAGMA busy_timeout = " + before)
	if err == nil && busy != "0" {
		err = errReader
	}
	return errors.Join(translate(err), translate(back))
}
