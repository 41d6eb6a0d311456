package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/rowsql"
	"github.com/holdfast-mq/holdfast/rows"
)

// selectRows returns a query that reads rows of a table, with a value in place of each NULL except
// in columns of bytes. Its first two parameters bound the rows and the bytes; the last row may
// exceed the bytes. If later is set, the key of the previous row follows.
func selectRows(t *rows.Table, later bool) string {
	size, key, which := "0", rowsql.Names(t.Key), "true"
	for i, f := range t.Fields(t.New()) {
		if a := arrayOf(f); a == "text[]" || a == "bytea[]" {
			size += " + coalesce(octet_length(" + t.Columns[i].Name + "), 0)"
		}
	}
	if len(t.Of) > 0 {
		which = rowsql.Stands(t, "o.seq")
	}
	if later {
		which = "(" + key + ") > (" + rowsql.Numbers("$", 3, len(t.Key)) + ") AND " + which
	}
	return `SELECT ` + rowsql.Values(t) + ` FROM (
			SELECT *, sum(` + size + `) OVER (ORDER BY ` + key + `) - (` + size + `) AS before FROM (SELECT * FROM ` + t.Name + ` AS o WHERE ` + which + ` ORDER BY ` + key + ` LIMIT $1) AS p) AS x
		WHERE x.before < $2 ORDER BY ` + key
}

// rangeOf returns the statement that reads rows of a table, and its parameters.
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

// eachRowOf calls yield for the rows of a table. It skips rows whose parent row is gone.
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

// scanRow reads one row of a table.
func scanRow(found pgx.Rows, w rows.Range) (rows.Row, error) {
	return rowsql.Scan(found.Scan, w.Table, w.Base, func(v any) holdfast.ID {
		b, _ := v.([]byte)
		return idFrom(b)
	})
}
