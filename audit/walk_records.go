package audit

import (
	"bytes"
	"context"
)

// kept is a record of a page, as far as verification needs it.
type kept struct {
	seq    int64
	leaf   Hash
	hash   Hash    // zero: it has none
	record *Record // if it says something about logs
	erased int
	bad    string // what does not fit the leaf
}

// records reads the records that stand and follow a number, page after page. One record of the next page helps to say
// what was done to the last one.
func (w *walk) records(ctx context.Context, after int64) error {
	next, spare := after+1, make([]kept, 0, verifyPage)
	page, err := w.page(ctx, after, make([]kept, 0, verifyPage))
	for err == nil && len(page) > 0 {
		var later []kept
		if later, err = w.page(ctx, page[len(page)-1].seq, spare); err != nil {
			return err
		}
		for i := range page {
			if page[i].seq > w.log.Size {
				return w.ends(next)
			}
			var follows *kept
			if i+1 < len(page) {
				follows = &page[i+1]
			} else if len(later) > 0 {
				follows = &later[0]
			}
			if next, err = w.record(ctx, next, &page[i], follows); err != nil {
				return err
			}
		}
		page, spare = later, page[:0]
	}
	if err != nil {
		return err
	}
	return w.ends(next)
}

// ends says what is missing at the end of the records.
func (w *walk) ends(next int64) error {
	if next <= w.log.Size {
		return w.fault(TailCut, next, "the log has %d records, and they end with %d", w.log.Size, next-1)
	}
	return nil
}

// page reads the records that follow a number, with their values, into an empty page.
func (w *walk) page(ctx context.Context, after int64, page []kept) (_ []kept, err error) {
	if after >= w.log.Size {
		return nil, nil
	}
	var values map[int64][]Value
	if err := w.from.Values(ctx, w.log.Log, after+1, after+verifyPage, func(seq int64, v Value) error {
		if values == nil {
			values = map[int64][]Value{}
		}
		values[seq] = append(values[seq], v)
		return nil
	}); err != nil {
		return nil, err
	}
	err = w.from.Records(ctx, w.log.Log, after, verifyPage, func(s *Stored) error {
		own := s.Values
		if s.Seq <= after+verifyPage && own == nil {
			own = values[s.Seq]
		}
		page = append(page, w.keep(s, own))
		return nil
	})
	return page, err
}

func (w *walk) keep(s *Stored, values []Value) kept {
	k := kept{seq: s.Seq, leaf: LeafHash(s.Leaf)}
	if len(s.Hash) == hashSize {
		k.hash = Hash(s.Hash)
	}
	r := &w.reading
	if !r.scan(s.Leaf) {
		var err error
		if *r, err = Read(s.Leaf, values); err != nil {
			k.bad = err.Error()
			return k
		}
	}
	if r.Site = SiteOf(w.log, r.Site); s.SameColumns != nil && !s.SameColumns(r) {
		k.bad = "what stands beside the record is not what the record says"
	} else if len(values)+len(r.Erased) != len(r.Personal) {
		k.bad = "there is a value that the record does not have"
	}
	if k.erased = len(r.Erased); r.Kind == Gap || w.log.Own && aboutLogs(r.Kind) {
		about := *r
		k.record = &about
	}
	return k
}

// record checks one record, of which the log expects the number next. It returns the number after it.
func (w *walk) record(ctx context.Context, next int64, k, follows *kept) (int64, error) {
	for _, g := range w.gaps {
		if g.first <= next && next <= g.last && k.seq > g.last {
			next, w.treed, w.head = g.last+1, false, g.hash
		}
	}
	switch {
	case k.seq > next && next == w.log.Cut+1:
		return next, w.fault(HeadCut, next, "the first record that stands is %d", k.seq)
	case k.seq > next:
		return next, w.fault(Removed, next, "the next record that stands is %d", k.seq)
	case k.seq < next:
		return next, w.fault(Inserted, next, "record %d comes after record %d", k.seq, next-1)
	}
	tiled, err := w.leafHash(ctx, k.seq)
	if err != nil {
		return next, err
	}
	if ChainHash(k.seq, w.head, k.leaf) != k.hash || tiled != nil && !bytes.Equal(tiled, k.leaf[:]) {
		return next, w.blame(k, follows, tiled)
	}
	if tiled == nil && w.planted() {
		return next, w.fault(Changed, k.seq, "the tree lacks the record")
	}
	if k.bad != "" {
		return next, w.fault(Changed, k.seq, "%s", k.bad)
	}
	w.report.Erased += int64(k.erased)
	if err := w.step(ctx, k.seq, k.leaf); err != nil {
		return next, err
	}
	if k.record == nil {
		return next + 1, nil
	}
	return next + 1, w.special(ctx, k.seq, k.record)
}

// blame says what was done at a record that does not fit.
func (w *walk) blame(k, follows *kept, tiled []byte) error {
	if follows != nil {
		moved := ChainHash(k.seq, w.head, follows.leaf)
		if follows.hash == moved || tiled != nil && bytes.Equal(tiled, follows.leaf[:]) {
			return w.fault(Inserted, k.seq, "the record that follows belongs here")
		}
	}
	if at := int(k.seq%tileWidth) * hashSize; tiled != nil && k.seq%tileWidth != 0 && len(w.tile) >= at+hashSize && bytes.Equal(w.tile[at:at+hashSize], k.leaf[:]) {
		return w.fault(Removed, k.seq, "the record that follows stands here")
	}
	if follows != nil && k.hash != (Hash{}) {
		if moved := ChainHash(k.seq+2, k.hash, follows.leaf); follows.hash == moved {
			return w.fault(Removed, k.seq, "the record that follows stands here")
		}
	}
	return w.fault(Changed, k.seq, "the record is not the one that was written")
}
