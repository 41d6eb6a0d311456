package storecopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// Options of Copy.
type Options struct {
	From, To string       // the two stores, for people
	Watch    func(Status) // called after each page; may be nil
}

// Status is the progress of a copy, for people.
type Status struct {
	Phase string // what is copied, or "compare"
	Done  int64  // rows
	All   int64
}

// Report is the result of a copy.
type Report struct {
	Totals

	Resumed bool             `json:"resumed"` // an earlier run had begun it
	States  map[string]int64 `json:"states"`  // messages by state
	Digest  string           `json:"digest"`  // of everything; the same on both sides
}

// Copy moves everything from one store into an empty one, or continues a copy that was interrupted.
// If the copy had ended already, it returns its report again. At the end it compares both stores
// row by row, marks the source as moved, and releases the target for use.
func Copy(ctx context.Context, from Source, to Importer, o Options) (r Report, err error) {
	if o.Watch == nil {
		o.Watch = func(Status) {}
	}
	c := &copying{from: from, to: to, o: o}
	if err := c.begin(ctx); err != nil {
		return r, err
	}
	if c.progress.Done {
		r = *c.progress.Compared
		r.Resumed = true
		return r, nil
	}
	for _, t := range c.left() {
		if err := c.table(ctx, t); err != nil {
			return r, fmt.Errorf("copy %s: %w", t.Name, err)
		}
	}
	if r, err = c.compared(ctx); err != nil {
		return r, err
	}
	r.Resumed = c.resumed
	return r, c.end(ctx)
}

// compared returns the report of a comparison, of this run or of an earlier one that was
// interrupted after it. The steps after the comparison change the target.
func (c *copying) compared(ctx context.Context) (Report, error) {
	if r := c.progress.Compared; r != nil {
		if r.Messages != c.totals.Messages || r.Events != c.totals.Events || r.Inbox != c.totals.Inbox || r.Notifications != c.totals.Notifications {
			return *r, fmt.Errorf("%w: stop all programs that use it, empty %s and begin again", ErrChanged, c.o.To)
		}
		return *r, nil
	}
	r, err := c.compare(ctx)
	if err != nil {
		return r, err
	}
	c.progress.Compared = &r
	return r, c.to.Write(ctx, nil, c.progress)
}

type copying struct {
	from     Source
	to       Importer
	o        Options
	origin   Origin
	target   Origin
	totals   Totals
	progress Progress
	resumed  bool
}

// begin checks that nothing prevents the copy, and finds where to continue.
func (c *copying) begin(ctx context.Context) (err error) {
	if c.origin, err = c.from.Origin(ctx); err != nil {
		return err
	}
	if c.target, err = c.to.Origin(ctx); err != nil {
		return err
	}
	if c.origin.Store == c.target.Store {
		return fmt.Errorf("%w: %s", ErrSame, c.o.To)
	}
	if p := c.origin.Copy; p != nil && !p.Done {
		return fmt.Errorf("the source: %w", p.refusal())
	}
	if c.totals, err = c.from.Totals(ctx); err != nil {
		return err
	}
	switch {
	case c.target.Copy != nil:
		return c.resume(c.target.Copy)
	case c.origin.Moved != nil:
		return c.origin.Moved.refusal()
	case c.target.Moved != nil:
		return fmt.Errorf("the target: %w", c.target.Moved.refusal())
	}
	what, err := holds(ctx, c.to)
	if err != nil {
		return err
	}
	if what != "" {
		return fmt.Errorf("%w: %s holds %s; name a new folder or an empty database", ErrNotEmpty, c.o.To, what)
	}
	return c.start(ctx)
}

func (c *copying) start(ctx context.Context) error {
	base, err := c.from.Now(ctx)
	if err != nil {
		return err
	}
	here, err := c.to.Now(ctx)
	if err != nil {
		return err
	}
	c.progress = Progress{From: c.o.From, Store: c.origin.Store, Use: c.origin.Use, Base: base, HereNow: here, Table: rows.Tables()[0].Name}
	return c.to.Begin(ctx, c.progress, c.totals)
}

func (c *copying) resume(p *Progress) error {
	c.progress, c.resumed = *p, true
	switch {
	case p.Store != c.origin.Store:
		return fmt.Errorf("%w: it was copied from %s", ErrNotEmpty, p.From)
	case p.Done && p.Compared != nil && c.origin.Moved != nil && c.origin.Moved.Store == c.target.Store:
		return nil // ending twice is the same as ending once
	case p.Done:
		return fmt.Errorf("%w: this copy has ended; nothing is left to do", ErrNotEmpty)
	case p.Table == "":
		return fmt.Errorf("%w: another release has begun it: empty %s and begin again", ErrUnfinished, c.o.To)
	case p.Use != c.origin.Use:
		return fmt.Errorf("%w, so that what was copied is no longer true: empty %s and begin again", ErrChanged, c.o.To)
	case c.origin.Moved != nil && c.origin.Moved.Store != c.target.Store:
		return c.origin.Moved.refusal()
	}
	return nil
}

// left returns the tables that are not copied yet.
func (c *copying) left() []*rows.Table {
	all := rows.Tables()
	i := slices.IndexFunc(all, func(t *rows.Table) bool { return t.Name == c.progress.Table })
	if i < 0 {
		return nil // the comparison continues
	}
	return all[i:]
}

// comparing is the phase after all tables.
const comparing = "compare"

func (c *copying) table(ctx context.Context, t *rows.Table) error {
	phase, _ := words(t)
	for end := false; !end; {
		page, err := c.from.Read(ctx, rows.Range{Table: t, Base: c.progress.Base, After: c.progress.After, Limit: pageRows, Bytes: pageBytes})
		if err != nil {
			return err
		}
		next := c.progress
		if end = len(page) == 0; end {
			next.Table, next.After = after(t), ""
		} else {
			next.After = t.Place(page[len(page)-1])
			next.Copied.count(t, int64(len(page)))
		}
		tidy(page)
		if err := c.to.Write(ctx, page, next); err != nil {
			return err
		}
		c.progress = next
		c.o.Watch(Status{Phase: phase, Done: next.Copied.all(), All: c.totals.all()})
		if err := ctx.Err(); err != nil && !end {
			return err
		}
	}
	return nil
}

func after(t *rows.Table) string {
	all := rows.Tables()
	if i := slices.Index(all, t); i+1 < len(all) {
		return all[i+1].Name
	}
	return comparing
}

// holds names what a store contains, messages first. Empty: nothing.
func holds(ctx context.Context, e Exporter) (string, error) {
	for _, t := range append([]*rows.Table{rows.Of((*rows.Message)(nil))}, rows.Tables()...) {
		_, what := words(t)
		if what == "" {
			continue
		}
		page, err := e.Read(ctx, rows.Range{Table: t, Limit: 1})
		if err != nil || len(page) > 0 {
			return what, err
		}
	}
	return "", nil
}

// end marks the source before it releases the target: at no moment can nodes open both.
func (c *copying) end(ctx context.Context) error {
	if err := c.to.Place(ctx); err != nil {
		return fmt.Errorf("place ordering keys: %w", err)
	}
	if err := c.unchanged(ctx); err != nil {
		return err
	}
	if c.origin.Moved == nil {
		m := Moved{To: c.o.To, Store: c.target.Store, At: time.Now().UTC().Format(time.RFC3339)}
		if err := c.from.Mark(ctx, m); err != nil {
			return fmt.Errorf("mark the source as moved: %w", err)
		}
	}
	there, err := c.to.Origin(ctx)
	if err != nil {
		return err
	}
	c.progress.Done, c.progress.Ended = true, there.Use
	if err := c.to.End(ctx, c.progress); err != nil {
		return errors.Join(fmt.Errorf("release the target: %w", err), errors.New("the source is marked as moved already; run the same command again"))
	}
	return nil
}

// unchanged returns an error if the source has gained something that is not copied.
func (c *copying) unchanged(ctx context.Context) error {
	o, err := c.from.Origin(ctx)
	if err != nil {
		return err
	}
	t, err := c.from.Totals(ctx)
	if err == nil && (o.Use != c.origin.Use || t != c.totals) {
		err = fmt.Errorf("%w: stop all programs that use it, empty %s and begin again", ErrChanged, c.o.To)
	}
	return err
}

// refusal says where the store was moved, and what to do.
func (m *Moved) refusal() error {
	return fmt.Errorf("%w to %s at %s: use that one; if it was never used or is lost, holdfast copy --undo lets nodes use this one again", ErrMoved, m.To, m.At)
}

func (p *Progress) refusal() error {
	if p.Table == "" {
		return fmt.Errorf("%w: it comes from %s, and another release has begun it; remove this store and start over", ErrUnfinished, p.From)
	}
	return fmt.Errorf("%w: it comes from %s; run the same holdfast copy again to continue it, or remove this store and start over", ErrUnfinished, p.From)
}

// Refusal returns why no node may open a store with these marks, as Mark and Write have stored
// them; an empty string is no mark. It returns nil if a node may open it.
func Refusal(moved, copied string) error {
	o, err := OriginOf("", "", moved, copied)
	switch {
	case err != nil:
		return err
	case o.Copy != nil && !o.Copy.Done:
		return o.Copy.refusal()
	case o.Moved != nil:
		return o.Moved.refusal()
	}
	return nil
}

// OriginOf returns the Origin of a store, with its marks as Mark and Write have stored them.
func OriginOf(store, use, moved, copied string) (o Origin, err error) {
	o.Store, o.Use = store, use
	if o.Moved, err = parse[Moved](moved, "mark of a move"); err == nil {
		o.Copy, err = parse[Progress](copied, "progress of a copy")
	}
	return o, err
}

// parse reads what Text has made. It returns nil for an empty text.
func parse[T Moved | Progress](text, what string) (*T, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // said above
	}
	v := new(T)
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return nil, fmt.Errorf("read the %s: %q: %w", what, text, err)
	}
	return v, nil
}

// Text returns the form in which a mark or a progress is stored.
func Text[T Moved | Progress](v T) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}
