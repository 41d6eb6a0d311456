package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/rows"
)

// verifyPage is how many records are in memory.
const verifyPage = 1000

// errFault ends a walk that has found something.
var errFault = errors.New("fault")

// walk reads one log from its first record to its last.
type walk struct {
	*verification

	log    *rows.AuditLog
	report LogReport

	head    Hash
	reading Record // one after the other: each new one would cost more than what is done with it
	tree    edge
	treed   bool   // the leaves of all records are known
	tile    []byte // of level 0, in which the record is
	tileAt  int64
	gaps    []gap

	marks []mark // that come next
	asked int64  // size up to which the store's were read
	more  bool
	seen  map[Public]*signed

	purged []purged
	erased map[string]int64 // values that records say were erased, by the log that had them
}

// gap is records that are missing, and the hash of the chain at the last of them.
type gap struct {
	first, last int64
	hash        Hash
}

// signed is what one key has signed.
type signed struct {
	good, bad int64 // size of the last checkpoint that agrees, and of the first that does not; 0: none
	at        time.Time
	out       int64 // size of the last one that agrees and that a witness has
	outAt     time.Time
	beyond    int64 // largest size that the log does not reach
}

func (w *walk) fault(f Fault, seq int64, format string, args ...any) error {
	w.report.Status, w.report.Fault, w.report.Seq, w.report.Detail = Broken, f, seq, fmt.Sprintf(format, args...)
	return errFault
}

func (w *walk) run(ctx context.Context, last int64) error {
	l := w.log
	if len(l.Head) != hashSize || l.Cut > l.Size || l.Cut > 0 && len(l.CutHash) != hashSize {
		return w.fault(Changed, 1, "the row of the log makes no sense")
	}
	w.treed, w.tileAt, w.more = true, -1, true
	if !l.Own || w.exported {
		if err := w.from.Gaps(ctx, l.Log, func(first, last int64, hash Hash) error {
			w.gaps = append(w.gaps, gap{first, last, hash})
			return nil
		}); err != nil {
			return err
		}
	}
	after, err := w.begin(ctx)
	if err != nil {
		return err
	}
	if err := w.records(ctx, after); err != nil {
		return err
	}
	if !bytes.Equal(w.head[:], l.Head) {
		return w.fault(Changed, l.Size, "the head of the log is not the hash of its last record")
	}
	if last > l.Size {
		return w.fault(Inserted, l.Size+1, "the log ends with record %d, and record %d stands", l.Size, last)
	}
	if w.planted() {
		if err := w.rightEdge(ctx); err != nil {
			return err
		}
	}
	if err := w.beyond(ctx); err != nil {
		return err
	}
	if err := w.judge(); err != nil {
		return err
	}
	if w.Progress != nil {
		w.Progress.keep(w)
	}
	return nil
}

// begin reads the hashes of what was purged, or goes on where an earlier verification has ended. It returns the
// number of the record after which there are records to read.
func (w *walk) begin(ctx context.Context) (after int64, err error) {
	if w.Progress != nil {
		if after, ok := w.Progress.resume(w); ok {
			return after, w.checkpoints(ctx, after) // it may have been signed since
		}
	}
	return w.log.Cut, w.prefix(ctx)
}

// planted reports whether the whole tree of the log must be there.
func (w *walk) planted() bool { return w.log.Own && !w.exported }

// prefix reads the hashes of purged records from the tiles.
func (w *walk) prefix(ctx context.Context) error {
	l := w.log
	for seq := int64(1); seq <= l.Cut; seq++ {
		hash, err := w.leafHash(ctx, seq)
		if err != nil {
			return err
		}
		if hash == nil {
			if w.planted() {
				return w.fault(Changed, seq, "the tree lacks the purged record %d", seq)
			}
			w.treed, w.head = false, Hash(l.CutHash)
			return nil
		}
		if err := w.step(ctx, seq, Hash(hash)); err != nil {
			return err
		}
	}
	if l.Cut > 0 && !bytes.Equal(w.head[:], l.CutHash) {
		return w.fault(Changed, l.Cut, "the hash at the end of the purge is not that of the tree")
	}
	return nil
}

// leafHash returns what the tiles say, or nil if they say nothing.
func (w *walk) leafHash(ctx context.Context, seq int64) ([]byte, error) {
	number, at := (seq-1)/tileWidth, int((seq-1)%tileWidth)*hashSize
	if number != w.tileAt {
		tile, err := w.from.Tile(ctx, w.log.Log, 0, number)
		if err != nil {
			return nil, err
		}
		w.tile, w.tileAt = tile, number
	}
	if len(w.tile) < at+hashSize {
		return nil, nil
	}
	return w.tile[at : at+hashSize], nil
}

// step takes the hash of the next leaf into chain and tree.
func (w *walk) step(ctx context.Context, seq int64, leaf Hash) error {
	w.head = ChainHash(seq, w.head, leaf)
	if !w.treed {
		return w.checkpoints(ctx, seq)
	}
	var whole []int64
	var tiles [][]byte
	w.tree.add(leaf, func(level int, number int64, hashes []byte) {
		if level > 0 {
			whole, tiles = append(whole, int64(level), number), append(tiles, slices.Clone(hashes))
		}
	})
	for i, hashes := range tiles {
		stored, err := w.from.Tile(ctx, w.log.Log, whole[2*i], whole[2*i+1])
		if err != nil {
			return err
		}
		if w.planted() && !bytes.Equal(stored, hashes) {
			return w.fault(Changed, seq, "tile %d of level %d is not that of the records", whole[2*i+1], whole[2*i])
		}
	}
	return w.checkpoints(ctx, seq)
}

// checkpoints compares the tree with the checkpoints of this size.
func (w *walk) checkpoints(ctx context.Context, seq int64) error {
	for {
		if len(w.marks) == 0 && w.more {
			if err := w.load(ctx); err != nil {
				return err
			}
		}
		if len(w.marks) == 0 || w.marks[0].size > seq {
			return nil
		}
		m := w.marks[0]
		w.marks = w.marks[1:]
		if m.size < seq {
			continue // zero, or of a part that is not here
		}
		w.note(m, w.head == m.chain && (!w.treed || w.tree.root() == m.root))
	}
}

// load reads the next checkpoints of the store, and of the witness up to there.
func (w *walk) load(ctx context.Context) error {
	const some = 1000
	var list []mark
	if err := w.from.Checkpoints(ctx, w.log.Origin, w.asked, some, func(c *rows.AuditCheckpoint) error {
		parsed, err := ParseCheckpoint(c.Note)
		if err != nil || parsed.Origin != c.Origin || parsed.Size != c.Size || !bytes.Equal(parsed.Root[:], c.Root) {
			return w.fault(Changed, c.Size, "checkpoint %d is not what its key has signed", c.Size)
		}
		list = append(list, markOf(&parsed))
		return nil
	}); err != nil {
		return err
	}
	before := w.asked
	if w.more = len(list) == some; w.more {
		w.asked = list[len(list)-1].size
	} else {
		w.asked = 1<<63 - 1
	}
	for _, m := range w.verification.marks[w.log.Origin] {
		if m.out = true; m.size > before && m.size <= w.asked {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b mark) int { return int(min(max(a.size-b.size, -1), 1)) })
	w.marks = list
	return nil
}

// note keeps what a checkpoint shows.
func (w *walk) note(m mark, agrees bool) {
	for _, k := range m.keys {
		s := w.seen[k]
		if s == nil {
			s = &signed{}
			w.seen[k] = s
		}
		switch {
		case m.size > w.log.Size:
			s.beyond = max(s.beyond, m.size)
		case !agrees && s.bad == 0:
			s.bad = m.size
		case agrees && m.out:
			s.out, s.outAt = m.size, m.at
			fallthrough
		case agrees:
			s.good, s.at = m.size, m.at
		}
	}
}

// beyond reads the checkpoints that are larger than the log. Those of records that the node has appended since the
// walk began say nothing.
func (w *walk) beyond(ctx context.Context) error {
	list := w.marks
	for w.more {
		if err := w.load(ctx); err != nil {
			return err
		}
		list = append(list, w.marks...)
	}
	w.marks = nil
	if len(list) == 0 {
		return nil
	}
	now, err := w.row(ctx, w.log.Log)
	if err != nil {
		return err
	}
	for _, m := range list {
		if m.size > now.Size {
			w.note(m, false)
		}
	}
	return nil
}

// rightEdge compares the unfinished tiles.
func (w *walk) rightEdge(ctx context.Context) error {
	size := w.log.Size
	for level, hashes := range w.tree.tiles {
		number := size / tileWidth
		if level > 0 && len(hashes) > 0 {
			stored, err := w.from.Tile(ctx, w.log.Log, int64(level), number)
			if err != nil {
				return err
			}
			if !bytes.HasPrefix(stored, hashes) { // the node may have added some meanwhile
				return w.fault(Changed, size, "tile %d of level %d is not that of the records", number, level)
			}
		}
		size = number
	}
	return nil
}

// judge says what checkpoints, purges and other logs make of a log whose records fit together.
func (w *walk) judge() error {
	l, r := w.log, &w.report
	var beyond, bad int64
	for k, s := range w.seen {
		if !w.counts(k) {
			continue
		}
		if s.good > r.Anchored {
			r.Anchored, r.AnchoredAt, r.Key = s.good, s.at, k.verifier(l.Origin)
		}
		if s.out > r.Witnessed {
			r.Witnessed, r.WitnessedAt = s.out, s.outAt
		}
		if s.bad > 0 && (bad == 0 || s.bad < bad) {
			bad = s.bad
		}
		beyond = max(beyond, s.beyond)
	}
	if bad > 0 {
		good := int64(0)
		for k, s := range w.seen {
			if w.counts(k) && s.good < bad {
				good = max(good, s.good)
			}
		}
		return w.fault(Replaced, good+1, "the records from %d to %d fit together, and are not those that the checkpoint of %d records was made of", good+1, bad, bad)
	}
	if beyond > l.Size && l.Own {
		f, told := w.formers[l.Origin]
		if !told || f.Size != l.Size || f.Head != hex.EncodeToString(l.Head) {
			return w.fault(TailCut, l.Size+1, "a checkpoint covers %d records, and the log ends with %d", beyond, l.Size)
		}
		r.Missing += beyond - l.Size
		r.Status, r.Detail = Unanchored, fmt.Sprintf("the records from %d to %d were lost when the store went back; the next log says so", l.Size+1, beyond)
	}
	if f, told := w.copies[l.Origin]; told {
		return w.fault(f.Fault, f.Seq, "%s", f.Detail)
	}
	w.anchored[l.Origin] = r.Anchored
	if w.newest == nil && l.Own {
		w.newest = w
	}
	w.vouch()
	w.erasing[l.Origin] = w.erased
	for _, p := range w.purged {
		if p.Log == "" {
			p.Log = l.Origin
		}
		w.purges[p.Log] = append(w.purges[p.Log], p)
	}
	if l.Cut > 0 && !slices.ContainsFunc(w.purges[l.Origin], func(p purged) bool {
		return p.at <= w.anchored[p.by] && p.Last == l.Cut && p.Hash == hex.EncodeToString(l.CutHash)
	}) && !w.purgeProved() {
		return w.fault(PurgeForged, l.Cut, "records up to %d are gone, and no signed record says that they were purged", l.Cut)
	}
	w.gapsAndAnchor()
	return nil
}

// purgeProved reports whether an export has a proof that its log was purged. Central has signed that of a copy: if its key is
// not known, the log is not anchored.
func (w *walk) purgeProved() bool {
	if w.purge == nil {
		return false
	}
	c, err := w.purge.checkpoint()
	if err != nil {
		return false
	}
	r, err := Read(w.purge.Leaf, nil)
	if err != nil || !r.purges(w.log) {
		return false
	}
	if err := w.VerifyOptions.believes(&c, w.purge.HandOvers); err != nil {
		if !w.copy {
			return false
		}
		w.report.Status, w.report.Detail = Unanchored, "the record that says that the first records were purged: "+err.Error()
	}
	return true
}

// vouch believes the keys that have signed what a signed record says of the log before this one: where the store went back to
// before a change of the key, it has lost the hand-over.
func (w *walk) vouch() {
	for _, f := range w.formers {
		if c, err := ParseCheckpoint(f.Checkpoint); err == nil && c.Origin == f.Origin && f.by == w.log.Origin && f.at <= w.report.Anchored {
			w.vouched[f.Origin] = believed(c.Keys, keysOf(w.handed))
		}
	}
}

// counts reports whether what a key has signed counts. Of a copy this store has taken only checkpoints by keys that it knew.
func (w *walk) counts(k Public) bool {
	return !w.log.Own || len(w.trusted) == 0 || w.trusted[k] || w.vouched[w.log.Origin][k]
}

// gapsAndAnchor sets the status of a log without a fault.
func (w *walk) gapsAndAnchor() {
	l, r := w.log, &w.report
	for _, g := range w.gaps {
		r.Missing += g.last - g.first + 1
	}
	switch {
	case r.Missing > 0 && r.Detail == "":
		r.Status, r.Detail = Unanchored, fmt.Sprintf("%d records are not here yet", r.Missing)
	case r.Status != Intact || !l.Own || l.Size == 0:
	case len(w.Keys) == 0:
		r.Status, r.Detail = Unanchored, "no key was given: nobody knows whether the right key has signed the checkpoints"
	case r.Anchored < l.Size && w.Now.Sub(r.AnchoredAt) > anchorsLate:
		r.Status, r.Detail = Unanchored, notSince(r.AnchoredAt, r.Anchored, "no checkpoint")
	case w.Witness != nil && r.Witnessed < l.Size && w.Now.Sub(r.WitnessedAt) > anchorsLate:
		r.Status, r.Detail = Unanchored, notSince(r.WitnessedAt, r.Witnessed, "no checkpoint of a witness")
	}
}

// notSince says since when a log is not anchored, and from which record on.
func notSince(at time.Time, size int64, what string) string {
	if size == 0 {
		return "never anchored: " + what + " covers its records"
	}
	return fmt.Sprintf("not anchored since %s: %s covers the records from %d on", at.UTC().Format(time.RFC3339), what, size+1)
}
