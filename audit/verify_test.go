package audit_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// rig is a log in a SQLite file.
type rig struct {
	t     *testing.T
	db    *sqlite.DB
	log   *audit.Log
	calls int
}

func newRig(t *testing.T, before ...func(l *audit.Log)) *rig {
	t.Helper()
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), filepath.Join(dir, "holdfast.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	key, err := audit.OpenKey(filepath.Join(dir, "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	l := &audit.Log{
		Store: nodestore.New(db, nil).Audit, Journal: db, Describe: describe, Site: "site", Node: "node", Key: key,
		Witness: audit.File(filepath.Join(dir, "witness")),
	}
	for _, f := range before {
		f(l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{t: t, db: db, log: l}
	waittest.Until(t, "the log follows", func() bool { list, err := db.Followers(t.Context()); return err == nil && len(list) == 1 })
	return r
}

func describe(_ context.Context, page []holdfast.Entry) (list []audit.Record, err error) {
	for i := range page {
		e := &page[i]
		list = append(list, audit.Record{
			ID: holdfast.ID(fmt.Sprint("call-", e.Seq)), Occurred: e.At, Channel: audit.APIInbound, Kind: audit.APICall, Status: audit.Success,
			Site: "site", Node: "node", Actor: e.Actor, Target: e.Subject, Personal: []string{"target"},
		})
	}
	return list, nil
}

// grow appends records and signs a checkpoint.
func (r *rig) grow(n int) {
	r.t.Helper()
	r.add(n)
	if err := r.log.Checkpoint(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// add appends records.
func (r *rig) add(n int) {
	r.t.Helper()
	for n > 0 {
		some := make([]holdfast.Entry, min(n, holdfast.MaxEntries))
		for i := range some {
			r.calls++
			some[i] = holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: fmt.Sprint("target-", r.calls), Actor: "anna"}
		}
		if err := r.db.Append(r.t.Context(), some...); err != nil {
			r.t.Fatal(err)
		}
		n -= len(some)
	}
	waittest.Until(r.t, "all is in the log", func() bool { list, err := r.db.Followers(r.t.Context()); return err == nil && list[0].Unread.IsZero() })
}

func (r *rig) options() audit.VerifyOptions {
	return audit.VerifyOptions{Keys: []audit.Public{r.log.Key.Public()}, Witness: r.log.Witness}
}

// shelf is a Reader of what was read from a store, with which a test can do what it likes.
type shelf struct {
	queries // nil

	log         rows.AuditLog
	records     []audit.Stored
	values      map[int64][]audit.Value
	tiles       map[[2]int64][]byte
	checkpoints []*rows.AuditCheckpoint
}

func (r *rig) shelf() *shelf {
	r.t.Helper()
	ctx, from := r.t.Context(), r.log.Store
	logs, err := from.Logs(ctx)
	if err != nil || len(logs) != 1 {
		r.t.Fatal(logs, err)
	}
	s := &shelf{log: *logs[0], values: map[int64][]audit.Value{}, tiles: map[[2]int64][]byte{}}
	err = from.Records(ctx, 1, 0, 1<<30, func(k *audit.Stored) error {
		s.records = append(s.records, audit.Stored{Seq: k.Seq, Leaf: bytes.Clone(k.Leaf), Hash: bytes.Clone(k.Hash)})
		return nil
	})
	if err == nil {
		err = from.Values(ctx, 1, 1, 1<<30, func(seq int64, v audit.Value) error {
			s.values[seq] = append(s.values[seq], v)
			return nil
		})
	}
	if err == nil {
		err = from.Checkpoints(ctx, s.log.Origin, 0, 1<<30, func(c *rows.AuditCheckpoint) error {
			s.checkpoints = append(s.checkpoints, c)
			return nil
		})
	}
	for level, n := int64(0), s.log.Size; n > 0 && err == nil; level, n = level+1, n/256 {
		for number := int64(0); number <= n/256; number++ {
			if s.tiles[[2]int64{level, number}], err = from.Tile(ctx, 1, level, number); err != nil {
				break
			}
		}
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (s *shelf) clone() *shelf {
	c := *s
	c.records, c.checkpoints = slices.Clone(s.records), slices.Clone(s.checkpoints)
	c.tiles = map[[2]int64][]byte{}
	for k, v := range s.tiles {
		c.tiles[k] = bytes.Clone(v)
	}
	c.log.Head = bytes.Clone(s.log.Head)
	return &c
}

func (s *shelf) Logs(context.Context) ([]*rows.AuditLog, error) {
	l := s.log
	return []*rows.AuditLog{&l}, nil
}

func (s *shelf) Last(context.Context, int64) (int64, error) {
	if len(s.records) == 0 {
		return 0, nil
	}
	return s.records[len(s.records)-1].Seq, nil
}

func (s *shelf) Records(_ context.Context, _, after int64, limit int, yield func(r *audit.Stored) error) error {
	for i := range s.records {
		r := s.records[i]
		if r.Seq <= after {
			continue
		}
		if limit--; limit < 0 {
			return nil
		}
		if err := yield(&r); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) Values(_ context.Context, _, first, last int64, yield func(seq int64, v audit.Value) error) error {
	for seq := first; seq <= min(last, s.log.Size+10); seq++ {
		for _, v := range s.values[seq] {
			if err := yield(seq, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shelf) Tile(_ context.Context, _, level, number int64) ([]byte, error) {
	return s.tiles[[2]int64{level, number}], nil
}

func (s *shelf) Gaps(context.Context, int64, func(first, last int64, hash audit.Hash) error) error {
	return nil
}

func (s *shelf) Checkpoints(_ context.Context, _ string, size int64, limit int, yield func(c *rows.AuditCheckpoint) error) error {
	for _, c := range s.checkpoints {
		if c.Size > size && limit > 0 {
			limit--
			if err := yield(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// forge makes everything from record seq on fit together again, as somebody can who may write the
// database, and deletes the checkpoints that stand in it.
func (s *shelf) forge(seq int64) {
	var head audit.Hash
	for i := range s.records {
		r := &s.records[i]
		leaf := audit.LeafHash(r.Leaf)
		r.Seq = int64(i + 1)
		head = audit.ChainHash(r.Seq, head, leaf)
		if r.Seq >= seq {
			r.Hash = bytes.Clone(head[:])
		}
	}
	s.log.Size, s.log.Head = int64(len(s.records)), bytes.Clone(head[:])
	hashes := make([][]byte, len(s.records))
	for i := range s.records {
		h := audit.LeafHash(s.records[i].Leaf)
		hashes[i] = h[:]
	}
	s.tiles = map[[2]int64][]byte{}
	for level := int64(0); len(hashes) > 0; level++ {
		var above [][]byte
		for i := 0; i < len(hashes); i += 256 {
			part := hashes[i:min(i+256, len(hashes))]
			s.tiles[[2]int64{level, int64(i / 256)}] = bytes.Join(part, nil)
			if len(part) == 256 {
				above = append(above, audit.Subtree(bytes.Join(part, nil)))
			}
		}
		hashes = above
	}
	s.checkpoints = nil
}

// tamperings are what somebody does to a log at record seq.
var tamperings = map[string]struct {
	do   func(s *shelf, seq int64)
	want audit.Fault
}{
	"change": {func(s *shelf, seq int64) {
		r := &s.records[seq-1]
		r.Leaf = bytes.Replace(r.Leaf, []byte(`"status":"Success"`), []byte(`"status":"Refused"`), 1)
	}, audit.Changed},
	"insert": {func(s *shelf, seq int64) {
		leaf := bytes.Replace(s.records[seq-1].Leaf, []byte(`"Success"`), []byte(`"Failed"`), 1)
		s.records = slices.Insert(s.records, int(seq-1), audit.Stored{Leaf: leaf, Hash: make([]byte, 32)})
		for i := range s.records {
			s.records[i].Seq = int64(i + 1)
		}
	}, audit.Inserted},
	"delete": {func(s *shelf, seq int64) { s.records = slices.Delete(s.records, int(seq-1), int(seq)) }, audit.Removed},
	"delete and number": {func(s *shelf, seq int64) {
		s.records = slices.Delete(s.records, int(seq-1), int(seq))
		for i := range s.records {
			s.records[i].Seq = int64(i + 1)
		}
	}, audit.Removed},
	"swap": {func(s *shelf, seq int64) {
		other := (seq+int64(len(s.records))/2)%int64(len(s.records)) + 1
		a, b := &s.records[min(seq, other)-1], &s.records[max(seq, other)-1]
		a.Leaf, b.Leaf = b.Leaf, a.Leaf
	}, audit.Changed},
	"replay": {func(s *shelf, seq int64) {
		again := s.records[(seq*7)%int64(len(s.records))]
		s.records = slices.Insert(s.records, int(seq-1), again)
		for i := range s.records {
			s.records[i].Seq = int64(i + 1)
		}
	}, audit.Inserted},
	"cut head": {func(s *shelf, seq int64) { s.records = slices.Delete(s.records, 0, int(seq)) }, audit.HeadCut},
	"cut tail": {func(s *shelf, seq int64) { s.records = s.records[:seq-1] }, audit.TailCut},
	"cut tail, and the head of the log": {func(s *shelf, seq int64) {
		s.records = s.records[:seq-1]
		s.forge(seq)
	}, audit.TailCut},
	"forge": {func(s *shelf, seq int64) {
		r := &s.records[seq-1]
		r.Leaf = bytes.Replace(r.Leaf, []byte(`"status":"Success"`), []byte(`"status":"Refused"`), 1)
		s.forge(seq)
	}, audit.Replaced},
	"forge a purge": {func(s *shelf, seq int64) {
		s.log.Cut, s.log.CutHash = seq, bytes.Clone(s.records[seq-1].Hash)
		s.records = s.records[seq:]
	}, audit.PurgeForged},
}

var (
	tamperRecords = flag.Int("tamperrecords", 1030, "how many records the log has in which TestTamperingIsNamed tampers")
	tamperPlaces  = flag.Int("tamperplaces", 30, "at how many places it does; as many as records: at each")
)

// Each tampering is named, at the record where it was done.
func TestTamperingIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var signedAt []int64
	parts := []int{255, 300, 45, 400, 30}
	for left := *tamperRecords - 1030; left > 0; left -= 1000 {
		parts = append(parts, min(left, 1000))
	}
	for _, n := range parts {
		r.grow(n)
		signedAt = append(signedAt, r.size())
	}
	whole := r.shelf()
	size := whole.log.Size
	if report, err := audit.Verify(t.Context(), whole, r.options()); err != nil || report.Status != audit.Intact {
		t.Fatalf("before: %+v, %v", report, err)
	}
	places := []int64{1, 2, size - 1, size, 255, 256, 257, 512, 513}
	for _, at := range signedAt {
		places = append(places, at-1, at, min(at+1, size))
	}
	random := rand.New(rand.NewPCG(14, 42))
	for len(places) < min(*tamperPlaces, *tamperRecords-1) {
		places = append(places, 1+random.Int64N(size))
	}
	if *tamperPlaces >= *tamperRecords {
		places = places[:0]
		for seq := int64(1); seq <= size; seq++ {
			places = append(places, seq)
		}
	}
	for name, c := range tamperings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, seq := range places {
				s := whole.clone()
				c.do(s, seq)
				want, at := expected(name, c.want, seq, size, signedAt)
				report, err := audit.Verify(t.Context(), s, r.options())
				if err != nil || len(report.Logs) != 1 {
					t.Fatalf("at %d: %+v, %v", seq, report, err)
				}
				if got := report.Logs[0]; report.Status != audit.Broken || got.Fault != want || got.Seq != at {
					t.Errorf("at %d of %d: %s at %d (%s), want %s at %d", seq, size, got.Fault, got.Seq, got.Detail, want, at)
				}
			}
		})
	}
}

// expected returns what is to be said of a tampering, which at the ends of a log may be another one.
func expected(name string, fault audit.Fault, seq, size int64, signedAt []int64) (audit.Fault, int64) {
	switch name {
	case "delete":
		if seq == 1 {
			return audit.HeadCut, 1
		}
		if seq == size {
			return audit.TailCut, size
		}
	case "delete and number":
		if seq == size {
			return audit.TailCut, size
		}
	case "swap":
		return fault, min(seq, (seq+size/2)%size+1)
	case "cut head":
		if seq == size {
			return audit.TailCut, 1
		}
		return fault, 1
	case "forge":
		good := int64(0)
		for _, at := range signedAt {
			if at < seq {
				good = at
			}
		}
		return fault, good + 1
	}
	return fault, seq
}

func (r *rig) size() int64 {
	r.t.Helper()
	logs, err := r.log.Store.Logs(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return logs[0].Size
}

// Case A8: who rebuilds the whole chain and signs it with a key of their own is not believed.
func TestAForgedLogWithAKeyOfItsOwnIsNotBelieved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(300)
	s := r.shelf()
	o := r.options()
	other, err := audit.OpenKey(filepath.Join(t.TempDir(), "other.key"))
	if err != nil {
		t.Fatal(err)
	}
	o.Keys = []audit.Public{other.Public()}
	report, err := audit.Verify(t.Context(), s, o)
	if err != nil || report.Status == audit.Intact {
		t.Errorf("by another key: %+v, %v", report, err)
	}
	o.Keys = nil
	if report, err = audit.Verify(t.Context(), s, o); err != nil || report.Status != audit.Unanchored {
		t.Errorf("without a key: %+v, %v", report, err)
	}
	o = r.options()
	o.Now = time.Now().Add(time.Hour)
	s.checkpoints, o.Witness = nil, nil
	if report, err = audit.Verify(t.Context(), s, o); err != nil || report.Status != audit.Unanchored || report.Logs[0].Anchored != 0 {
		t.Errorf("without a checkpoint: %+v, %v", report, err)
	}
}

// A log that was cut and goes on (case A4) signs no checkpoint that contradicts an earlier one.
func TestNothingIsSignedThatContradictsAnEarlierCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(20)
	before, err := os.ReadFile(string(r.log.Witness.(audit.File)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := audit.ParseCheckpoint(string(before))
	if err != nil {
		t.Fatal(err)
	}
	c.Size, c.Root = c.Size+1, audit.Hash{1}
	forged, err := c.Sign(r.log.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.log.Store.Sign(t.Context(), &rows.AuditCheckpoint{Origin: c.Origin, Size: c.Size, Root: c.Root[:], Note: forged, Seen: rows.Now}, r.log.Key.Public()); err != nil {
		t.Fatal(err)
	}
	if err := r.log.Checkpoint(t.Context()); err == nil {
		t.Error("a log that is shorter than its checkpoint was signed")
	}
	report, err := audit.Verify(t.Context(), r.log.Store, r.options())
	if err != nil || report.Status != audit.Broken || report.Logs[0].Fault != audit.TailCut || report.Logs[0].Seq != c.Size {
		t.Errorf("%+v, %v", report, err)
	}
}

// away is a witness that cannot be reached for one call.
type away struct {
	audit.Witness

	calls int
}

func (a *away) Keep(ctx context.Context, note string) error {
	if a.calls++; a.calls == 2 {
		return errors.New("not mounted")
	}
	return a.Witness.Keep(ctx, note)
}

// What a witness could not keep it gets later, also if nothing new has happened: without it, a cut of
// those records and their checkpoint would not show.
func TestAWitnessGetsWhatItMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.log.Witness = &away{Witness: r.log.Witness}
	r.grow(5)
	if err := r.db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: "last", Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is in the log", func() bool { list, err := r.db.Followers(t.Context()); return err == nil && list[0].Unread.IsZero() })
	if err := r.log.Checkpoint(t.Context()); err == nil {
		t.Fatal("nobody is told that the witness is away")
	}
	if err := r.log.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := 0
	if err := r.log.Witness.Each(func(string) error { kept++; return nil }); err != nil || kept != 2 {
		t.Errorf("the witness has %d checkpoints, %v; want 2", kept, err)
	}
}

// unread is a witness that cannot be read for one call.
type unread struct {
	audit.Witness

	fails bool
}

func (u *unread) Each(yield func(note string) error) error {
	if u.fails {
		return errors.New("not mounted")
	}
	return u.Witness.Each(yield)
}

// A witness that is away keeps nothing from being signed. What it has counts as soon as it is back.
func TestALogIsSignedWithoutItsWitness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kept := r.log.Witness
	r.grow(5)
	r.log.Witness = nil
	r.grow(5)
	r.log = &audit.Log{Store: r.log.Store, Journal: r.log.Journal, Site: "site", Node: "node", Key: r.log.Key, Witness: &unread{kept, true}}
	if err := r.log.Checkpoint(t.Context()); err == nil || r.log.Unkept() != 1 {
		t.Errorf("%v, and %d times it was away", err, r.log.Unkept())
	}
	if err := r.db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: "last", Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it is in the log", func() bool { list, err := r.db.Followers(t.Context()); return err == nil && list[0].Unread.IsZero() })
	if err := r.log.Checkpoint(t.Context()); err == nil {
		t.Error("nobody is told that the witness is away")
	}
	if c := r.shelf().checkpoints; c[len(c)-1].Size != r.size() {
		t.Errorf("%d of %d records are signed", c[len(c)-1].Size, r.size())
	}
	r.log.Witness = kept
	if err := r.log.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := int64(0)
	if err := kept.Each(func(note string) error {
		c, err := audit.ParseCheckpoint(note)
		last = c.Size
		return err
	}); err != nil || last != r.size() {
		t.Errorf("the witness has %d of %d records, %v", last, r.size(), err)
	}
}
