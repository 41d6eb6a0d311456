package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/storecopy"
)

// Keys of hf_meta that a move writes.
const (
	metaMoved = "moved" // in a source: the new place
	metaCopy  = "copy"  // in a target: the progress
)

// Source is a database that is to be moved elsewhere. No node uses it, and none can start while it
// is open. Only Mark changes anything in it.
type Source struct{ contents }

var _ storecopy.Source = (*Source)(nil)

// OpenSource opens a database for a move. An error that wraps storecopy.ErrInUse names the nodes that
// use it.
func OpenSource(ctx context.Context, dsn string) (*Source, error) {
	s := &Source{}
	if err := s.open(ctx, dsn, func(t tables) error {
		if t.version == 0 {
			return fmt.Errorf("it does not have Holdfast's tables: %w", holdfast.ErrNotFound)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return s, nil
}

// checkMoved refuses a database whose content was moved away, and one whose copy is not complete.
// It comes after taking the node's name, which waits until a copy has ended.
func (tx *ownTx) checkMoved() error {
	var moved, copied string
	if err := tx.query(exportMarks, []any{metaMoved, metaCopy}, func(found pgx.Rows) error { return found.Scan(&moved, &copied) }); err != nil {
		return err
	}
	return storecopy.Refusal(moved, copied)
}

// contents is the whole content of a database, read in pages.
type contents struct {
	conn  *pgx.Conn
	guard *pgx.Conn // its transaction keeps nodes from starting
}

// open connects, checks the tables, and keeps nodes out.
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
	if t.version != 0 {
		if err := t.known(); err != nil {
			return err
		}
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

// known refuses tables of another release.
func (t tables) known() error {
	if want := len(migrations()); t.version != want {
		return fmt.Errorf("%w: the schema is number %d, that of this release %d; bring it up to date by holdfast migrate up, or use the release that wrote it", storecopy.ErrSchema, t.version, want)
	}
	return nil
}

// moveConn connects for a move. Its planner settings make it read pages by their numbers, whatever
// the statistics say. It has no statement timeout.
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
	prepare(c, nil)
	return pgx.ConnectConfig(ctx, c.ConnConfig)
}

// lock keeps nodes from entering until the guard's transaction ends. It fails if a node is running.
func (c *contents) lock(ctx context.Context) error {
	if _, err := c.guard.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if _, err := c.guard.Exec(ctx, lockNodes); err != nil {
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "55P03" {
			return fmt.Errorf("%w: another copy goes on, or a node starts", storecopy.ErrInUse)
		}
		return err
	}
	found, err := c.guard.Query(ctx, liveNodes)
	if err != nil {
		return err
	}
	var live []string
	if live, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (string, error) {
		var name, about string
		err := row.Scan(&name, &about)
		return fmt.Sprintf("%q (%s)", name, about), err
	}); err != nil {
		return err
	}
	if len(live) > 0 {
		return fmt.Errorf("%w: %s; stop the running nodes; after a node was killed, wait for its lease to end", storecopy.ErrInUse, strings.Join(live, ", "))
	}
	return nil
}

// guarded fails if nodes are no longer kept out.
func (c *contents) guarded(ctx context.Context) error {
	if _, err := c.guard.Exec(ctx, "SELECT"); err != nil {
		return fmt.Errorf("keep nodes out: %w", err)
	}
	return nil
}

// Close allows nodes to start again.
func (c *contents) Close() error {
	for _, conn := range []*pgx.Conn{c.conn, c.guard} {
		if conn != nil {
			_ = conn.Close(context.Background()) // an open transaction is rolled back
		}
	}
	return nil
}

// Mark implements storecopy.Source.
func (c *contents) Mark(ctx context.Context, m storecopy.Moved) error {
	text, err := storecopy.Text(m)
	if err != nil {
		return err
	}
	// The mark is written in the transaction that keeps nodes out. Once that ends, the mark keeps
	// them out.
	for _, s := range []statement{{readTables, nil, nil}, {writeMeta, []any{metaMoved, text}, nil}, {leaveNobody, nil, nil}, {"COMMIT", nil, nil}} {
		if _, err := c.guard.Exec(ctx, s.sql, s.args...); err != nil {
			return explain(err)
		}
	}
	return nil
}

// Unmark implements storecopy.Source.
func (c *contents) Unmark(ctx context.Context) error {
	if err := c.guarded(ctx); err != nil {
		return explain(err)
	}
	_, err := c.conn.Exec(ctx, dropMeta, metaMoved)
	return explain(err)
}

// Now implements storecopy.Exporter.
func (c *contents) Now(ctx context.Context) (now int64, err error) {
	return now, explain(c.conn.QueryRow(ctx, exportNow).Scan(&now))
}

func (c *contents) meta(ctx context.Context, key string) (text string, err error) {
	err = c.conn.QueryRow(ctx, exportMeta, key).Scan(&text)
	return text, explain(err)
}

// Origin implements storecopy.Exporter. Its use count changes with each start of a node, since each
// takes a number.
func (c *contents) Origin(ctx context.Context) (o storecopy.Origin, err error) {
	var use string
	if err := c.conn.QueryRow(ctx, exportUse).Scan(&use); err != nil {
		return o, explain(err)
	}
	var texts [3]string
	for i, key := range []string{metaIncarnation, metaMoved, metaCopy} {
		if texts[i], err = c.meta(ctx, key); err != nil {
			return o, err
		}
	}
	return storecopy.OriginOf(texts[0], use, texts[1], texts[2])
}

// Totals implements storecopy.Exporter.
func (c *contents) Totals(ctx context.Context) (t storecopy.Totals, err error) {
	err = c.conn.QueryRow(ctx, exportTotals).Scan(&t.Messages, &t.Events, &t.Inbox, &t.Notifications, &t.LastMessage, &t.LastEvent, &t.LastInbox)
	return t, explain(err)
}

// Read implements storecopy.Exporter.
func (c *contents) Read(ctx context.Context, w rows.Range) (list []rows.Row, err error) {
	x := exporting{ctx, w.Base, c.conn}
	switch w.Table {
	case rows.Of((*rows.Settings)(nil)):
		list, err = x.settings(w)
	case rows.Of((*rows.Message)(nil)):
		list, err = x.page(w, exportMessages, x.message)
	case rows.Of((*rows.Entry)(nil)):
		list, err = x.page(w, exportEvents, x.event)
	case rows.Of((*rows.Incoming)(nil)):
		list, err = x.page(w, exportInbox, x.incoming)
	case rows.Of((*rows.Notification)(nil)):
		list, err = x.page(w, exportNotifications, x.notification)
	default:
		list, err = x.plain(w)
	}
	return list, explain(err)
}
