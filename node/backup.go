package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/admin/api"
	"github.com/holdfast-mq/holdfast/config"
	"github.com/holdfast-mq/holdfast/metrics"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// The name of a backup says when it was made, so that names sort by age. Only
// files with such a name are ever removed.
const (
	backupPrefix = "holdfast-"
	backupSuffix = ".db"
	backupStamp  = "20060102T150405Z"
)

// firstBackup is when a node that has no backup makes its first one, and
// retryBackup how soon one that failed is tried again, unless the interval is
// shorter.
const (
	firstBackup = time.Minute
	retryBackup = 10 * time.Minute
)

// copied is a backup that stands in its folder.
type copied struct {
	path string
	at   time.Time
	size int64
}

// backups copies the database by the clock, and keeps so many copies.
type backups struct {
	store  *sqlite.DB
	folder string
	conf   config.Backup
	log    *slog.Logger

	state atomic.Pointer[backupState]
}

// backupState is what health and metrics show.
type backupState struct {
	last    copied    // zero: there is none
	current time.Time // when the last one was known to hold everything
	problem string    // why there is no later one; empty: there is none needed
}

func newBackups(store *sqlite.DB, folder string, conf config.Backup, log *slog.Logger) *backups {
	b := &backups{store: store, folder: folder, conf: conf, log: log}
	s := &backupState{}
	if list, err := listBackups(folder); err == nil && len(list) > 0 { // an error shows again at the first pass
		s.last = list[len(list)-1]
		s.current = s.last.at
	}
	b.state.Store(s)
	return b
}

// run makes backups until ctx ends.
func (b *backups) run(ctx context.Context) error {
	if b.conf.Every == config.Never {
		<-ctx.Done()
		return nil
	}
	wait := b.first(time.Now())
	for {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil
		case <-t.C:
		}
		wait = b.conf.Every
		if err := b.pass(ctx); err != nil {
			wait = min(wait, retryBackup)
		}
	}
}

// first is how long to wait after a start: restarts neither put backups off
// nor add to them.
func (b *backups) first(now time.Time) time.Duration {
	least := min(b.conf.Every, firstBackup)
	last := b.state.Load().last.at
	if last.IsZero() {
		return least
	}
	since := max(now.Sub(last), 0) // the clock may have been set back
	return max(b.conf.Every-since, least)
}

// pass makes a backup if something has changed, and removes what is too many.
func (b *backups) pass(ctx context.Context) error {
	was := b.state.Load()
	is, err := b.make(ctx, *was)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		if is.problem = err.Error(); is.problem != was.problem { // told once; health goes on saying it
			b.log.WarnContext(ctx, "no backup was made", slog.Any("error", err))
		}
	case was.problem != "":
		b.log.InfoContext(ctx, "backups are made again", slog.String("path", is.last.path))
	}
	b.state.Store(&is)
	return err
}

func (b *backups) make(ctx context.Context, s backupState) (backupState, error) {
	if err := os.MkdirAll(b.folder, 0o750); err != nil {
		return s, err
	}
	list, err := listBackups(b.folder)
	if err != nil {
		return s, err
	}
	s.last = copied{}
	if len(list) > 0 {
		s.last = list[len(list)-1]
		changed, err := b.store.ChangedSince(ctx, s.last.path)
		if err != nil {
			return s, err
		}
		if !changed {
			s.current, s.problem = time.Now(), ""
			return s, nil
		}
	}
	began := time.Now()
	made, err := backUp(ctx, b.store.Backup, b.folder)
	if err != nil {
		return s, err
	}
	s = backupState{last: made, current: time.Now()}
	b.log.InfoContext(ctx, "backup made", slog.String("path", made.path), slog.Int64("bytes", made.size), slog.Duration("took", time.Since(began)))
	return s, b.rotate(ctx, append(list, made), made)
}

// rotate removes what is too many, but never the copy that was just made.
func (b *backups) rotate(ctx context.Context, list []copied, made copied) error {
	var faults []error
	for _, c := range tooMany(list, b.conf.Hourly, b.conf.Daily) {
		if c.path == made.path {
			continue
		}
		if err := os.Remove(c.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			faults = append(faults, fmt.Errorf("remove an old backup: %w", err))
			continue
		}
		b.log.DebugContext(ctx, "old backup removed", slog.String("path", c.path))
	}
	return errors.Join(faults...)
}

// tooMany are those that are neither the last of one of so many hours, nor of
// one of so many days, nor the last of all. Hours and days without a backup do
// not count: where nothing changes, old backups stay.
func tooMany(list []copied, hourly, daily int) (remove []copied) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b copied) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.path, a.path)) })
	hours, days := map[time.Time]bool{}, map[time.Time]bool{}
	for i, c := range list {
		hour, day := c.at.Truncate(time.Hour), c.at.Truncate(24*time.Hour)
		keep := i == 0
		if len(hours) < hourly && !hours[hour] {
			hours[hour], keep = true, true
		}
		if len(days) < daily && !days[day] {
			days[day], keep = true, true
		}
		if !keep {
			remove = append(remove, c)
		}
	}
	return remove
}

// listBackups reads a folder, the oldest first. Without the folder there are
// none.
func listBackups(folder string) (list []copied, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		at, err := time.Parse(backupPrefix+backupStamp+backupSuffix, e.Name())
		if err != nil || at.Format(backupPrefix+backupStamp+backupSuffix) != e.Name() || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // removed meanwhile
		}
		list = append(list, copied{path: filepath.Join(folder, e.Name()), at: at, size: info.Size()})
	}
	return list, nil
}

// measured are the numbers of the backups: none before the first one (OI-14).
func (b *backups) measured() metrics.Source {
	const at, size = "holdfast_backup_last_success_timestamp_seconds", "holdfast_backup_size_bytes"
	return metrics.Source{
		Metrics: []metrics.Metric{
			{Name: at, Help: "When a backup was last made, or found to be still up to date."},
			{Name: size, Help: "Size of the last backup."},
		},
		Read: func(see func(name string, value int64, label ...string)) {
			if last, bytes := b.newest(); !last.IsZero() {
				see(at, last.Unix())
				see(size, bytes)
			}
		},
	}
}

// newest is for metrics.
func (b *backups) newest() (current time.Time, size int64) {
	s := b.state.Load()
	return s.current, s.last.size
}

// health says how old the last backup is, and why there is no later one.
func (b *backups) health() (name, status, detail string) {
	if b.conf.Every == config.Never {
		return "", "", ""
	}
	s := b.state.Load()
	last := "none has been made yet"
	if s.last.path != "" {
		last = fmt.Sprintf("last backup %s, %d bytes, %s", s.last.at.Format(time.RFC3339), s.last.size, s.last.path)
	}
	if s.problem != "" {
		return "backup", api.Degraded, s.problem + "; " + last
	}
	return "backup", api.OK, last
}

// backUp makes a copy under a name of its own in the folder.
func backUp(ctx context.Context, to func(ctx context.Context, path string) error, folder string) (c copied, err error) {
	for at := time.Now().UTC().Truncate(time.Second); ; at = at.Add(time.Second) {
		c = copied{at: at, path: filepath.Join(folder, at.Format(backupPrefix+backupStamp+backupSuffix))}
		if err = to(ctx, c.path); !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if err != nil {
		return c, err
	}
	info, err := os.Stat(c.path)
	if err != nil {
		return c, err
	}
	c.size = info.Size()
	return c, nil
}

// backUpTo answers the operator API: the folder is the caller's choice, and
// what is wrong with it the caller's to mend.
func backUpTo(to func(ctx context.Context, path string) error) func(ctx context.Context, folder string) (string, int64, error) {
	return func(ctx context.Context, folder string) (string, int64, error) {
		if !filepath.IsAbs(folder) {
			return "", 0, badFolder(folder, "is not an absolute path; the node has a working directory of its own")
		}
		c, err := backUp(ctx, to, filepath.Clean(folder))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = badFolder(folder, "does not exist on the machine of the node; make it first")
		case errors.Is(err, fs.ErrPermission):
			err = badFolder(folder, "cannot be written to by the user that the node runs as")
		case errors.Is(err, fs.ErrInvalid):
			err = badFolder(folder, "is no folder")
		}
		return c.path, c.size, err
	}
}

func badFolder(folder, problem string) error {
	return fmt.Errorf("%w: %w", holdfast.ErrInvalid, &holdfast.FieldError{Field: "folder", Value: folder, Problem: problem})
}
