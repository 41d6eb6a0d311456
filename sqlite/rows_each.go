package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/rowsql"
	"github.com/holdfast-mq/holdfast/rows"
)

// rowQuery returns the query that reads the rows of a table, from the first one or, if later, after
// a given one. These queries follow all others.
func rowQuery(t *rows.Table, later bool) query {
	q := queryCount + query(2*slices.Index(rows.Plain(), t))
	if later {
		q++
	}
	return q
}

// rowQueries returns the texts of those queries.
func rowQueries() (list []string) {
	for _, t := range rows.Plain() {
		all, key := `SELECT `+rowsql.Values(t)+` FROM `+t.Name+` WHERE `, rowsql.Names(t.Key)
		stands := "true"
		if len(t.Of) > 0 {
			stands = rowsql.Stands(t, t.Name+".seq")
		}
		order := ` ORDER BY ` + key + ` LIMIT ?1`
		list = append(list, all+stands+order, all+`(`+key+`) > (`+rowsql.Numbers("?", 2, len(t.Key))+`) AND `+stands+order)
	}
	return list
}

// querier is a handle, a connection or a transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// eachRowOf calls yield for rows of a table, except for rows whose parent row is gone.
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
		r, err := rowsql.Scan(found.Scan, w.Table, w.Base, func(v any) holdfast.ID { return idFrom(v) })
		if err != nil {
			return err
		}
		bytes += int64(w.Table.Size(r))
		if err := yield(r); err != nil {
			return err
		}
	}
	return found.Err()
}
