package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/move"
)

// Keys of hf_meta that a move writes.
const (
	metaMoved = "moved" // of a source: where to
	metaCopy  = "copy"  // of a target: how far
)

// Source is a database that no node uses, to be moved elsewhere. No node can
// start while it is open, and nothing in it is changed but by Mark.
type Source struct{ contents }

var _ move.Exporter = (*Source)(nil)

// OpenSource opens a database for a move. move.ErrInUse says which nodes use it.
func OpenSource(ctx context.Context, dsn string) (*Source, error) {
	s := &Source{}
	if err := s.open(ctx, dsn, func(t tables) error {
		if t.version == 0 {
			return fmt.Errorf("it has no tables of ours: %w", holdfast.ErrNotFound)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// Unmark removes the mark that a database was moved, and returns it. One that
// has none is holdfast.ErrNotFound.
func Unmark(ctx context.Context, dsn string) (move.Moved, error) {
	s, err := OpenSource(ctx, dsn)
	if err != nil {
		return move.Moved{}, err
	}
	o, err := s.Origin(ctx)
	if err == nil && o.Moved == nil {
		err = fmt.Errorf("the database was not moved: %w", holdfast.ErrNotFound)
	}
	if err == nil {
		_, err = s.conn.Exec(ctx, dropMeta, metaMoved)
	}
	if err = errors.Join(explain(err), s.Close()); err != nil {
		return move.Moved{}, err
	}
	return *o.Moved, nil
}

// checkMoved refuses a database from which everything was moved, and one into
// which not everything is copied yet. It comes after the node's name is taken,
// for which it waits until a copy has ended.
func (tx *ownTx) checkMoved() error {
	var moved, copied string
	if err := tx.query(exportMarks, []any{metaMoved, metaCopy}, func(rows pgx.Rows) error { return rows.Scan(&moved, &copied) }); err != nil {
		return err
	}
	return move.Refusal(moved, copied)
}

// contents is everything of a database, read in pages.
type contents struct {
	conn  *pgx.Conn
	guard *pgx.Conn // its transaction keeps nodes from starting
}

// open connects, looks at the tables, and keeps nodes out.
func (c *contents) open(ctx context.Context, dsn string, look func(t tables) error) error {
	if err := c.openWith(ctx, dsn, look); err != nil {
		return errors.Join(explain(err), c.Close())
	}
	return nil
}

func (c *contents) openWith(ctx context.Context, dsn string, look func(t tables) error) (err error) {
	if c.conn, err = moveConn(ctx, dsn); err != nil {
		return err
	}
	if err := vetServer(ctx, c.conn, true); err != nil {
		return err
	}
	t, err := findTables(ctx, c.conn)
	if err != nil {
		return err
	}
	if err := look(t); err != nil {
		return err
	}
	if want := len(migrations()); t.version != 0 && t.version != want {
		return fmt.Errorf("%w: the schema is number %d, that of this release %d; bring it up to date by holdfast migrate up, or use the release that wrote it", move.ErrSchema, t.version, want)
	}
	if t.version == 0 {
		if _, _, err := migrateOn(ctx, c.conn); err != nil {
			return err
		}
	}
	if c.guard, err = moveConn(ctx, dsn); err != nil {
		return err
	}
	if err := vetPooler(ctx, c.conn, c.guard); err != nil {
		return err
	}
	return c.lock(ctx)
}

// moveConn reads pages by their numbers, whatever the statistics say, and may
// take its time.
func moveConn(ctx context.Context, dsn string) (*pgx.Conn, error) {
	o, err := Options{Node: "copy"}.withDefaults()
	if err != nil {
		return nil, err
	}
	c, err := poolConfig(dsn, &o)
	if err != nil {
		return nil, err
	}
	maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{
		"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"jit": "off", "lock_timeout": "3s", "statement_timeout": "0",
	})
	prepare(c)
	return pgx.ConnectConfig(ctx, c.ConnConfig)
}

// lock keeps nodes from entering until the guard's transaction ends, if none
// is in.
func (c *contents) lock(ctx context.Context) error {
	if _, err := c.guard.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if _, err := c.guard.Exec(ctx, lockNodes); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
			return fmt.Errorf("%w: another copy goes on, or a node starts", move.ErrInUse)
		}
		return err
	}
	rows, err := c.guard.Query(ctx, liveNodes)
	if err != nil {
		return err
	}
	var live []string
	if live, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		var name, about string
		err := row.Scan(&name, &about)
		return fmt.Sprintf("%q (%s)", name, about), err
	}); err != nil {
		return err
	}
	if len(live) > 0 {
		return fmt.Errorf("%w: %s; stop what runs, and wait a lease for what was killed", move.ErrInUse, strings.Join(live, ", "))
	}
	return nil
}

// guarded fails when nodes are kept out no longer.
func (c *contents) guarded(ctx context.Context) error {
	if _, err := c.guard.Exec(ctx, "SELECT"); err != nil {
		return fmt.Errorf("keep nodes out: %w", err)
	}
	return nil
}

// Close lets nodes in again.
func (c *contents) Close() error {
	for _, conn := range []*pgx.Conn{c.conn, c.guard} {
		if conn != nil {
			_ = conn.Close(context.Background()) // what was begun is rolled back
		}
	}
	return nil
}

// Mark implements move.Exporter.
func (c *contents) Mark(ctx context.Context, m move.Moved) error {
	text, err := move.Text(m)
	if err != nil {
		return err
	}
	if err := c.guarded(ctx); err != nil {
		return explain(err)
	}
	_, err = c.conn.Exec(ctx, writeMeta, metaMoved, text)
	return explain(err)
}

// Now implements move.Exporter.
func (c *contents) Now(ctx context.Context) (now int64, err error) {
	return now, explain(c.conn.QueryRow(ctx, exportNow).Scan(&now))
}

func (c *contents) meta(ctx context.Context, key string) (text string, err error) {
	err = c.conn.QueryRow(ctx, exportMeta, key).Scan(&text)
	return text, explain(err)
}

// Origin implements move.Exporter. Each start of a node takes a number.
func (c *contents) Origin(ctx context.Context) (o move.Origin, err error) {
	if o.Store, err = c.meta(ctx, metaIncarnation); err != nil {
		return o, err
	}
	if err := c.conn.QueryRow(ctx, exportUse).Scan(&o.Use); err != nil {
		return o, explain(err)
	}
	moved, err := c.meta(ctx, metaMoved)
	if err == nil {
		o.Moved, err = move.ParseMoved(moved)
	}
	return o, err
}

// Totals implements move.Exporter.
func (c *contents) Totals(ctx context.Context) (t move.Totals, err error) {
	err = c.conn.QueryRow(ctx, exportTotals).Scan(&t.Messages, &t.Events, &t.Inbox, &t.LastMessage, &t.LastEvent, &t.LastInbox)
	return t, explain(err)
}

// Read implements move.Exporter.
func (c *contents) Read(ctx context.Context, base int64, part move.Part, after int64) (p move.Page, err error) {
	x := exporting{ctx, base, c.conn}
	switch part {
	case move.Settings:
		p.Settings, err = x.settings()
		p.End = true
	case move.Messages:
		err = x.page(&p, exportMessages, after, func(rows pgx.Rows) (int64, int, error) {
			m, err := x.message(rows)
			p.Messages = append(p.Messages, m)
			return m.Seq, len(m.Payload), err
		})
	case move.Events:
		err = x.page(&p, exportEvents, after, func(rows pgx.Rows) (int64, int, error) {
			e, err := x.event(rows)
			p.Events = append(p.Events, e)
			return e.Seq, len(e.Error), err
		})
	case move.Inbox:
		err = x.page(&p, exportInbox, after, func(rows pgx.Rows) (int64, int, error) {
			in, err := x.incoming(rows)
			p.Inbox = append(p.Inbox, in)
			return in.Seq, len(in.Payload) + len(in.Response), err
		})
	default:
		err = fmt.Errorf("part %q: %w", part, fs.ErrInvalid)
	}
	return p, explain(err)
}

// exporting is one call of Read.
type exporting struct {
	ctx  context.Context //nolint:containedctx // of this one call
	base int64
	conn *pgx.Conn
}

// far is the distance of an instant, of which NULL is none.
func (x *exporting) far(at *int64) int64 {
	if at == nil {
		return move.None
	}
	return move.Distance(*at, x.base, never)
}

func (x *exporting) page(p *move.Page, query string, after int64, one func(rows pgx.Rows) (int64, int, error)) error {
	n, bytes := 0, 0
	p.Last = after
	err := x.each(query, []any{after, move.PageRows, move.PageBytes}, func(rows pgx.Rows) error {
		seq, size, err := one(rows)
		n, bytes, p.Last = n+1, bytes+size, seq
		return err
	})
	p.End = n < move.PageRows && bytes < move.PageBytes
	return err
}

func (x *exporting) each(query string, args []any, one func(rows pgx.Rows) error) error {
	rows, err := x.conn.Query(x.ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := one(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (x *exporting) settings() (*move.Config, error) {
	c := &move.Config{}
	if err := x.each(exportLanes, nil, func(rows pgx.Rows) error {
		var l move.Lane
		var since *int64
		err := rows.Scan(&l.Destination, &l.Strict, &l.Fault, &since)
		l.FaultSince = x.far(since)
		c.Lanes = append(c.Lanes, l)
		return err
	}); err != nil {
		return nil, err
	}
	if err := x.each(exportAccess, nil, func(rows pgx.Rows) error {
		var t move.Token
		var created, used *int64
		err := rows.Scan(&t.Name, &t.Role, &t.Hash, &created, &used)
		t.Created, t.Used = x.far(created), x.far(used)
		c.Tokens = append(c.Tokens, t)
		return err
	}); err != nil {
		return nil, err
	}
	return c, x.each(exportNotices, nil, func(rows pgx.Rows) error { return rows.Scan(&c.Notices) })
}

func (x *exporting) message(rows pgx.Rows) (m move.Message, err error) {
	var id []byte
	var source, destination, kind, endpoint *string
	var queued, owned bool
	var created, due, start, expires int64
	var state *int16
	var settled, first *int64
	if err := rows.Scan(&m.Seq, &id, &source, &destination, &kind, &endpoint, &created, &m.Payload, &m.Headers, &m.CorrelationID, &m.Retry,
		&m.TTL, &m.OrderingKey, &queued, &owned, &due, &start, &m.Waits, &state, &settled,
		&expires, &m.Failures, &m.Tries, &m.Cycle, &first, &m.Force, &m.Reason); err != nil {
		return m, err
	}
	m.ID = idFrom(id)
	switch {
	case source == nil || destination == nil:
		return m, fmt.Errorf("%w: the names of %s (seq %d) are lost", move.ErrContent, m.ID, m.Seq)
	case queued == (state != nil):
		return m, fmt.Errorf("%w: %s (seq %d) stands nowhere, or twice", move.ErrContent, m.ID, m.Seq)
	}
	m.Source, m.Destination, m.Kind, m.Endpoint = *source, *destination, *kind, *endpoint
	m.Created, m.Expires, m.FirstTry, m.Settled = created-x.base, move.Distance(expires, x.base, never), x.far(first), x.far(settled)
	m.Due, m.Start = move.None, move.None
	if state != nil {
		m.State = holdfast.State(*state)
		return m, nil
	}
	if owned { // of a node that died with it in hand
		m.Tries++
		if m.FirstTry == move.None {
			m.FirstTry = 0
		}
	}
	if !m.Waits {
		m.Due = move.Distance(due, x.base, never)
	} else if m.Cycle == 1 && start > created {
		m.Start = start - x.base
	}
	return m, nil
}

func (x *exporting) event(rows pgx.Rows) (e move.Event, err error) {
	err = rows.Scan(&e.Seq, &e.Message, &e.Kind, &e.State, &e.At, &e.Cycle, &e.Attempt, &e.Outcome, &e.Charged, &e.Maybe, &e.Took,
		&e.Reason, &e.Code, &e.Error, &e.Actor)
	e.At -= x.base
	return e, err
}

func (x *exporting) incoming(rows pgx.Rows) (in move.Incoming, err error) {
	var id []byte
	var source, kind *string
	var received, expires int64
	var processed *int64
	if err := rows.Scan(&in.Seq, &source, &id, &in.Endpoint, &in.Hash, &in.Kept, &received, &processed, &expires, &in.Response,
		&kind, &in.Payload, &in.Headers, &in.CorrelationID); err != nil {
		return in, err
	}
	in.ID = idFrom(id)
	switch {
	case source == nil:
		return in, fmt.Errorf("%w: the sender of incoming message %s (seq %d) is lost", move.ErrContent, in.ID, in.Seq)
	case in.Kept && kind == nil:
		return in, fmt.Errorf("%w: the content of incoming message %s (seq %d) is lost", move.ErrContent, in.ID, in.Seq)
	}
	in.Source, in.Received, in.Processed, in.Expires = *source, received-x.base, x.far(processed), move.Distance(expires, x.base, never)
	if in.Kept {
		in.Kind = *kind
	}
	return in, nil
}
