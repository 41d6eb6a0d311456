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

// mayUseLastRoom says whether work may use the last of the room: it ends messages,
// records what has happened already, frees room, or is small and bounded.
// What is not named here is refused while the disk is full.
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

// admit refuses what would grow while the disk is full, and returns the rest.
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
		if refused == nil { // opened meanwhile
			rest = append(rest, j)
			continue
		}
		finish(j, refused)
	}
	return rest
}

// retryWithReserve goes on with a group that met a full disk: what would grow is refused
// if the disk is full for everybody, and the rest gets the room that can be
// made. It returns who has no answer yet.
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
			return group // by themselves
		}
	}
	return group
}

// alone runs one work in a transaction of its own, with all the room that can
// be made for it.
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

// growth is by how many bytes the database file has yet to grow until all that
// the log holds is in it.
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

// restartLog lets the log be written over from its start, after everything in it
// has been written into the database: the room that it has on the disk is its
// own. It does not begin where the disk has no room for that, since half a
// checkpoint eats what is left and brings nothing.
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

// restartLogWithReserve is restartLog with the help of the reserve, if that is enough.
func (w *writer) restartLogWithReserve() {
	r := &w.db.room
	need, err := w.growth()
	if err != nil || r.free()+r.reserve.holds() < need {
		return
	}
	r.giveUntil(need)
	w.restartLog()
}

// useReserve gives up a part of the reserve for a commit that met no room, and
// says whether there may be some now: in the log begun anew if the reserve
// allows that, and otherwise behind it.
func (w *writer) useReserve() bool {
	r := &w.db.room
	if !r.hopeless.IsZero() && time.Since(r.hopeless) < 200*time.Millisecond {
		return false // a group of many asks for each
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

// proveRoom makes the disk prove itself by a checkpoint that rewrites everything,
// and gives up the reserve for it if it must.
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

// errReader says that a checkpoint could not finish, for a harmless reason.
var errReader = errors.New("a reader holds the file")

// checkpoint writes the log into the database, all of it or with an error. It
// waits for readers only a moment, since everybody waits for it.
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
