package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowQuery reads the rows of a table from the first or, later, behind one. They come
// behind all other queries.
func rowQuery(t *rows.Table, later bool) query {
	q := queryCount + query(2*slices.Index(rows.Tables(), t))
	if later {
		q++
	}
	return q
}

// rowQueries are the texts of those queries.
func rowQueries() (list []string) {
	for _, t := range rows.Tables() {
		key, numbers := strings.Join(columnsOf(t.Key), ", "), make([]string, len(t.Key))
		for i := range numbers {
			numbers[i] = "?" + strconv.Itoa(i+2)
		}
		list = append(list, selectRows(t)+` ORDER BY `+key+` LIMIT ?1`,
			selectRows(t)+` WHERE (`+key+`) > (`+strings.Join(numbers, ", ")+`) ORDER BY `+key+` LIMIT ?1`)
	}
	return list
}

// selectRows has a value in the place of each NULL.
func selectRows(t *rows.Table) string {
	columns := make([]string, len(t.Columns))
	for i, f := range t.Fields(t.New()) {
		c := t.Columns[i]
		columns[i] = c.Name
		if !c.Null {
			continue
		}
		switch f.(type) {
		case *string:
			columns[i] = `coalesce(` + c.Name + `, '')`
		case *int64:
			columns[i] = `coalesce(` + c.Name + `, 0)`
		case *rows.Instant:
			columns[i] = `coalesce(` + c.Name + `, -9223372036854775808)`
		}
	}
	return `SELECT ` + strings.Join(columns, ", ") + ` FROM ` + t.Name
}

// querier is a handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRowOf calls yield for rows of a table.
func eachRowOf(ctx context.Context, from querier, w rows.Range, yield func(r rows.Row) error) (err error) {
	args := []any{int64(math.MaxInt64)}
	if w.Limit > 0 {
		args[0] = w.Limit
	}
	if w.After != "" {
		after, err := w.Table.At(w.After)
		if err != nil {
			return err
		}
		for i, f := range w.Table.KeyFields(after) {
			args = append(args, rowValue(&w.Table.Key[i], f, w.Base))
		}
	}
	found, err := from.QueryContext(ctx, queries[rowQuery(w.Table, w.After != "")], args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, found.Close()) }()
	bytes := int64(0)
	for (w.Bytes == 0 || bytes < w.Bytes) && found.Next() {
		r := w.Table.New()
		if err := scanRow(found, w.Table.Fields(r), w.Base); err != nil {
			return err
		}
		bytes += int64(w.Table.Size(r))
		if err := yield(r); err != nil {
			return err
		}
	}
	return found.Err()
}

// scanRow reads the fields of a row.
func scanRow(found *sql.Rows, fields []any, base int64) error {
	into, after := make([]any, len(fields)), make([]func(), 0, len(fields))
	for i, f := range fields {
		var n int64
		var id any
		into[i] = f
		switch f := f.(type) {
		case *bool:
			into[i], after = &n, append(after, func() { *f = n == 1 })
		case *rows.Instant:
			into[i], after = &n, append(after, func() { *f = rows.Distance(n, base, never) })
		case *holdfast.ID:
			into[i], after = &id, append(after, func() { *f = idFrom(id) })
		}
	}
	if err := found.Scan(into...); err != nil {
		return err
	}
	for _, set := range after {
		set()
	}
	return nil
}
