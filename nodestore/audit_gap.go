package nodestore

import (
	"slices"

	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

func gapsOf(read func(sql string, args []any, row func(side.Scan) error) error, log int64) (list []sites.Range, err error) {
	err = read(copyGaps, []any{log}, func(scan side.Scan) error {
		var g sites.Range
		err := scan(&g.First, &g.Last)
		list = append(list, g)
		return err
	})
	return list, err
}

// without returns what is left of gaps once the records from first to last are here.
func without(gaps []sites.Range, first, last int64) (left []sites.Range) {
	for _, g := range gaps {
		if g.Last < first || g.First > last {
			left = append(left, g)
			continue
		}
		if g.First < first {
			left = append(left, sites.Range{First: g.First, Last: first - 1})
		}
		if g.Last > last {
			left = append(left, sites.Range{First: last + 1, Last: g.Last})
		}
	}
	return left
}

func replaceGaps(tx side.Tx, log int64, was, is []sites.Range) error {
	for _, g := range was {
		if !slices.ContainsFunc(is, func(o sites.Range) bool { return o.First == g.First }) {
			if _, err := tx.Exec(dropGap, log, g.First); err != nil {
				return err
			}
		}
	}
	var list []rows.Row
	for _, g := range is {
		if !slices.Contains(was, g) {
			list = append(list, &rows.AuditGap{Log: log, First: g.First, Last: g.Last})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return tx.Put(list...)
}
