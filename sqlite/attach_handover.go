package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
)

// Of the processes that are attached to one file, the one that dispatches owns it. If a dispatcher
// finds that another process owns the file, it shows that it wants the file by a lock on a second
// file beside it. An owner without a dispatcher checks this lock once a second, and gives the file
// up when it has nothing in hand. Both locks belong to the operating system: a process that dies
// releases them.

// wantedFile is the file whose lock shows that a dispatcher wants the database at path.
func wantedFile(path string) string { return path + ".lock.wanted" }

// isWanted reports whether a dispatcher of another process waits for the file.
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

// want shows that this process waits for the file. If another process shows it already, that is
// enough.
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

// unwant undoes want.
func (a *attached) unwant() error {
	was := a.wanted
	a.wanted = nil
	return was.release()
}

// contend takes this process's part in deciding who owns the file.
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
	if err := db.giveUpLock(); err != nil { // it was the owner, and another process has taken the file all the same
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
			return err // the process that dispatches comes first
		}
	}
	return db.adopt(ctx)
}

// adopt becomes the owner if no process is.
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
	// No event told this process which ids the former owner has forgotten.
	db.sweeps.mu.Lock()
	defer db.sweeps.mu.Unlock()
	return errors.Join(db.attached.unwant(), db.countInbox(ctx))
}

// handOver gives the file to a dispatcher of another process. It gives up if something is in hand
// here or waits for the owner, or if a dispatcher has started here meanwhile.
func (db *DB) handOver(ctx context.Context) error {
	if !db.idle() {
		return nil // so that it does not ask for the right to write each time
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

// noteHandOver writes what the next owner has to know.
func (db *DB) noteHandOver(c *conn) error {
	if err := db.enter(c); err != nil || !db.owns.Load() {
		return err
	}
	ls := db.lanes
	if ls.careful == 0 { // belongs to the writer, as the suspects do
		return db.noteStop(c, stopClean)
	}
	// A message that kills each process that tries it must not be acquitted because a process that
	// tries nothing has owned the file in between.
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

// idle reports whether nothing here needs the ownership.
func (ls *lanes) idle() bool { return !ls.wakes.Some() && len(ls.leases) == 0 && !ls.db.decided.Load() }

// resign ends the ownership in memory, unless it is in use. It does so in one step: each later
// claim gets nothing.
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

// giveUpLock releases the lock of a process that is no longer the owner.
func (db *DB) giveUpLock() error {
	was := db.owner
	db.owner = nil
	return was.release()
}

// forget drops what memory knew of the lanes as the owner. It keeps the goroutines that wait for
// news.
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

// noteHolder remembers which process owns the file, for Owner.
func (db *DB) noteHolder() {
	note, _, _ := readNote(db.path + ".lock") // an unreadable note gives no name
	holder := describeHolder(note)
	db.attached.holder.Store(&holder)
}

// Owner implements holdfast.Owned. It names the process that owns the file of an attached store, or
// returns "" if this process does.
func (db *DB) Owner() string {
	if db.attached == nil || db.owns.Load() {
		return ""
	}
	if holder := db.attached.holder.Load(); holder != nil {
		return *holder
	}
	return describeHolder("")
}
