package audit

import (
	"maps"
	"slices"

	"github.com/holdfast-mq/holdfast/rows"
)

// Progress is how far verifications have come. A verification that is given the Progress of an earlier one reads only
// the records that have come since, and what one log says of another. After a fault or an error it begins again from the
// first record. So it does not find what is done to an old record later: for that, verify everything now and then. The
// zero value has verified nothing. One verification at a time uses it.
type Progress struct {
	told *verification // what records have said of logs
	logs map[string]reached
}

// reached is where a walk has ended without a fault.
type reached struct {
	size   int64
	head   Hash
	tree   edge
	treed  bool
	seen   map[Public]*signed
	erased map[string]int64
	missed *Missed
}

// Verified returns how many records of a log were verified.
func (p *Progress) Verified(origin string) int64 { return p.logs[origin].size }

// begin gives a verification what earlier ones have learnt.
func (p *Progress) begin(v *verification) {
	if p.told == nil {
		p.logs = map[string]reached{}
		return
	}
	v.purges, v.formers, v.anchored, v.erasing, v.vouched = p.told.purges, p.told.formers, p.told.anchored, p.told.erasing, p.told.vouched
}

// end keeps what a verification has learnt.
func (p *Progress) end(v *verification, r *Report) {
	if r == nil || r.Status == Broken {
		*p = Progress{}
		return
	}
	p.told = v
	v.from, v.marks = nil, nil
	for _, l := range v.logs { // what an older purge took, a later one has said again
		v.purges[l.Origin] = slices.DeleteFunc(v.purges[l.Origin], func(p purged) bool { return p.Last < l.Cut })
	}
	maps.DeleteFunc(p.logs, func(origin string, _ reached) bool {
		return !slices.ContainsFunc(v.logs, func(l *rows.AuditLog) bool { return l.Origin == origin })
	})
}

// keep notes where a walk has ended. A log with gaps is read from its first record the next time: what fills them comes late.
func (p *Progress) keep(w *walk) {
	if len(w.gaps) > 0 {
		delete(p.logs, w.log.Origin)
		return
	}
	p.logs[w.log.Origin] = reached{w.log.Size, w.head, w.tree.clone(), w.treed, cloned(w.seen), maps.Clone(w.erased), w.report.Unrecorded}
}

// resume begins a walk where the last one of this log has ended, if it can. It returns the number of the record
// after which it goes on.
func (p *Progress) resume(w *walk) (after int64, ok bool) {
	at, known := p.logs[w.log.Origin]
	if !known || at.size < w.log.Cut || at.size > w.log.Size || len(w.gaps) > 0 {
		return 0, false
	}
	w.head, w.tree, w.treed, w.seen, w.asked, w.erased = at.head, at.tree.clone(), at.treed, cloned(at.seen), at.size-1, maps.Clone(at.erased)
	w.report.Unrecorded = at.missed
	return at.size, true
}

// cloned returns what keys have signed, for a walk that changes it.
func cloned(seen map[Public]*signed) map[Public]*signed {
	list := make(map[Public]*signed, len(seen))
	for k, s := range seen {
		one := *s
		list[k] = &one
	}
	return list
}

func (e *edge) clone() edge {
	c := edge{size: e.size}
	for _, hashes := range e.tiles {
		c.tiles = append(c.tiles, append(make([]byte, 0, tileWidth*hashSize), hashes...))
	}
	return c
}
