package audit

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/rows"
)

// Proof shows to whoever knows the verifier key of a log that a record is in it. It has no personal values.
type Proof struct {
	Version    int      `json:"holdfast-audit-proof"` // 1
	Leaf       []byte   `json:"leaf"`                 // the record as it is stored
	Index      int64    `json:"index"`                // of the leaf in the tree: one less than the number of the record
	Size       int64    `json:"size"`                 // records that the tree has
	Hashes     [][]byte `json:"hashes"`               // that lead from the leaf to the root, as RFC 6962 has them
	Checkpoint string   `json:"checkpoint"`           // of that size, signed
	// HandOvers are the checkpoints by which the log's keys handed over to the next, the oldest first.
	HandOvers []string `json:"handOvers,omitempty"`
	// Copy is what is proved of a record in another node's log: then Leaf is the record that says up to
	// which hash this node took that log.
	Copy *CopyProof `json:"copy,omitempty"`
}

// CopyProof leads from a record of another node's log to the end of the batch in which it was taken.
type CopyProof struct {
	Log       string   `json:"log"`
	Seq       int64    `json:"seq"`
	Leaf      []byte   `json:"leaf"`
	Before    []byte   `json:"before"`              // chain hash before the record
	Following [][]byte `json:"following,omitempty"` // hashes of the leaves that follow in the batch
}

// Reasons why a proof cannot be made.
var (
	// ErrNotSigned means that no checkpoint covers the record yet.
	ErrNotSigned = errors.New("no signed checkpoint covers the record yet")
	// ErrNoBatch means that the own log no longer has the record of the batch, or the copy lacks the record before.
	ErrNoBatch = errors.New("what links the record to this node's log is not here")
)

// ProofReader is what proofs are made from.
type ProofReader interface {
	Records
	SignedReader
}

// Prove makes the proof of a record that Records has found. ErrNotSigned, ErrNoBatch: it cannot be made now.
func Prove(ctx context.Context, from ProofReader, f *Found) (p Proof, err error) {
	logs, err := from.Logs(ctx)
	if err != nil {
		return p, err
	}
	log, err := logOf(logs, f.Origin)
	if err == nil && !log.Own {
		if p.Copy, f, err = proveCopy(ctx, from, logs, log, f); err == nil {
			log, err = logOf(logs, f.Origin)
		}
	}
	var newest *rows.AuditCheckpoint
	if err == nil {
		newest, err = from.Newest(ctx, log.Origin)
	}
	if err == nil && (newest == nil || newest.Size < f.Seq) {
		err = ErrNotSigned
	}
	if err != nil {
		return p, fmt.Errorf("prove record %d of %s: %w", f.Seq, f.Origin, err)
	}
	p.Version, p.Leaf, p.Index, p.Size, p.Checkpoint = 1, f.Leaf, f.Seq-1, newest.Size, newest.Note
	path, err := tlog.ProveRecord(p.Size, p.Index, tilesOf(ctx, from, log.Log))
	if err != nil {
		return p, fmt.Errorf("prove record %d of %s: %w", f.Seq, f.Origin, err)
	}
	for _, h := range path {
		p.Hashes = append(p.Hashes, bytes.Clone(h[:]))
	}
	p.HandOvers, err = handOvers(ctx, from, logs)
	return p, err
}

func logOf(logs []*rows.AuditLog, origin string) (*rows.AuditLog, error) {
	i := slices.IndexFunc(logs, func(l *rows.AuditLog) bool { return l.Origin == origin })
	if i < 0 {
		return nil, fmt.Errorf("audit log %s: %w", origin, holdfast.ErrNotFound)
	}
	return logs[i], nil
}

// proveCopy returns the way from a record of a copy to the end of its batch, and the own record of the batch.
func proveCopy(ctx context.Context, from ProofReader, logs []*rows.AuditLog, log *rows.AuditLog, f *Found) (*CopyProof, *Found, error) {
	b, own, err := batchOf(ctx, from, logs, f)
	if err != nil {
		return nil, f, err
	}
	p := &CopyProof{Log: f.Origin, Seq: f.Seq, Leaf: f.Leaf, Following: make([][]byte, 0, b.Last-f.Seq)}
	switch f.Seq - 1 {
	case 0:
		p.Before = make([]byte, hashSize)
	case log.Cut:
		p.Before = log.CutHash
	}
	if err := from.Records(ctx, log.Log, f.Seq-2, int(b.Last-f.Seq)+2, func(s *Stored) error {
		switch {
		case s.Seq == f.Seq-1:
			p.Before = bytes.Clone(s.Hash)
		case s.Seq > f.Seq && s.Seq <= b.Last:
			h := LeafHash(s.Leaf)
			p.Following = append(p.Following, h[:])
		}
		return nil
	}); err != nil {
		return nil, f, err
	}
	if p.Before == nil || f.Seq+int64(len(p.Following)) != b.Last {
		return nil, f, ErrNoBatch
	}
	return p, own, nil
}

// batchNear is how far the time of a batch's record may be from when the batch was stored.
const batchNear = time.Minute

// batchOf finds the own record of the batch in which a record was taken. Where clocks went wrong it looks at all.
func batchOf(ctx context.Context, from ProofReader, logs []*rows.AuditLog, f *Found) (b batch, own *Found, err error) {
	near := Query{Filter: Filter{Target: f.Origin, Kind: Copied, From: f.Stored.Add(-batchNear), Until: f.Stored.Add(batchNear)}, Limit: MaxPage}
	for _, q := range []Query{near, {Filter: Filter{Target: f.Origin, Kind: Copied}, Limit: MaxPage}} {
		for more := true; more; more = q.After != "" {
			page, err := from.Query(ctx, q)
			if err != nil {
				return b, nil, err
			}
			for i := range page.Records {
				own := &page.Records[i]
				l, err := logOf(logs, own.Origin)
				if err == nil && l.Own && json.Unmarshal(own.Extra, &b) == nil && b.Log == f.Origin && b.First <= f.Seq && f.Seq <= b.Last {
					return b, own, nil
				}
			}
			q.After = page.Next
		}
	}
	return b, nil, ErrNoBatch
}

// handOvers returns the checkpoints of own logs that two keys have signed, the oldest first.
func handOvers(ctx context.Context, from Reader, logs []*rows.AuditLog) (list []string, err error) {
	const some = 1000
	for _, l := range logs {
		for size, n := int64(-1), some; l.Own && n == some; {
			n = 0
			if err := from.Checkpoints(ctx, l.Origin, size, some, func(c *rows.AuditCheckpoint) error {
				if size, n = c.Size, n+1; isHandOver(c.Note) {
					list = append(list, c.Note)
				}
				return nil
			}); err != nil {
				return nil, fmt.Errorf("read the checkpoints of %s: %w", l.Origin, err)
			}
		}
	}
	return list, nil
}

// isHandOver reports whether a note names two keys, without checking it.
func isHandOver(note string) bool { return strings.Count(note, "\nkey ") > 1 }

// ErrProof means that a text is not a proof.
var ErrProof = errors.New("not a proof of an audit record")

// VerifyProof verifies a proof by the keys of o, and by the checkpoints of the same size that its witness has.
// Verdicts are those of Verify; without a key the result is Unanchored at best. A text that is no proof is an ErrProof.
func VerifyProof(text []byte, o VerifyOptions) (Report, error) {
	var p Proof
	if err := json.Unmarshal(text, &p); err != nil || p.Version != 1 {
		return Report{}, fmt.Errorf("%w, or one of a later version: %w", ErrProof, err)
	}
	r := LogReport{Own: true, Status: Broken, First: p.Index + 1, Size: p.Index + 1, Record: p.Leaf, Seq: p.Index + 1, Fault: Changed}
	c, err := p.checkpoint()
	if err == nil {
		r.Origin, r.Anchored, r.AnchoredAt, r.Key = c.Origin, c.Size, c.Time, c.Signer()
		err = p.batch()
	}
	if err == nil {
		r.Fault = Replaced
		err = o.believes(&c, p.HandOvers)
	}
	switch {
	case err != nil:
		r.Detail = err.Error()
	case len(o.Keys) == 0:
		r.Status, r.Fault, r.Seq, r.Detail = Unanchored, "", 0, "no key was given: nobody knows whether the right key has signed the checkpoint"
	default:
		r.Status, r.Fault, r.Seq = Intact, "", 0
	}
	report := Report{Status: r.Status, Logs: []LogReport{r}}
	if p.Copy != nil {
		report.Logs = append(report.Logs, LogReport{Origin: p.Copy.Log, Status: r.Status, First: p.Copy.Seq, Size: p.Copy.Seq, Record: p.Copy.Leaf})
	}
	return report, nil
}

// checkpoint checks that the leaf is in the tree that the checkpoint has signed.
func (p *Proof) checkpoint() (c Checkpoint, err error) {
	if c, err = ParseCheckpoint(p.Checkpoint); err != nil {
		return c, err
	}
	if _, err = Read(p.Leaf, nil); err != nil {
		return c, err
	}
	path := make(tlog.RecordProof, len(p.Hashes))
	for i, h := range p.Hashes {
		if copy(path[i][:], h) != len(h) || len(h) != hashSize {
			return c, errors.New("a hash has another length")
		}
	}
	if p.Index < 0 || p.Index >= c.Size || p.Size != c.Size {
		return c, errors.New("the checkpoint is of another tree")
	}
	if err := tlog.CheckRecord(path, c.Size, c.Root, p.Index, LeafHash(p.Leaf)); err != nil {
		return c, errors.New("the record is not in the tree that was signed")
	}
	return c, nil
}

// batch checks that a copied record leads to the hash that the own record names.
func (p *Proof) batch() error {
	if p.Copy == nil {
		return nil
	}
	own, err := Read(p.Leaf, nil)
	if err != nil {
		return err
	}
	var b batch
	if own.Kind != Copied || json.Unmarshal(own.Extra, &b) != nil || b.Log != p.Copy.Log || len(p.Copy.Before) != hashSize {
		return errors.New("the record in the tree does not say that it took records of that log")
	}
	if _, err := Read(p.Copy.Leaf, nil); err != nil {
		return err
	}
	seq := p.Copy.Seq
	head := ChainHash(seq, Hash(p.Copy.Before), LeafHash(p.Copy.Leaf))
	for _, h := range p.Copy.Following {
		if seq++; len(h) != hashSize {
			return errors.New("a hash has another length")
		}
		head = ChainHash(seq, head, Hash(h))
	}
	if seq != b.Last || hex.EncodeToString(head[:]) != b.Hash {
		return errors.New("the copied record does not lead to the hash of its batch")
	}
	return nil
}

// believes checks who has signed a checkpoint, and that the witness has no other of its size.
func (o *VerifyOptions) believes(c *Checkpoint, handOvers []string) error {
	trusted := map[Public]bool{}
	for _, k := range o.Keys {
		trusted[k] = true
	}
	for range handOvers { // whatever their order
		for _, text := range handOvers {
			if h, err := ParseCheckpoint(text); err == nil && slices.ContainsFunc(h.Keys, func(k Public) bool { return trusted[k] }) {
				for _, k := range h.Keys {
					trusted[k] = true
				}
			}
		}
	}
	if len(trusted) > 0 && !slices.ContainsFunc(c.Keys, func(k Public) bool { return trusted[k] }) {
		return errors.New("another key has signed the checkpoint")
	}
	if o.Witness == nil {
		return nil
	}
	return o.Witness.Each(func(text string) error {
		if k, err := ParseCheckpoint(text); err == nil && k.Origin == c.Origin && k.Size == c.Size && k.Root != c.Root {
			return errors.New("the witness has another checkpoint of this size")
		}
		return nil
	})
}
