package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	moderncsqlite "modernc.org/sqlite"

	"github.com/holdfast-mq/holdfast"
)

// Backup writes a copy of the database to a new file, while everything else goes on. The copy shows
// the database as it is when the copy ends: all that was accepted before the call is in it. When
// Backup returns nil, the copy is one file that has been checked and is on disk under its name;
// until then there is nothing under that name. The folder must exist. fs.ErrExist, fs.ErrNotExist,
// fs.ErrPermission and holdfast.ErrDiskFull say what prevents the copy. ErrRecovering means that a
// damaged file is still being salvaged into this one. errors.ErrUnsupported means that the store
// lives in the caller's database, which the caller must back up. One backup runs at a time; Close
// ends it.
func (db *DB) Backup(ctx context.Context, path string) error {
	if err := db.backup(ctx, path); err != nil {
		return fmt.Errorf("back up to %s: %w", path, err)
	}
	return nil
}

func (db *DB) backup(ctx context.Context, path string) (err error) {
	if db.attached != nil {
		return errCallers
	}
	if err := db.writer.usable(ctx); err != nil {
		return err
	}
	if err := db.ready(); err != nil { // the backup would look complete
		return err
	}
	ctx, leave, err := db.backups.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	f, err := newCopyFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	f.connect, f.at = db.opts.connect, db.opts.at
	if err := db.copyPages(ctx, f); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return f.explain(err)
	}
	f.reached("copied")
	return f.publish(ctx)
}

// Limits of a step of a backup. The steps run on the writer's own connection, between two groups,
// where the backup sees each commit as it is made. On another connection it would begin again with
// each commit. A step holds the writer up, so the pause between two steps is twice as long as a
// step.
const (
	stepPages = 256 // 1 MiB
	leastStep = 16
	stepTime  = 5 * time.Millisecond
)

// A transaction that is undone makes a backup begin again, too. Each time the size of the steps
// doubles. After maxRestarts restarts the backup is done in one step.
const maxRestarts = 10

// pageCopier is SQLite's interface of a running backup.
type pageCopier interface {
	Step(pages int32) (more bool, err error)
	Remaining() int
	PageCount() int
	Finish() error
}

// errCallers means that the database is the caller's.
var errCallers = fmt.Errorf("%w: the store lives in a database of its caller; back that database up by its own means", errors.ErrUnsupported)

// newPageCopier begins a copy of a connection's database.
func newPageCopier(dc driver.Conn, to string) (pageCopier, error) {
	source, ok := dc.(interface {
		NewBackup(to string) (*moderncsqlite.Backup, error)
	})
	if !ok {
		return nil, fmt.Errorf("%w (its driver is %T)", errCallers, dc)
	}
	b, err := source.NewBackup(to)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func (db *DB) copyPages(ctx context.Context, f *copyFile) (err error) {
	var k pageCopier
	err = db.onWriter(ctx, func(c *conn) (err error) {
		if f.need, err = c.logicalSize(); err != nil {
			return err
		}
		if err := f.checkRoom(); err != nil {
			return err
		}
		// Nobody sees the file before it is complete. It needs no journal, and is synced once,
		// outside the writer. The last step, in the writer, writes what the copy's cache holds.
		d, ok := c.runner.(*direct)
		if !ok {
			return errCallers
		}
		k, err = db.opts.copier(d.dc, "file:"+escapePath(f.temp)+"?_pragma=journal_mode(off)&_pragma=synchronous(off)&_pragma=cache_size(-1000)")
		return err
	})
	if err != nil {
		return err
	}
	defer func() {
		if fault := db.finishCopy(k); err == nil {
			err = fault // after a failed step it only repeats the error
		}
	}()
	p := &pace{pages: stepPages, limit: stepTime}
	for more := true; more; {
		if err := db.onWriter(ctx, func(*conn) (err error) {
			more, err = p.step(k)
			return err
		}); err != nil {
			return err
		}
		f.reached("step")
		if more {
			if err := p.rest(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// onWriter is inspect that also waits for a long transaction.
func (db *DB) onWriter(ctx context.Context, f func(c *conn) error) error {
	for {
		if err := db.writer.inspect(ctx, f); !errors.Is(err, holdfast.ErrNested) {
			return err
		}
	}
}

// finishCopy frees what SQLite holds for the copy, on the connection on which it was made.
func (db *DB) finishCopy(k pageCopier) error {
	finished := false
	var fault error
	err := db.onWriter(context.Background(), func(*conn) error {
		finished, fault = true, k.Finish()
		return nil
	})
	if finished {
		return fault
	}
	<-db.writer.ended // it takes nothing more, and the connection is free
	return errors.Join(err, k.Finish())
}

// pace decides how much a step copies.
type pace struct {
	pages    int32
	limit    time.Duration
	done     int // pages
	restarts int
	busy     int
	took     time.Duration
}

func (p *pace) step(k pageCopier) (more bool, err error) {
	began := time.Now()
	more, err = k.Step(p.pages)
	p.took = time.Since(began)
	if isBusy(err) && p.busy < 100 {
		p.busy++ // nothing was copied, and the next step may copy
		return true, nil
	}
	if err != nil || !more {
		return false, err
	}
	done := k.PageCount() - k.Remaining()
	p.adapt(done < p.done+int(p.pages))
	p.done = done
	return true, nil
}

func (p *pace) adapt(restarted bool) {
	if restarted {
		p.restarts++
		p.limit *= 2
	}
	most := int32(stepPages) << p.restarts
	switch {
	case p.restarts >= maxRestarts:
		p.pages = -1
	case restarted:
		p.pages = min(p.pages*2, most)
	case p.took > p.limit:
		p.pages = max(p.pages/2, leastStep)
	case p.took < p.limit/2:
		p.pages = min(p.pages*2, most)
	}
}

// rest leaves the writer to others for a while.
func (p *pace) rest(ctx context.Context) error {
	t := time.NewTimer(max(min(2*p.took, 20*time.Millisecond), time.Millisecond))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// backups lets one backup run at a time, and ends it when the store closes.
type backups struct {
	turn  chan struct{} // holds one token: the turn
	life  context.Context
	close context.CancelCauseFunc
}

func newBackups() *backups {
	b := &backups{turn: make(chan struct{}, 1)}
	b.life, b.close = context.WithCancelCause(context.Background())
	return b
}

// enter waits for a turn. The context that it returns also ends with the store. The caller must
// call leave.
func (b *backups) enter(ctx context.Context) (both context.Context, leave func(), err error) {
	select {
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-b.life.Done():
		return nil, nil, context.Cause(b.life)
	case b.turn <- struct{}{}:
	}
	both, cancel := context.WithCancelCause(ctx)
	unwatch := context.AfterFunc(b.life, func() { cancel(context.Cause(b.life)) })
	return both, func() {
		unwatch()
		cancel(nil)
		<-b.turn
	}, nil
}

// end ends the running backup, waits for it, and lets no other begin.
func (b *backups) end() {
	b.close(holdfast.ErrClosed)
	b.turn <- struct{}{}
}

// BackupFile is Backup for the database at path from, which must not be in use: ErrOwned names the
// process that uses it. BackupFile does not change the database. ErrRecovering and ErrDamaged mean
// that a copy would be incomplete.
func BackupFile(ctx context.Context, from, to string) error {
	if err := backupFile(ctx, from, to); err != nil {
		return fmt.Errorf("back up %s to %s: %w", from, to, err)
	}
	return nil
}

func backupFile(ctx context.Context, from, to string) (err error) {
	from, err = realPath(from)
	if err != nil {
		return err
	}
	if err := mustExist(from); err != nil {
		return err
	}
	owner, err := own(from + ".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owner.release()) }()
	if _, err := resumeRestore(from); err != nil {
		return err
	}
	if err := checkWhole(from, owner); err != nil {
		return err
	}
	f, err := newCopyFile(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.clone(ctx, from); err != nil {
		return f.explain(err)
	}
	return f.publish(ctx)
}

// checkWhole refuses a file whose copy would be incomplete.
func checkWhole(path string, owner *ownership) error {
	d, err := unfinished(path, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if d != nil {
		return fmt.Errorf("%w: %s; start the node and let it end that first", ErrRecovering, d)
	}
	if cause := suspicion(path, owner.opened, false); cause != nil {
		return fmt.Errorf("%w; start the node: it sets the file aside and salvages what can be read", cause)
	}
	return nil
}

// mustExist fails unless there is a database, or a restore was about to put one there.
func mustExist(path string) error {
	if ready, err := restoredFile(path); err != nil || ready != "" {
		return err
	}
	_, err := os.Stat(path)
	return err
}

// realPath returns the canonical name of a file, from which its lock gets its name.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	to, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	return to, err
}
