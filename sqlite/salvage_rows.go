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

// plain salvages the tables whose rows are as they are described: what people have set, or
// the rest.
func (s *salvage) plain(ctx context.Context, book bool) error {
	for _, t := range rows.Plain() {
		switch t.New().(type) {
		case *rows.Lane, *rows.Channel, *rows.List, *rows.Recipient, *rows.Bundle:
			continue // routeOf, book and keepBundle have them
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

// plainTable salvages the rows that the tree of a table leads to: what stands elsewhere may
// have been deleted, as a token that somebody took away.
func (s *salvage) plainTable(ctx context.Context, t *rows.Table) (err error) {
	s.rowsOf(t.Name, len(t.Columns), func(r sqlitefile.Row) {
		if row, ok := s.described(t, r); ok && err == nil {
			err = s.add(ctx, t.Size(row), func(tx *writeTx) error { return s.insertPlain(tx, row) })
		}
	})
	return err
}

// rowsOf is eachOf for a table with row ids and for one without.
func (s *salvage) rowsOf(table string, columns int, yield func(r sqlitefile.Row)) (whole bool) {
	if s.tables[table] {
		s.eachOf(table, columns, yield)
		return true
	}
	return s.entries(table, columns, yield)
}

// insertPlain writes rows that are not there yet, if what they go with is.
func (s *salvage) insertPlain(tx *writeTx, list ...rows.Row) error {
	for _, r := range list {
		n, err := tx.write(0, keepRow, []rows.Row{r})
		if err != nil {
			return err
		}
		s.count(func(d *Damage) { d.Salvaged.plain(r.Table(), n) })
	}
	return nil
}

// told is how many rows the log names.
const told = 1000

// described is describedRow, and notes what is lost. What of it people have set the log names.
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

// keyOf is the first column of a row that is lost, for people.
func keyOf(r sqlitefile.Row) string {
	if len(r.Values) == 0 || r.Values[0] == nil {
		return "not readable"
	}
	return fmt.Sprintf("%.100q", fmt.Sprintf("%s", r.Values[0]))
}

// describedRow is a row as it is described, with the columns that have lost their value; false:
// it cannot have been one, or is of no use without what it has lost.
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

// describedField sets a field; false: the column cannot have had this value, and the field
// keeps its zero value. So a credential that was revoked stays that, and is not valid for ever.
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

// usable replaces values that a program would stumble over; false: nothing can be done with
// what is left.
func usable(r rows.Row) bool {
	switch r := r.(type) {
	case *rows.Token:
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
	case *rows.Target:
		r.Result = min(max(r.Result, 0), 3)
	}
	return true
}

// oldBook is what a damaged file has of channels and lists.
type oldBook struct {
	channels   map[string]*rows.Channel
	lists      map[string]*rows.List
	recipients map[string]map[int64]*rows.Recipient // by list and place
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

// book salvages channels and lists, which stand nowhere else. What is missing is
// told: who reads the log can put it back.
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
			for _, t := range []*rows.Table{channels, recipients} { // a row of hf_list looks like one of an index
				if row, _, ok := describedRow(t, r); ok && !table {
					b.take(row)
				}
			}
		})
		s.db.log.ErrorContext(ctx, "salvage: pages of channels and lists are damaged: some that are not named here may be lost", slog.String("file", s.file))
	}
	for _, c := range b.channels {
		if err := s.add(ctx, 0, func(tx *writeTx) error { return s.insertPlain(tx, c) }); err != nil {
			return err
		}
	}
	for name := range b.recipients {
		if b.lists[name] == nil {
			s.db.log.ErrorContext(ctx, "salvage: of a list only recipients are left: its description is lost", slog.String("list", name))
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

// list salvages a list with what is left of its recipients, and says what is lost.
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
			return err // it is there, whole
		}
		s.count(func(d *Damage) { d.Salvaged.Lists++ })
		return s.insertPlain(tx, list...)
	})
}
