package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-mq/holdfast"
)

// ownership is the lock on the file beside the database. Its holder owns the database. The
// operating system releases it when the process dies.
type ownership struct {
	file   *os.File
	note   string
	opened bool // a database was opened here before
}

// soleName refuses a file that has other names. The lock is a file beside the name, for two
// reasons. A lock on the database file itself would go away with the inode when the file is set
// aside. And closing any descriptor of the file drops SQLite's locks on it (POSIX). So a file needs
// one name to have one lock.
func soleName(path string) error {
	n, err := namesOf(path)
	if err != nil || n <= 1 {
		return nil //nolint:nilerr // the file does not exist yet, or opening it says what is wrong
	}
	return fmt.Errorf("%w: %d hard links lead to it; remove all but one, or copy the file", ErrLinked, n)
}

// own takes the lock, or says which process has it.
func own(path string) (*ownership, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := lockPatiently(f); err != nil {
		holder, _, _ := readNote(path)
		_ = f.Close()
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, fmt.Errorf("%w: %s; stop it, or choose another data folder", ErrOwned, describeHolder(holder))
	}
	_, opened, _ := readNote(path)
	host, _ := os.Hostname()
	o := &ownership{file: f, opened: opened, note: fmt.Sprintf("%d %s %s\n", os.Getpid(), host, time.Now().UTC().Format(time.RFC3339))}
	note := o.note
	if opened {
		note += openedNote
	}
	// In this order: on a full disk, the room of the old note is not given away.
	if err := errors.Join(writeAt(f, note), f.Truncate(int64(len(note)))); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock file: %w", err), f.Close())
	}
	return o, nil
}

// openLock opens or makes a file beside the database that serves as a lock.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noLink, 0o640) //nolint:gosec // the group of the database may read who owns it
	if isLink(err) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed; remove it: %w", path, err)
	}
	return f, readOnly(err)
}

// openedNote is the second line of a lock file. It says that a database was opened beside it, so
// that a database that is empty or missing now must have been lost.
const openedNote = "opened\n"

func (o *ownership) noteOpened() {
	if !o.opened {
		_ = writeAt(o.file, o.note+openedNote) // only a hint
	}
}

// readNote reads who has, or had, the lock. The file may hold anything.
func readNote(path string) (holder string, opened bool, err error) {
	f, err := os.Open(path) //nolint:gosec // this package's own lock file
	if err != nil {
		return "", false, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	holder, rest, _ := strings.Cut(string(text), "\n")
	return holder, rest == openedNote, errors.Join(err, f.Close())
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

func describeHolder(note string) string {
	f := strings.Fields(note)
	if len(f) != 3 {
		return "a process that left no name"
	}
	return fmt.Sprintf("process %s on %s, since %s", f[0], f[1], f[2])
}

func (o *ownership) release() error {
	if o == nil {
		return nil
	}
	// The file remains, so that two openers never lock two files.
	return errors.Join(unlockFile(o.file), o.file.Close())
}

// noteOwner writes that this process is the owner now, and that it has not stopped.
func (db *DB) noteOwner(c *conn) error {
	count, err := c.schemaCount()
	if err != nil {
		return err
	}
	exclusive := int64(1)
	if db.attached != nil {
		exclusive = 0
	}
	for key, value := range map[string]int64{metaEpoch: db.epoch, metaClean: stopUnclean, metaExclusive: exclusive, metaSchemaCount: count} {
		if _, err := c.exec(setMeta, key, value); err != nil {
			return err
		}
	}
	return nil
}

// takeOver makes this process the owner in the file too, and gives back the claims of the owner
// before.
func (db *DB) takeOver(c *conn) (err error) {
	last, err := db.lastNoted(c)
	if err == nil && last.at == 0 && db.salvaging != nil {
		last, err = db.salvaging.noted(c)
	}
	if err != nil {
		return err
	}
	if db.clock == nil {
		db.clock = newClock(last, &db.opts)
	} else {
		db.clock.begin(last)
	}
	db.tellDoubt()
	// First: two processes that both think they hold the lock must not get the same epoch.
	if err := c.begin(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.rollback()
		}
	}()
	clean, err := c.meta(metaClean)
	if err != nil {
		return err
	}
	epoch, err := c.meta(metaEpoch)
	if err != nil {
		return err
	}
	notify, err := c.meta(metaNotify)
	if err != nil {
		return err
	}
	db.notify.Store(notify)
	db.epoch = epoch + 1
	ls := db.lanes
	ls.mu.Lock()
	ls.token = db.epoch << 32 // claims of the owner before have other tokens
	if clean != stopClean && epoch > 0 {
		ls.careful = carefulSettles
	}
	ls.mu.Unlock()
	if clean == stopUnclean && epoch > 0 {
		db.log.Warn("the last stop was not clean", slog.Int64("epoch", epoch))
	}
	if err := db.noteOwner(c); err != nil {
		return err
	}
	if err := db.noteClock(c, db.clock.now()); err != nil {
		return err
	}
	if epoch == 0 {
		if _, err := c.exec(setMeta, metaIncarnation, string(holdfast.NewID())); err != nil {
			return err
		}
	}
	if db.attached == nil { // copies of the caller's database are the caller's concern
		if err := db.checkPlace(c, clean == stopClean || epoch == 0); err != nil {
			return err
		}
	}
	if err := db.reclaim(c, clean == stopInDoubt); err != nil {
		return err
	}
	open, err := c.one(givenUpRows, exists)
	if err != nil {
		return err
	}
	db.heard = never
	db.decided.Store(open) // the first transaction carries them out
	return c.commit()
}

// checkEpoch fails if another process has become the owner. Then the lock did not hold (a copied
// lock file, a file system without locks), and this process must not write any more.
func (db *DB) checkEpoch(c *conn) error {
	epoch, err := c.meta(metaEpoch)
	if err != nil {
		return err
	}
	if epoch != db.epoch {
		return fmt.Errorf("%w: the file has epoch %d, this process %d", errLostOwnership, epoch, db.epoch)
	}
	return nil
}

// leaveClean notes that nothing was in hand. It also empties the log file, so that one file remains
// on disk.
func (db *DB) leaveClean() error {
	if err := db.writer.acquire(); err != nil {
		return fmt.Errorf("note a clean stop: %w", err)
	}
	defer db.writer.giveBack()
	c := db.writer.conn
	if err := c.begin(); err != nil {
		return fmt.Errorf("note a clean stop: %w", err)
	}
	stop := stopClean
	if db.Counts().Claimed > 0 {
		stop = stopUnclean // a claim was not settled: the next start must treat it like a crash
	}
	if err := db.noteStop(c, stop); err != nil {
		c.rollback()
		return fmt.Errorf("note a clean stop: %w", err)
	}
	if err := c.commit(); err != nil || db.attached != nil {
		return err
	}
	_, err := c.pragma("PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// How an owner has left the file: the values of metaClean.
const (
	stopUnclean = int64(iota) // or it has not left
	stopClean                 // nothing was in hand
	stopInDoubt               // nothing was in hand, but messages that were in hand at an earlier death are still suspects: attach_handover.go
)

func (db *DB) noteStop(c *conn, stop int64) error {
	if err := db.checkEpoch(c); err != nil {
		return err
	}
	for key, value := range map[string]int64{metaClean: stop, metaExclusive: 0} {
		if _, err := c.exec(setMeta, key, value); err != nil {
			return err
		}
	}
	return db.noteClock(c, db.clock.now())
}

// seed sets the counters from live rows. It does not read the millions of settled ones.
func (db *DB) seed(c *conn) (err error) {
	counts := map[string]*lane{} // only for their counters
	for _, q := range []struct {
		state holdfast.State
		count query
	}{{holdfast.Pending, countPending}, {holdfast.Parked, countParked}, {holdfast.Expired, countExpired}} {
		if err := c.rows(queries[q.count], func(v []driver.Value) error {
			name := asText(v[0])
			if counts[name] == nil {
				counts[name] = &lane{}
			}
			counts[name].count(q.state, asInt(v[1]))
			return nil
		}); err != nil {
			return fmt.Errorf("count messages: %w", err)
		}
	}
	db.lanes.set(counts)
	if _, err := c.one(lastNotification, func(v []driver.Value) error {
		db.taken.Store(0)
		if notification := asInt(v[0]); notification > asInt(v[1]) {
			db.taken.Store(notification)
		}
		return nil
	}); err != nil {
		return fmt.Errorf("look for the last notification: %w", err)
	}
	low, err := readByAll(c)
	db.followed.Store(low < never)
	return err
}

// seedInbox counts the remembered ids in the background: there can be tens of millions. It counts
// the snapshot from before the first write. Later writes add to the count themselves.
func (db *DB) seedInbox(ctx context.Context) error {
	tx, err := db.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		close(db.background)
		return err
	}
	var kept int64
	if err := tx.QueryRowContext(ctx, queries[countKept]).Scan(&kept); err != nil {
		close(db.background)
		return errors.Join(err, tx.Rollback())
	}
	db.keptSize.Store(kept)
	go func() {
		defer close(db.background)
		defer func() { _ = tx.Rollback() }()
		var n int64
		if err := tx.QueryRowContext(ctx, queries[countInbox]).Scan(&n); err != nil {
			if ctx.Err() == nil {
				db.log.ErrorContext(ctx, "count inbox", slog.Any("error", err))
			}
			return
		}
		db.inboxSize.Add(n)
	}()
	return nil
}

// escapePath escapes the characters of a path that have a meaning in a file URI.
func escapePath(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; c {
		case '%', '?', '#', '&':
			b.WriteString("%" + strings.ToUpper(strconv.FormatInt(int64(c), 16)))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
