package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// room watches the space on the disk. While there is none, only work that ends messages or makes
// room is done: it mostly overwrites what is there. Work that would grow the file is refused
// without asking the disk, so that it does not use what the rest needs.
//
//	open ── a commit met a full disk ──► shut ── the reserve is whole again, and some room beside it ──► open
//
// While shut, work that still finds no room gets it from useReserve. If only this store has filled
// the disk, the disk never has room again, because the store's file does not shrink. Then the free
// pages inside the file count instead.
type room struct {
	folder  string
	callers bool // the disk is the caller's: nothing is refused before it was tried
	log     *slog.Logger
	reserve reserve

	shut     atomic.Bool
	borrowed atomic.Bool   // open although the disk is full: free pages of the file stand in for the reserve
	ring     chan struct{} // holds one token: the room was just shut
	done     chan struct{} // closed when watch has returned; nil: it was never started
	looking  sync.Mutex    // one look at a time

	hopeless time.Time // when nothing was left to give; belongs to the writer
}

// Disk is the state of a store's disk.
type Disk struct {
	Free    int64 // bytes that may still be written; negative: the system does not say
	Full    bool  // nothing new is accepted
	Held    int64 // bytes of the reserve that are set aside
	Reserve int64 // bytes that should be set aside
	Log     int64 // bytes of the log file; far more than 16 MiB means that it cannot be written into the database
}

// Disk asks the system how much room is left.
func (db *DB) Disk() Disk {
	r := &db.room
	d := Disk{Free: r.free(), Full: db.Full(), Held: r.reserve.holds(), Reserve: r.reserve.want}
	if s, err := os.Stat(db.path + "-wal"); err == nil {
		d.Log = s.Size()
	}
	return d
}

// prepare finds or makes the reserve before the database is opened: on a full disk, opening needs
// some of it.
func (r *room) prepare(path string, o *Options) {
	r.folder, r.log, r.ring = filepath.Dir(path), o.Logger, make(chan struct{}, 1)
	if err := r.reserve.adopt(path+".reserve", o.Reserve); err != nil {
		r.log.Warn("reserve not usable: a full disk will leave no room to record outcomes", slog.Any("error", err))
		r.reserve.want = 0
		return
	}
	missing := r.reserve.missing()
	if free := r.free(); free >= 0 && free < missing+r.margin() {
		if missing > 0 {
			r.log.Warn("disk too full for the reserve: free some space", slog.String("folder", r.folder), slog.Int64("free_bytes", free), slog.Int64("missing_bytes", missing))
		}
		if free < r.margin() {
			r.log.Error("disk full: messages are refused until there is room", slog.String("folder", r.folder), slog.Int64("free_bytes", free))
			r.close()
			r.giveUntil(r.margin())
		}
		return
	}
	if err := r.reserve.fill(); err != nil {
		r.log.Warn("reserve not made: a full disk will leave no room to record outcomes", slog.Any("error", err))
	}
}

// beside is prepare for the caller's database. The disk is the caller's, who may write to it while
// there is room; nothing is set aside.
func (r *room) beside(path string, o *Options) {
	r.folder, r.log, r.ring, r.callers = filepath.Dir(path), o.Logger, make(chan struct{}, 1), true
	r.reserve.path = path + ".reserve" // for a probe
}

// explain gives an error of opening the store its meaning, and says what helps.
func (r *room) explain(err error) error {
	err = translate(err)
	if errors.Is(err, errIO) && r.spent() {
		err = fmt.Errorf("%w: %w", holdfast.ErrDiskFull, err)
	}
	if errors.Is(err, holdfast.ErrDiskFull) {
		return fmt.Errorf("%w; free some space at %s and start again, nothing that was accepted is lost", err, r.folder)
	}
	return err
}

// forgive drops errors of closing the store on a full disk: the note of a clean stop can be
// missing, and the log file remains. The next start handles both.
func (r *room) forgive(err error) error {
	if err = translate(err); errors.Is(err, holdfast.ErrDiskFull) {
		r.log.Warn("disk full at the stop: the next start takes it for an unclean one", slog.Any("error", err))
		return nil
	}
	return err
}

// margin is how many bytes must be free beside the reserve until the disk no longer counts as full.
// With less, it would be full again at once.
func (r *room) margin() int64 { return max(r.reserve.want/4, 512<<10) }

// free returns how many bytes may still be written; negative: unknown.
func (r *room) free() int64 {
	n, err := freeBytes(r.folder)
	if err != nil {
		return -1
	}
	return n
}

// giveUntil gives parts of the reserve back until so many bytes are free.
func (r *room) giveUntil(free int64) {
	for r.free() < free {
		if some, err := r.reserve.give(); err != nil || !some {
			return
		}
	}
}

// close refuses work that would grow the file, from now on.
func (r *room) close() {
	if !r.shut.CompareAndSwap(false, true) {
		return
	}
	select {
	case r.ring <- struct{}{}:
	default:
	}
}

// refusal returns the error for work that would grow the file, or nil.
func (r *room) refusal() error {
	if !r.shut.Load() {
		return nil
	}
	return fmt.Errorf("%w: %s left at %s, and the rest is kept to record outcomes", holdfast.ErrDiskFull, r.left(), r.folder)
}

func (r *room) left() string {
	if n := r.free(); n >= 0 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return "nothing"
}

// met notes that a commit found no room. If the disk has some all the same, the room stays open:
// smaller commits may fit, or a quota is the cause.
func (r *room) met() {
	if r.callers {
		return
	}
	if free := r.free(); free < r.margin() {
		r.close()
	}
}

// watch looks for room while there is too little. It must not hurry: a disk that claims room and
// then has none would be asked for ever.
func (db *DB) watch(ctx context.Context) {
	r := &db.room
	defer close(r.done)
	const soon, late = time.Second, 30 * time.Second
	wait := soon
	opened := time.Time{}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		if !r.shut.Load() && r.reserve.missing() == 0 {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-r.ring:
			if wait = soon; time.Since(opened) < time.Minute {
				wait = min(2*wait, late)
			}
			timer.Reset(wait)
			continue
		case <-timer.C:
		}
		was := r.shut.Load()
		db.look(ctx)
		if was && !r.shut.Load() {
			opened = time.Now()
		}
		if timer.Reset(wait); !r.shut.Load() {
			timer.Reset(late)
		}
	}
}

// look completes the reserve if there is room for it, and accepts everything again if some room is
// left beside it.
func (db *DB) look(ctx context.Context) {
	r := &db.room
	r.looking.Lock()
	defer r.looking.Unlock()
	missing := r.reserve.missing()
	enough := missing + r.margin()
	borrow := false
	switch free := r.free(); {
	case free < 0 || free >= enough:
		if missing > 0 && r.reserve.fill() != nil {
			return
		}
	case !r.shut.Load():
		return
	default:
		spare := int64(0)
		err := db.writer.inspect(ctx, func(c *conn) (err error) {
			spare, err = c.spare()
			return err
		})
		if err != nil || spare < enough {
			return
		}
		borrow = true
	}
	r.borrowed.Store(borrow)
	if r.shut.CompareAndSwap(true, false) {
		db.full.Store(0)
		r.log.InfoContext(ctx, "room again: messages are accepted", slog.String("folder", r.folder), slog.Bool("inside_the_file", borrow))
	}
}

// spare returns the size of the file's free pages, in bytes.
func (c *conn) spare() (int64, error) {
	pages, err := c.pragma("PRAGMA freelist_count")
	if err != nil {
		return 0, err
	}
	size, err := c.pragma("PRAGMA page_size")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(pages, 10, 64)
	each, sizeErr := strconv.ParseInt(size, 10, 64)
	return n * each, errors.Join(err, sizeErr)
}

// returnSpare shuts the room before free pages that stand in for the reserve are used.
func (w *writer) returnSpare() {
	r := &w.db.room
	if !r.borrowed.Load() || r.shut.Load() {
		return
	}
	if spare, err := w.conn.spare(); err != nil || spare < r.reserve.missing() {
		r.close()
	}
}

// spent reports whether an I/O error came from a full disk or a used-up quota. SQLite reports these
// as such only where it writes a page.
func (r *room) spent() bool {
	if free := r.free(); free >= 0 && free < 64<<10 {
		return true
	}
	return noRoom(r.reserve.probe())
}
