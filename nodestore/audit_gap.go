package nodestore

import (
	"slices"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/rows"
)

// gap is records that a copy lacks, and the hash of the chain at the last of them: the record that follows is checked by it.
type gap struct {
	sites.Range

	hash audit.Hash
}

func gapOf(scan side.Scan) (g gap, err error) {
	var hash []byte
	err = scan(&g.First, &g.Last, &hash)
	copy(g.hash[:], hash)
	return g, err
}

func gapsOf(read func(sql string, args []any, row func(side.Scan) error) error, log int64) (list []gap, err error) {
	err = read(auditGaps, []any{log}, func(scan side.Scan) error {
		g, err := gapOf(scan)
		list = append(list, g)
		return err
	})
	return list, err
}

func rangesOf(gaps []gap) (list []sites.Range) {
	for _, g := range gaps {
		list = append(list, g.Range)
	}
	return list
}

// without returns what is left of gaps once the records from first to last are here. before is the hash of the chain before
// the first.
func without(gaps []gap, first, last int64, before audit.Hash) (left []gap) {
	for _, g := range gaps {
		if g.Last < first || g.First > last {
			left = append(left, g)
			continue
		}
		if g.First < first {
			left = append(left, gap{sites.Range{First: g.First, Last: first - 1}, before})
		}
		if g.Last > last {
			left = append(left, gap{sites.Range{First: last + 1, Last: g.Last}, g.hash})
		}
	}
	return left
}

func replaceGaps(tx side.Tx, log int64, was, is []gap) error {
	for _, g := range was {
		if !slices.ContainsFunc(is, func(o gap) bool { return o.First == g.First }) {
			if _, err := tx.Exec(dropGap, log, g.First); err != nil {
				return err
			}
		}
	}
	var list []rows.Row
	for _, g := range is {
		if !slices.Contains(was, g) {
			list = append(list, &rows.AuditGap{Log: log, First: g.First, Last: g.Last, Hash: g.hash[:]})
		}
	}
	if len(list) == 0 {
		return nil
	}
	return tx.Put(list...)
}
