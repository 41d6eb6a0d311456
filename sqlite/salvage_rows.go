package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/sqlitefile"
	"github.com/holdfast-mq/holdfast/rows"
)

// plain salvages the tables whose rows are described in package rows: either those that operators
// have set, or the rest.
func (s *salvage) plain(ctx context.Context, book bool) error {
	for _, t := range rows.Plain() {
		switch t.New().(type) {
		case *rows.Lane, *rows.Channel, *rows.List, *rows.Recipient, *rows.Bundle, *rows.Event, *rows.Delivery:
			continue // routeOf, book, keepBundle and events salvage these
		}
		if t.Book != book {
			continue
		}
		if err := s.plainTable(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// plainTable salvages the rows that the tree of a table leads to. Rows elsewhere may have been
// deleted, like a revoked token.
func (s *salvage) plainTable(ctx context.Context, t *rows.Table) (err error) {
	s.rowsOf(t.Name, len(t.Columns), func(r sqlitefile.Row) {
		if row, ok := s.described(t, r); ok && err == nil {
			err = s.add(ctx, t.Size(row), func(tx *writeTx) error { return s.insertPlain(tx, row) })
		}
	})
	return err
}

// rowsOf is eachOf for a table with or without row ids.
func (s *salvage) rowsOf(table string, columns int, yield func(r sqlitefile.Row)) (whole bool) {
	if s.tables[table] {
		s.eachOf(table, columns, yield)
		return true
	}
	return s.entries(table, columns, yield)
}

// insertPlain writes rows that do not exist yet, if their parent rows exist.
func (s *salvage) insertPlain(tx *writeTx, list ...rows.Row) error {
	for _, r := range list {
		n, err := tx.write(0, keepRow, []rows.Row{r})
		if err != nil {
			return err
		}
		if o, is := r.(*rows.Operation); is { // no new message gets its number
			tx.w.db.taken.Store(max(tx.w.db.taken.Load(), o.Seq))
		}
		s.count(func(d *Damage) { d.Salvaged.plain(r.Table(), n) })
	}
	return nil
}

// told is the largest number of rows that the log names.
const told = 1000

// described is describedRow that also counts losses. The log names the lost rows that operators
// have set.
func (s *salvage) described(t *rows.Table, r sqlitefile.Row) (rows.Row, bool) {
	row, mended, ok := describedRow(t, r)
	switch {
	case !ok:
		s.lost++
		if t.Book && s.lost <= told {
			s.db.log.Error("salvage: a row that people have set is lost: put it back", slog.String("table", t.Name), slog.String("key", keyOf(r)))
		}
	case len(mended) > 0:
		s.mended++
		if t.Book && s.mended <= told {
			s.db.log.Error("salvage: values of a row that people have set are lost, and empty now: put them back",
				slog.String("table", t.Name), slog.String("key", t.Place(row)), slog.Any("columns", mended))
		}
	}
	return row, ok
}

// keyOf returns the first column of a lost row, for people.
func keyOf(r sqlitefile.Row) string {
	if len(r.Values) == 0 || r.Values[0] == nil {
		return "not readable"
	}
	return fmt.Sprintf("%.100q", fmt.Sprintf("%s", r.Values[0]))
}

// describedRow makes a row of its description, and returns the columns whose values are lost. It
// returns false if the row cannot be one of the table, or is useless without what it has lost.
func describedRow(t *rows.Table, r sqlitefile.Row) (row rows.Row, mended []string, ok bool) {
	if len(r.Values) != len(t.Columns) {
		return nil, nil, false
	}
	row = t.New()
	for i, f := range t.Fields(row) {
		c, v := &t.Columns[i], r.Values[i]
		if v == nil && i == 0 {
			v = r.ID // SQLite keeps the key of a table with row ids there
		}
		if describedField(c, f, v) {
			continue
		}
		if i < len(t.Key) || c.Secret || c.Final != 0 {
			return nil, nil, false
		}
		mended = append(mended, c.Name)
	}
	if name, is := t.KeyFields(row)[0].(*string); is && *name == "" {
		return nil, nil, false
	}
	return row, mended, usable(row)
}

// describedField sets a field. It returns false if the column cannot have had this value; the field
// then keeps its zero value. So a revoked credential stays revoked, and does not become valid for
// ever.
func describedField(c *rows.Column, field, v any) (ok bool) {
	if v == nil {
		if at, is := field.(*rows.Instant); is && c.Null {
			*at = rows.None
		}
		return c.Null
	}
	switch f := field.(type) {
	case *string:
		*f, ok = v.(string)
	case *[]byte:
		*f, ok = v.([]byte)
		ok = ok && (!c.Secret || len(*f) == 32)
	case *int64:
		*f, ok = v.(int64)
	case *bool:
		var n int64
		n, ok = v.(int64)
		*f = n != 0
	case *rows.Instant:
		var n int64
		if n, ok = v.(int64); ok {
			*f = rows.Distance(n, 0, never)
		}
	case *holdfast.ID:
		*f = idFrom(v)
		ok = *f != ""
	}
	return ok
}

// usable replaces values that would make a program fail. It returns false if the rest of the row is
// useless.
func usable(r rows.Row) bool {
	switch r := r.(type) {
	case *rows.Token:
		return r.Role != ""
	case *rows.Person:
		return r.Role != ""
	case *rows.Channel:
		if !json.Valid([]byte(r.Waits)) {
			r.Waits = ""
		}
		return r.Kind != ""
	case *rows.Bundle:
		if len(r.Hash) != len(holdfast.Bundle{}.Hash) {
			r.Hash = nil
		}
		return r.ID != "" && r.Kind != ""
	case *rows.AuditRecord:
		return json.Valid(r.Leaf)
	case *rows.Target:
		r.Result = min(max(r.Result, 0), 3)
	}
	return true
}

// oldBook is what a damaged file has of channels and lists.
type oldBook struct {
	channels   map[string]*rows.Channel
	lists      map[string]*rows.List
	recipients map[string]map[int64]*rows.Recipient // by list and position
}

func (b *oldBook) take(r rows.Row) {
	switch r := r.(type) {
	case *rows.Channel:
		b.channels[r.Name] = r
	case *rows.List:
		b.lists[r.Name] = r
	case *rows.Recipient:
		if b.recipients[r.List] == nil {
			b.recipients[r.List] = map[int64]*rows.Recipient{}
		}
		b.recipients[r.List][r.Place] = r
	}
}

// book salvages channels and lists, which are stored nowhere else. It logs what is missing, so that
// operators can put it back.
func (s *salvage) book(ctx context.Context) error {
	b := oldBook{map[string]*rows.Channel{}, map[string]*rows.List{}, map[string]map[int64]*rows.Recipient{}}
	channels, lists, recipients := rows.Of((*rows.Channel)(nil)), rows.Of((*rows.List)(nil)), rows.Of((*rows.Recipient)(nil))
	whole := true
	for _, t := range []*rows.Table{channels, lists, recipients} {
		whole = s.rowsOf(t.Name, len(t.Columns), func(r sqlitefile.Row) {
			if row, ok := s.described(t, r); ok {
				b.take(row)
			}
		}) && whole
	}
	if !whole {
		s.orphans(func(table bool, r sqlitefile.Row) {
			for _, t := range []*rows.Table{channels, recipients} { // a row of hf_list looks like an index entry
				if row, _, ok := describedRow(t, r); ok && !table {
					b.take(row)
				}
			}
		})
		s.db.log.ErrorContext(ctx, "salvage: pages of channels and lists are damaged: others than those named here may be lost", slog.String("file", s.file))
	}
	for _, c := range b.channels {
		if err := s.add(ctx, 0, func(tx *writeTx) error { return s.insertPlain(tx, c) }); err != nil {
			return err
		}
	}
	for name := range b.recipients {
		if b.lists[name] == nil {
			s.db.log.ErrorContext(ctx, "salvage: the description of a list is lost, and its recipients are kept", slog.String("list", name))
			b.lists[name] = &rows.List{Name: name}
		}
	}
	for _, l := range b.lists {
		if err := s.list(ctx, l, b.recipients[l.Name]); err != nil {
			return err
		}
	}
	if len(b.channels)+len(b.lists) == 0 {
		return nil
	}
	return s.add(ctx, 0, func(tx *writeTx) error {
		_, err := tx.exec(bumpBook)
		return err
	})
}

// list salvages a list with the recipients that are left, and logs what is lost.
func (s *salvage) list(ctx context.Context, l *rows.List, left map[int64]*rows.Recipient) error {
	want := max(l.Recipients, 0)
	var list []rows.Row
	for place, r := range left {
		want = max(want, place+1)
		list = append(list, r)
	}
	if lost := want - int64(len(left)); lost > 0 {
		s.db.log.ErrorContext(ctx, "salvage: recipients of a list are lost: put them back", slog.String("list", l.Name), slog.Int64("lost", lost), slog.Int("kept", len(left)))
	}
	l.Recipients = int64(len(left))
	return s.add(ctx, 64*len(list), func(tx *writeTx) error {
		n, err := tx.write(0, keepRow, []rows.Row{l})
		if err != nil || n == 0 {
			return err // the list exists, complete
		}
		s.count(func(d *Damage) { d.Salvaged.Lists++ })
		return s.insertPlain(tx, list...)
	})
}
