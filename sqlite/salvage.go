package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// metaSalvaged names the file whose salvage into this one has ended.
const metaSalvaged = "salvaged"

// metaSalvaging names the file whose salvage has begun, and has the counts so far: rows that exist
// already are not counted again.
const metaSalvaging = "salvaging"

// salvage copies the sound content of a damaged file into the new one, through the writer.
// Meanwhile the dispatcher delivers what has been copied. Salvage may be interrupted at any point
// and begin again: a row that exists already stays as it is. Nothing is accepted meanwhile, so that
// an id that is not copied yet is never taken for a new one.
type salvage struct {
	db    *DB
	file  string // the damaged file
	done  atomic.Bool
	ended chan error // holds one result

	mu     sync.Mutex
	report *Damage

	// The following fields belong to the goroutine that salvages.
	old     *sqlitefile.File
	roots   map[string]uint32
	tables  map[string]bool // tables with row ids
	lanes   map[int64][]string
	orders  map[string]oldLane
	routes  map[int64][]oldRoute
	sources map[int64][]string
	misfits int                      // rows that cannot be rows of their table
	lost    int64                    // rows of described tables that are unusable
	mended  int64                    // rows of described tables that were kept without some values
	missing map[int64]sqlitefile.Row // message rows without a matching body
	stray   map[int64]sqlitefile.Row // bodies that the tree does not lead to
	kept    map[int64]sqlitefile.Row // bodies of the inbox, read if one was not found by its id
	bundle  *rows.Bundle             // the last one that was looked up
	marked  bool                     // every page that a tree leads to has been noted
	byID    map[holdfast.ID]int64    // missing, by id
	states  map[int64]oldState       // of live messages, by the indexes; nil: not read yet
	listed  bool                     // those indexes were read completely
	batch   batchOf

	strayBundles map[int64]sqlitefile.Row // bundles that the tree does not lead to
}

// oldLane and oldRoute are lanes and routes as a damaged file has them. Several may claim the same
// number, because both the table and its index are read. The hash of a message tells which is
// right.
type oldLane struct {
	order int64
	row   *rows.Lane
}

type oldRoute struct {
	lane                   int64
	source, kind, endpoint string
}

func newSalvage(db *DB, report *Damage) *salvage {
	return &salvage{
		db: db, file: report.File, report: report, ended: make(chan error, 1),
		tables: map[string]bool{}, lanes: map[int64][]string{}, orders: map[string]oldLane{}, routes: map[int64][]oldRoute{}, sources: map[int64][]string{},
		missing: map[int64]sqlitefile.Row{}, stray: map[int64]sqlitefile.Row{}, strayBundles: map[int64]sqlitefile.Row{},
	}
}

// ErrRecovering means that a damaged file is being salvaged. Nothing is accepted until that has
// ended.
var ErrRecovering = fmt.Errorf("a damaged file is being salvaged: %w", holdfast.ErrUnavailable)

// ready returns nil if the store can tell new ids from known ones, else ErrRecovering.
func (db *DB) ready() error {
	if s := db.salvaging; s != nil && !s.done.Load() {
		return ErrRecovering
	}
	return nil
}

// Recovering reports whether a damaged file is being salvaged, so that nothing is accepted:
// ErrRecovering.
func (db *DB) Recovering() bool { return db.ready() != nil }

// start salvages. It returns when salvage has ended, or when it has taken so long that it goes on
// in the background.
func (s *salvage) start(ctx context.Context) error {
	s.db.guards.Go(func() {
		err := s.run(s.db.life)
		if err != nil && s.db.life.Err() == nil {
			s.db.writer.stop(fmt.Errorf("salvage %s: %w; the next start goes on with it", s.file, err))
		}
		s.ended <- err
	})
	wait := time.NewTimer(s.db.opts.SalvageWait)
	defer wait.Stop()
	select {
	case err := <-s.ended:
		return err
	case <-ctx.Done():
		s.db.cancel()
		return errors.Join(ctx.Err(), <-s.ended)
	case <-wait.C:
		s.db.log.WarnContext(ctx, "salvage goes on in the background: nothing is accepted until it has ended", slog.String("file", s.file))
		return nil
	}
}

func (s *salvage) run(ctx context.Context) (err error) {
	name := filepath.Base(s.file)
	var was string
	if err := s.db.writer.inspect(ctx, func(c *conn) (err error) {
		was, err = c.metaText(metaSalvaged)
		return err
	}); err != nil {
		return err
	}
	if was != name {
		if s.old, err = sqlitefile.Open(s.file); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.old.Close()) }()
		if err := s.all(ctx); err != nil {
			return err
		}
		if err := s.db.writer.do(ctx, workFunc(func(tx *writeTx) error {
			_, err := tx.exec(setMeta, metaSalvaged, name)
			return err
		})); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Done = true
	if err := s.report.write(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	s.db.log.ErrorContext(ctx, "salvage ended", slog.String("report", s.report.String()))
	s.done.Store(true)
	return nil
}

// all salvages messages that wait, and ids that must not be accepted twice, before what is only
// history.
func (s *salvage) all(ctx context.Context) error {
	if err := s.soFar(ctx); err != nil {
		return err
	}
	if err := s.findRoots(ctx); err != nil {
		return err
	}
	s.findNames()
	for _, step := range []func(ctx context.Context) error{
		s.settings,
		func(ctx context.Context) error { return s.plain(ctx, true) },
		s.book,
		func(ctx context.Context) error { return s.messages(ctx, false) },
		func(ctx context.Context) error { return s.messages(ctx, true) },
		s.strayMessages, s.byIndex, s.broken, s.notifications, s.publishedEvents,
		func(ctx context.Context) error { return s.plain(ctx, false) },
		s.inbox, s.inboxByIndex, s.events,
	} {
		if err := step(ctx); err != nil {
			return err
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	if err := s.old.Fault(); err != nil {
		s.db.log.ErrorContext(ctx, "salvage: parts of the damaged file cannot be read from the disk", slog.Any("error", err))
	}
	pages, rows := s.old.Damage()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Lost, s.report.Mended = s.report.Lost+s.lost, s.mended
	s.report.More = pages > 0 || rows > 0 || s.old.Pages() == 0
	return nil
}

// soFar sets the report to the counts of an interrupted salvage.
func (s *salvage) soFar(ctx context.Context) error {
	s.batch.salvage = s
	var text string
	if err := s.db.writer.inspect(ctx, func(c *conn) (err error) {
		text, err = c.metaText(metaSalvaging)
		return err
	}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Salvaged, s.report.Lost, s.report.More = Salvaged{}, 0, false
	if counted, ok := strings.CutPrefix(text, filepath.Base(s.file)+" "); ok {
		if err := json.Unmarshal([]byte(counted), &s.report.Salvaged); err != nil {
			s.report.Salvaged = Salvaged{} // only counts are lost
			s.db.log.ErrorContext(ctx, "salvage: the counts of the interrupted salvage are not readable", slog.Any("error", err))
		}
	}
	return nil
}

// findRoots finds the tables in the old file. A table that the old file does not name is where the
// new file has it: the same statements made both.
func (s *salvage) findRoots(ctx context.Context) error {
	return s.db.writer.inspect(ctx, func(c *conn) (err error) {
		if s.roots, err = rootsOf(s.old, c); err != nil {
			return err
		}
		return c.rows(queries[rowIDTables], func(v []driver.Value) error {
			s.tables[asText(v[0])] = true
			return nil
		})
	})
}

func rootsOf(old *sqlitefile.File, c *conn) (map[string]uint32, error) {
	roots := old.Roots()
	return roots, c.rows(queries[rootPages], func(v []driver.Value) error {
		if name := asText(v[0]); roots[name] == 0 {
			roots[name] = uint32(asInt(v[1]))
		}
		return nil
	})
}

// damagedSoFar reports whether a walk has met an unreadable page.
func (s *salvage) damagedSoFar() bool {
	pages, _ := s.old.Damage()
	return pages > 0
}

// orphans calls yield for the rows on pages that no tree leads to.
func (s *salvage) orphans(yield func(table bool, r sqlitefile.Row)) {
	for name, root := range s.roots {
		switch {
		case s.marked:
		case s.tables[name]:
			s.old.Table(root, nil)
		default:
			s.old.Index(root, nil)
		}
	}
	s.marked = true
	if s.damagedSoFar() {
		s.old.Orphans(yield)
	}
}

// batchOf collects works until they are worth a commit.
type batchOf struct {
	salvage *salvage
	works   []func(tx *writeTx) error
	bytes   int
	counted Damage // the report, including these works
}

func (b *batchOf) size() (int, int) { return len(b.works), b.bytes }

func (b *batchOf) apply(tx *writeTx) error {
	s := b.salvage
	s.mu.Lock()
	b.counted = *s.report
	b.counted.Salvaged.Rows = maps.Clone(b.counted.Salvaged.Rows)
	s.mu.Unlock()
	for _, w := range b.works {
		if err := w(tx); err != nil {
			return err
		}
	}
	text, err := json.Marshal(b.counted.Salvaged)
	if err != nil {
		return err
	}
	if _, err := tx.exec(setMeta, metaSalvaging, filepath.Base(b.counted.File)+" "+string(text)); err != nil {
		return err
	}
	tx.after = append(tx.after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		*s.report = b.counted
	})
	return nil
}

// add adds work to the next commit.
func (s *salvage) add(ctx context.Context, bytes int, w func(tx *writeTx) error) error {
	s.batch.works, s.batch.bytes = append(s.batch.works, w), s.batch.bytes+bytes+256
	if len(s.batch.works) < groupItems && s.batch.bytes < groupBytes {
		return nil
	}
	return s.flush(ctx)
}

// flush commits. On a full disk it waits for room: what is not copied yet is not lost.
func (s *salvage) flush(ctx context.Context) error {
	for waits := false; len(s.batch.works) > 0; {
		err := s.db.writer.do(ctx, &s.batch)
		if errors.Is(err, holdfast.ErrDiskFull) {
			if !waits {
				s.db.log.ErrorContext(ctx, "salvage waits for room on the disk", slog.Any("error", err))
			}
			waits = true
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		s.batch = batchOf{salvage: s, works: s.batch.works[:0]}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// count changes the report, with the commit of the work that calls it.
func (s *salvage) count(change func(d *Damage)) { change(&s.batch.counted) }
