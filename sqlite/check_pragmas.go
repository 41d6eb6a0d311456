package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"slices"
	"strings"
	"time"
)

// check checks the structure of the file. With a time limit it goes table by table, the small ones
// first, so that it can say how far it came.
func (i *Integrity) check(ctx context.Context, db *sql.DB, o InspectOptions) error {
	started := time.Now()
	defer func() { i.Took = time.Since(started) }()
	tables, err := tablesBySize(ctx, db)
	if err != nil {
		return err
	}
	i.Tables = len(tables)
	if o.Full {
		i.Checked = i.Tables
		return i.run(ctx, db, `PRAGMA integrity_check`)
	}
	bounded, cancel := context.WithTimeout(ctx, o.Within)
	defer cancel()
	for _, name := range tables {
		err := i.run(bounded, db, `PRAGMA quick_check(`+quoteName(name)+`)`)
		switch {
		case err == nil:
			i.Checked++
		case ctx.Err() == nil && bounded.Err() != nil:
			i.Left = append(i.Left, name)
		default:
			return err
		}
	}
	return nil
}

func (i *Integrity) run(ctx context.Context, db *sql.DB, pragma string) error {
	return eachOf(ctx, db, pragma, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		if text != "ok" && err == nil && len(i.Problems) < 100 {
			i.Problems = append(i.Problems, text)
		}
		return err
	})
}

// tablesBySize orders the tables by an estimate of their size: the highest key, which costs one
// look.
func tablesBySize(ctx context.Context, db *sql.DB) ([]string, error) {
	var names []string
	if err := eachOf(ctx, db, `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'`, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	}); err != nil {
		return nil, err
	}
	size := make(map[string]int64, len(names))
	for _, name := range names {
		var most sql.NullInt64
		err := db.QueryRowContext(ctx, `SELECT max(rowid) FROM `+quoteName(name)).Scan(&most)
		switch {
		case err == nil:
			size[name] = most.Int64
		case ctx.Err() != nil || errors.Is(translate(err), ErrDamaged):
			size[name] = math.MaxInt64 // quick_check says more about it
		default:
			size[name] = 0 // without row numbers: such tables of ours are small
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		if size[a] != size[b] {
			if size[a] < size[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names, nil
}

func quoteName(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
