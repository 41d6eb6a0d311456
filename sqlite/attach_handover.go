package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// Of the processes that are attached to one file, the one that dispatches owns
// it. A dispatcher that finds the file another's shows that it wants it, by a
// lock on a second file beside it; an owner without a dispatcher looks there once
// a second, and lets the file go when nothing is in hand. Both are locks of the
// operating system: whoever dies at any point wants and has nothing any more.

// wantedFile is where a dispatcher shows that it wants the database at path.
func wantedFile(path string) string { return path + ".lock.wanted" }

// isWanted says whether a dispatcher of another process waits for the file.
func isWanted(path string) (bool, error) {
	f, err := os.Open(wantedFile(path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look who wants the file: %w", err)
	}
	wanted, err := isLocked(f)
	return wanted, errors.Join(err, f.Close())
}

// want shows that this process waits for the file. Where another does already,
// that is shown enough.
func (a *attached) want(path string) error {
	if a.wanted != nil {
		return nil
	}
	f, err := openLock(wantedFile(path))
	if err != nil {
		return fmt.Errorf("show that the file is wanted: %w", err)
	}
	switch err := lockPatiently(f); {
	case errors.Is(err, errLocked):
		return f.Close()
	case err != nil:
		return errors.Join(fmt.Errorf("show that the file is wanted: %w", err), f.Close())
	}
	a.wanted = &ownership{file: f}
	return nil
}

// unwant ends that.
func (a *attached) unwant() error {
	was := a.wanted
	a.wanted = nil
	return was.release()
}

// contend does this process's part in whose the file is to be.
func (db *DB) contend(ctx context.Context, dispatches bool) error {
	if db.owns.Load() {
		if dispatches {
			return nil
		}
		wanted, err := isWanted(db.path)
		if err != nil || !wanted {
			return err
		}
		return db.handOver(ctx)
	}
	if err := db.giveUpLock(); err != nil { // it was the owner, and another took the file all the same
		return err
	}
	if dispatches {
		if err := db.attached.want(db.path); err != nil {
			return err
		}
	} else {
		err := db.attached.unwant()
		wanted, cannotTell := isWanted(db.path)
		if err = errors.Join(err, cannotTell); err != nil || wanted {
			return err // who dispatches comes first
		}
	}
	return db.adopt(ctx)
}

// adopt becomes the owner if nobody is.
func (db *DB) adopt(ctx context.Context) error {
	owner, err := own(db.path + ".lock")
	if errors.Is(err, ErrOwned) {
		db.noteHolder()
		return nil
	}
	if err != nil {
		return err
	}
	err = db.writer.bare(ctx, func(c *conn) error {
		ls := db.lanes
		ls.mu.Lock()
		ls.forget()
		ls.mu.Unlock()
		return db.enterFile(c, true)
	})
	if err != nil {
		return errors.Join(fmt.Errorf("take the file over: %w", err), owner.release())
	}
	db.owner = owner
	db.log.InfoContext(ctx, "took the file over", slog.String("path", db.path), slog.Int64("epoch", db.epoch))
	db.lanes.wakes.RingAll()
	// Nobody told of the ids that the former owner has forgotten.
	db.sweeps.mu.Lock()
	defer db.sweeps.mu.Unlock()
	return errors.Join(db.attached.unwant(), db.countInbox(ctx))
}

// handOver lets the file go to a dispatcher of another process. It comes to
// nothing while something is in hand here or waits for the owner, or when a
// dispatcher has come here meanwhile.
func (db *DB) handOver(ctx context.Context) error {
	if !db.idle() {
		return nil // do not ask for the right to write each time
	}
	resigned := false
	err := db.writer.bare(ctx, func(c *conn) error {
		if err := db.writer.trusted(); err != nil {
			return err
		}
		err := c.begin()
		if err == nil {
			if err = db.noteHandOver(c); err == nil && db.resign() {
				resigned, err = true, c.commit() // if it fails, the next owner begins as after a crash
			} else {
				c.rollback()
			}
		}
		return db.writer.judge(err)
	})
	if err != nil {
		err = fmt.Errorf("hand the file over: %w", err)
	}
	if !resigned {
		return err
	}
	db.log.InfoContext(ctx, "handed the file over to a dispatcher of another process", slog.String("path", db.path))
	return errors.Join(err, db.giveUpLock())
}

// noteHandOver writes down what the next owner has to know.
func (db *DB) noteHandOver(c *conn) error {
	if err := db.enter(c); err != nil || !db.owns.Load() {
		return err
	}
	ls := db.lanes
	if ls.careful == 0 { // it is the writer's to change, as the suspects are
		return db.noteStop(c, stopClean)
	}
	// A message that kills each process which tries it must not be acquitted
	// because one that tries nothing has had the file in between.
	for seq := range ls.suspects {
		if _, err := c.exec(claimDurably, seq); err != nil {
			return err
		}
	}
	return db.noteStop(c, stopInDoubt)
}

func (db *DB) idle() bool {
	db.lanes.mu.Lock()
	defer db.lanes.mu.Unlock()
	return db.lanes.idle()
}

// idle says whether nobody would miss the ownership here.
func (ls *lanes) idle() bool { return !ls.wakes.Some() && len(ls.leases) == 0 && !ls.db.decided.Load() }

// resign ends the ownership in memory, unless it is in use. In one step: whoever
// claims from here on gets nothing.
func (db *DB) resign() bool {
	ls := db.lanes
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !db.owns.Load() || !ls.idle() {
		return false
	}
	db.owns.Store(false)
	ls.forget()
	db.attached.holder.Store(nil)
	return true
}

// giveUpLock gives up the lock of an owner that is none any more.
func (db *DB) giveUpLock() error {
	was := db.owner
	db.owner = nil
	return was.release()
}

// forget drops what memory knew of the lanes as the owner's, but not who waits
// for news.
func (ls *lanes) forget() {
	for _, l := range ls.byName {
		l.leased = 0
		ls.rewind(l)
	}
	clear(ls.leases)
	clear(ls.suspects)
	ls.careful, ls.most = 0, everything
	ls.nextExpiry = 0
}

// noteHolder remembers who has the file, for Owner.
func (db *DB) noteHolder() {
	note, _, _ := readNote(db.path + ".lock") // what cannot be read has no name
	holder := describeHolder(note)
	db.attached.holder.Store(&holder)
}

// Owner implements holdfast.Owned: the process that owns the file an attached
// store is in, if it is another.
func (db *DB) Owner() string {
	if db.attached == nil || db.owns.Load() {
		return ""
	}
	if holder := db.attached.holder.Load(); holder != nil {
		return *holder
	}
	return describeHolder("")
}
