package postgres

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// selectRows has a value in the place of each NULL but of bytes. Its first two parameters
// are how many rows and how many bytes to read, the last row may go over those; then comes
// the key of the row before, if later.
func selectRows(t *rows.Table, later bool) string {
	columns, sizes := make([]string, len(t.Columns)), []string{"0"}
	for i, f := range t.Fields(t.New()) {
		c := t.Columns[i]
		columns[i] = c.Name
		fallback := ""
		switch f.(type) {
		case *string:
			fallback = "''"
			sizes = append(sizes, "coalesce(octet_length("+c.Name+"), 0)")
		case *[]byte:
			sizes = append(sizes, "coalesce(octet_length("+c.Name+"), 0)")
		case *int64:
			fallback = "0"
		case *rows.Instant:
			fallback = "-9223372036854775808"
		}
		if c.Null && fallback != "" {
			columns[i] = "coalesce(" + c.Name + ", " + fallback + ")"
		}
	}
	keys, behind := columnsOf(t.Key), ""
	key := strings.Join(keys, ", ")
	if later {
		behind = " WHERE (" + key + ") > ($3"
		for i := range keys[1:] {
			behind += ", $" + strconv.Itoa(i+4)
		}
		behind += ")"
	}
	size := strings.Join(sizes, " + ")
	return `SELECT ` + strings.Join(columns, ", ") + ` FROM (
			SELECT *, sum(` + size + `) OVER (ORDER BY ` + key + `) - (` + size + `) AS before FROM (SELECT * FROM ` + t.Name + behind + ` ORDER BY ` + key + ` LIMIT $1) AS p) AS x
		WHERE x.before < $2 ORDER BY ` + key
}

// rangeOf is the statement that reads rows of a table, and its parameters.
func rangeOf(w rows.Range) (sql string, args []any, err error) {
	args = []any{int64(math.MaxInt64), int64(math.MaxInt64)}
	if w.Limit > 0 {
		args[0] = w.Limit
	}
	if w.Bytes > 0 {
		args[1] = w.Bytes
	}
	if w.After == "" {
		return rowStatements()[w.Table].first, args, nil
	}
	after, err := w.Table.At(w.After)
	if err != nil {
		return "", nil, err
	}
	return rowStatements()[w.Table].later, append(args, w.Table.KeyFields(after)...), nil
}

// eachRowOf calls yield for rows of a table.
func (db *DB) eachRowOf(ctx context.Context, w rows.Range, yield func(r rows.Row) error) error {
	sql, args, err := rangeOf(w)
	if err != nil {
		return err
	}
	return db.read(ctx, sql, args, func(found pgx.Rows) error {
		r, err := scanRow(found, w)
		if err != nil {
			return err
		}
		return yield(r)
	})
}

// scanRow reads a row of a table.
func scanRow(found pgx.Rows, w rows.Range) (rows.Row, error) {
	r := w.Table.New()
	fields := w.Table.Fields(r)
	into := make([]any, len(fields))
	var ids []func()
	for i, f := range fields {
		into[i] = f
		if id, ok := f.(*holdfast.ID); ok {
			var b []byte
			into[i], ids = &b, append(ids, func() { *id = idFrom(b) })
		}
	}
	if err := found.Scan(into...); err != nil {
		return nil, err
	}
	for _, set := range ids {
		set()
	}
	for _, f := range fields {
		if at, ok := f.(*rows.Instant); ok {
			*at = rows.Distance(int64(*at), w.Base, never)
		}
	}
	return r, nil
}
