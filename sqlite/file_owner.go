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

// ownership is the lock on the sidecar file: whoever holds it owns the
// database. The operating system gives it up when the process dies.
type ownership struct {
	file   *os.File
	note   string
	opened bool // a database was opened here before
}

// soleName refuses a file that has other names. The lock stands beside the name,
// for two reasons: a lock on the file itself is given up with the inode when the
// file is set aside, and to close any descriptor of it drops the locks that SQLite
// has on it (POSIX). So a file with one name is a file with one lock.
func soleName(path string) error {
	n, err := namesOf(path)
	if err != nil || n <= 1 {
		return nil //nolint:nilerr // it does not exist yet, or opening it says what is wrong
	}
	return fmt.Errorf("%w: %d hard links lead to it; remove all but one, or copy the file", ErrLinked, n)
}

// own takes the lock or says who has it.
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
	// In this order: on a full disk the room that a note had is not given away.
	if err := errors.Join(writeAt(f, note), f.Truncate(int64(len(note)))); err != nil {
		return nil, errors.Join(fmt.Errorf("write lock file: %w", err), f.Close())
	}
	return o, nil
}

// openLock opens a file beside the database that is there to be locked, or makes
// it.
func openLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noLink, 0o640) //nolint:gosec // for the group of the database to read who owns it
	if isLink(err) {
		return nil, fmt.Errorf("%s is a symbolic link, which is not followed; remove it: %w", path, err)
	}
	return f, readOnly(err)
}

// openedNote is the second line of a lock file beside which a database was
// opened: one that is empty or gone was not always so.
const openedNote = "opened\n"

func (o *ownership) noteOpened() {
	if !o.opened {
		_ = writeAt(o.file, o.note+openedNote) // only a hint
	}
}

// readNote reads who has, or had, the lock. Anything may stand there.
func readNote(path string) (holder string, opened bool, err error) {
	f, err := os.Open(path) //nolint:gosec // our own lock file
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
	// The file stays, so that two openers never lock two files.
	return errors.Join(unlockFile(o.file), o.file.Close())
}

// noteOwner writes down that this process is the owner now, and that it has not
// stopped.
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

// takeOver makes this process the owner in the file too, and gives back what
// the one before held.
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
	// First: two that think they hold the lock must not get one epoch.
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
	ls.token = db.epoch << 32 // a claim of the owner before has another number
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
	if db.attached == nil { // what the caller does with copies is the caller's
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
	db.decided.Store(open) // the first transaction carries it out
	return c.commit()
}

// checkEpoch fails when another process has become the owner: then the lock
// did not hold (a copied lock file, a file system without locks), and nothing
// of ours may be written any more.
func (db *DB) checkEpoch(c *conn) error {
	epoch, err := c.meta(metaEpoch)
	if err != nil {
		return err
	}
	if epoch != db.epoch {
		return fmt.Errorf("%w: epoch %d is not ours, %d", errLostOwnership, epoch, db.epoch)
	}
	return nil
}

// leaveClean notes that nothing was in hand. It also empties the log file,
// so that what stays on disk is one file.
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
		stop = stopUnclean // somebody did not settle: treat it like a crash
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
	stopInDoubt               // nothing was, but of what was in hand at a death before it is not known what it does: attach_handover.go
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

// seed sets the counters from live rows: the settled millions are not read.
func (db *DB) seed(c *conn) (err error) {
	counts := map[string]*lane{} // only their counters
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

// seedInbox counts remembered ids in the background: there can be tens of
// millions. It counts the snapshot of before the first write, and everything
// later is added by whoever writes it.
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

// escapePath keeps characters that mean something in a file URI out of it.
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
