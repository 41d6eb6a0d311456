package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/holdfast-mq/holdfast/internal/belief"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// Keys of hf_meta that a move writes.
const (
	metaMoved = "moved" // in a source: where its content has gone
	metaCopy  = "copy"  // in a target: how far the copy is
)

// The queries of a move, which read whole tables on purpose.
const (
	exportMeta   = `SELECT coalesce((SELECT CAST(value AS TEXT) FROM hf_meta WHERE key = ?1), '')`
	exportTotals = `SELECT (SELECT count(*) FROM hf_message), (SELECT count(*) FROM hf_entry AS e WHERE EXISTS (SELECT 1 FROM hf_message WHERE seq = e.message) AND e.kind < 8), (SELECT count(*) FROM hf_inbox), (SELECT count(*) FROM hf_notification),
			max(coalesce((SELECT max(seq) FROM hf_message), 0), coalesce((SELECT max(seq) FROM hf_notification), 0), coalesce((SELECT max(seq) FROM hf_bundle), 0)), coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'hf_entry'), 0), coalesce((SELECT max(seq) FROM hf_inbox), 0)`
	exportMessages = `SELECT m.seq, m.id, r.source, l.destination, r.kind, r.endpoint, m.state, m.due, m.created, m.expires, m.failures, m.tries, m.cycle, m.first_try, m.settled,
			coalesce(m.reason, ''), coalesce(m.okey, ''), m.blocked, m.force, m.given_up = 1 AND m.state IN (0, 1), coalesce((SELECT p.seq FROM hf_bundle AS p WHERE p.seq = b.bundle), 0), ` + payloadOf + `, coalesce(b.headers, ''), coalesce(b.corr, ''), coalesce(b.retry, ''), coalesce(b.ttl, 0), b.start, b.hash
		FROM hf_message AS m LEFT JOIN hf_route AS r ON r.route = m.route LEFT JOIN hf_lane AS l ON l.lane = r.lane LEFT JOIN hf_body AS b ON b.seq = m.seq
		WHERE m.seq > ?1 ORDER BY m.seq LIMIT ?2`
	exportEvents = `SELECT e.seq, e.message, e.kind, e.state, e.at, e.cycle, e.attempt, e.outcome, e.charged, e.maybe, e.took,
			coalesce(e.reason, ''), coalesce(e.code, ''), coalesce(e.error, ''), coalesce(e.actor, '')
		FROM hf_entry AS e WHERE e.seq > ?1 AND e.kind < 8 AND EXISTS (SELECT 1 FROM hf_message WHERE seq = e.message) ORDER BY e.seq LIMIT ?2`
	exportInbox = `SELECT x.seq, s.name, x.id, x.endpoint, x.hash, x.kept, x.received, x.processed, x.expires, x.response, x.answer,
			coalesce(b.kind, ''), b.payload, coalesce(b.headers, ''), coalesce(b.corr, ''), b.hash
		FROM hf_inbox AS x LEFT JOIN hf_source AS s ON s.source = x.source LEFT JOIN hf_inbox_body AS b ON b.seq = x.seq AND x.kept = 1
		WHERE x.seq > ?1 ORDER BY x.seq LIMIT ?2`
	exportNotifications = `SELECT n.seq, n.copy, n.id, n.message, n.channel, n.type, n.list, n.subject, n.bundle, n.site, n.instance, n.script, n.execution,
			n.parent, n.enqueued, n.created, n.delivered, n.state, n.settled, n.tried, coalesce(n.failures, 0), coalesce(n.tries, 0), coalesce(n.cycle, 0), coalesce(n.reason, ''), coalesce(n.last_error, '')
		FROM hf_notification AS n WHERE n.seq > ?1 ORDER BY n.seq LIMIT ?2`
	exportSettings = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = 'notify'), 0), coalesce((SELECT value FROM hf_meta WHERE key = 'book'), 0)`
	exportSchema   = `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'hf_meta'`
	exportClock    = `SELECT coalesce((SELECT value FROM hf_meta WHERE key = 'clock'), 0), coalesce((SELECT value FROM hf_meta WHERE key = 'wall'), 0),
		coalesce((SELECT value FROM hf_meta WHERE key = 'wall_high'), 0), coalesce((SELECT value FROM hf_meta WHERE key = 'leaps'), '')`
	markMeta   = `INSERT INTO hf_meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	unmarkMeta = `DELETE FROM hf_meta WHERE key = ?1`
)

// Source is the file of a node that does not run, to be moved elsewhere. It holds the owner's lock.
// Only Mark and Unmark change the file.
type Source struct {
	contents

	path  string
	owner *ownership
}

var _ storecopy.Source = (*Source)(nil)

// OpenSource opens the file at path for a move. ErrOwned means that a node owns it.
func OpenSource(ctx context.Context, path string) (*Source, error) {
	s, err := openSource(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, translate(err))
	}
	return s, nil
}

func openSource(ctx context.Context, path string) (*Source, error) {
	path, err := realPath(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		if ready, _ := restoredFile(path); ready == "" {
			return nil, err
		}
	}
	owner, err := own(path + ".lock")
	if err != nil {
		return nil, err
	}
	s := &Source{path: path, owner: owner}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Source) open(ctx context.Context) error {
	if _, err := resumeRestore(s.path); err != nil {
		return err
	}
	if err := sameOwner(s.path, s.path+".lock"); err != nil {
		return err
	}
	// The copy would omit what follows damage in the log, since SQLite takes the damage for the
	// log's end.
	if err := checkWhole(s.path, s.owner); err != nil {
		return err
	}
	o := Options{}.withDefaults()
	s.handle = sql.OpenDB(connector{o.connect, dsn(s.path, "query_only(1)")})
	s.handle.SetMaxOpenConns(1)
	if err := s.vet(ctx); err != nil {
		return err
	}
	if err := s.checkPlace(ctx); err != nil {
		return err
	}
	var n noted
	if err := s.handle.QueryRowContext(ctx, exportClock).Scan(&n.at, &n.wall, &n.high, &n.leaps); err != nil {
		return err
	}
	last := int64(0)
	if err := s.handle.QueryRowContext(ctx, queries[lastInstant]).Scan(&last); err != nil {
		return err
	}
	c := newClock(n.upTo(last), &o)
	s.now, s.guard = c.now, c.guard
	return nil
}

// vet refuses a file without our tables, or with another schema than this release's.
func (r *contents) vet(ctx context.Context) error {
	var tables, have int
	if err := r.handle.QueryRowContext(ctx, exportSchema).Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		return fmt.Errorf("%w: it has no tables of Holdfast", ErrForeign)
	}
	if err := r.handle.QueryRowContext(ctx, exportMeta, metaSchema).Scan(&have); err != nil {
		return err
	}
	if want := len(migrations()); have != want {
		return fmt.Errorf("%w: its schema is number %d, that of this release %d; bring it up to date by holdfast migrate up, or use the release that wrote it", storecopy.ErrSchema, have, want)
	}
	return nil
}

// checkPlace refuses a copy whose original may be in use, as a node would.
func (s *Source) checkPlace(ctx context.Context) error {
	note := map[string]string{}
	for _, key := range []string{metaPlace, metaIncarnation, metaClean} {
		var err error
		if note[key], err = s.meta(ctx, key); err != nil {
			return err
		}
	}
	number, born, ok := placeOf(s.path)
	if !ok || note[metaClean] == "1" {
		return nil
	}
	if moved(note[metaPlace], placeNote(fmt.Sprint(number), fmt.Sprint(born), note[metaIncarnation]), note[metaIncarnation]) {
		return errCopy
	}
	return nil
}

// Close releases the file.
func (s *Source) Close() error {
	var err error
	if s.handle != nil {
		err = s.handle.Close()
	}
	return errors.Join(err, s.owner.release())
}

// Mark implements storecopy.Source.
func (s *Source) Mark(ctx context.Context, m storecopy.Moved) error {
	text, err := storecopy.Text(m)
	if err != nil {
		return err
	}
	return s.change(ctx, markMeta, metaMoved, text)
}

// change writes one row durably, on its own connection.
func (s *Source) change(ctx context.Context, text string, args ...any) (err error) {
	o := Options{}.withDefaults()
	db := sql.OpenDB(connector{o.connect, dsn(s.path, "synchronous(2)") + "&_txlock=immediate"})
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(translate(err), db.Close()) }()
	_, err = db.ExecContext(ctx, text, args...)
	return err
}

// Unmark implements storecopy.Source.
func (s *Source) Unmark(ctx context.Context) error { return s.change(ctx, unmarkMeta, metaMoved) }

// checkMoved refuses a file whose content was moved away, and a file whose copy is unfinished.
func (db *DB) checkMoved(c *conn) error {
	if have, err := schemaVersion(c); err != nil || have == 0 || db.opts.copying {
		return err
	}
	moved, err := c.metaText(metaMoved)
	if err != nil {
		return err
	}
	copied, err := c.metaText(metaCopy)
	if err != nil {
		return err
	}
	return storecopy.Refusal(moved, copied)
}

// contents reads everything in a file, in pages.
type contents struct {
	handle *sql.DB
	now    func() int64
	guard  *belief.Guard
}

// Now implements storecopy.Exporter.
func (r *contents) Now(context.Context) (int64, error) { return r.now(), nil }

func (r *contents) meta(ctx context.Context, key string) (text string, err error) {
	err = r.handle.QueryRowContext(ctx, exportMeta, key).Scan(&text)
	return text, translate(err)
}

// Origin implements storecopy.Exporter. Each owner of the file has another epoch.
func (r *contents) Origin(ctx context.Context) (o storecopy.Origin, err error) {
	var texts [4]string
	for i, key := range []string{metaIncarnation, metaEpoch, metaMoved, metaCopy} {
		if texts[i], err = r.meta(ctx, key); err != nil {
			return o, err
		}
	}
	return storecopy.OriginOf(texts[0], texts[1], texts[2], texts[3])
}

// Totals implements storecopy.Exporter.
func (r *contents) Totals(ctx context.Context) (t storecopy.Totals, err error) {
	err = r.handle.QueryRowContext(ctx, exportTotals).Scan(&t.Messages, &t.Events, &t.Inbox, &t.Notifications, &t.LastMessage, &t.LastEvent, &t.LastInbox)
	return t, translate(err)
}

// Read implements storecopy.Exporter.
func (r *contents) Read(ctx context.Context, w rows.Range) (list []rows.Row, err error) {
	x := exporting{ctx: ctx, base: w.Base, db: r.handle}
	switch w.Table {
	case rows.Of((*rows.Settings)(nil)):
		list, err = x.settings(w, r.guard)
	case rows.Of((*rows.Message)(nil)):
		list, err = x.page(w, exportMessages, x.message)
	case rows.Of((*rows.Entry)(nil)):
		list, err = x.page(w, exportEvents, x.event)
	case rows.Of((*rows.Incoming)(nil)):
		list, err = x.page(w, exportInbox, x.incoming)
	case rows.Of((*rows.Notification)(nil)):
		list, err = x.page(w, exportNotifications, x.notification)
	default:
		err = eachRowOf(ctx, r.handle, w, func(r rows.Row) error {
			list = append(list, r)
			return nil
		})
	}
	return list, translate(err)
}
