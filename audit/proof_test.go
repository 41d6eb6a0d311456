package audit_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
)

// prove returns the proof of a record of the rig.
func (r *rig) prove(seq int64) audit.Proof {
	r.t.Helper()
	from := r.log.Store.(audit.ProofReader)
	origin, err := r.log.Origin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	f := audit.Found{Origin: origin, Seq: seq}
	if err := from.Records(r.t.Context(), 1, seq-1, 1, func(s *audit.Stored) error { f.Leaf = slices.Clone(s.Leaf); return nil }); err != nil {
		r.t.Fatal(err)
	}
	p, err := audit.Prove(r.t.Context(), from, &f)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// judged verifies a proof twice, and fails if the two do not agree.
func (r *rig) judged(p *audit.Proof, o audit.VerifyOptions, vkey string) audit.LogReport {
	r.t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		r.t.Fatal(err)
	}
	report, err := audit.VerifyProof(text, o)
	if err != nil {
		r.t.Fatal(err)
	}
	second := audittest.Proof(text, vkey)
	if second != nil && !errors.Is(second, audittest.ErrBroken) || (second == nil) != (report.Status == audit.Intact) {
		r.t.Errorf("the first says %+v, the second %v", report.Logs[0], second)
	}
	return report.Logs[0]
}

// A proof of any record verifies without the store, and nothing in it can be changed.
func TestARecordIsProvedWithoutTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(255)
	r.grow(345)
	size := r.size()
	o := r.options()
	for _, seq := range []int64{1, 2, 255, 256, 257, 512, 513, size} {
		p := r.prove(seq)
		vkey := r.log.Key.VerifierKey(must(r.log.Origin(t.Context())))
		got := r.judged(&p, o, vkey)
		if got.Status != audit.Intact || got.Size != seq || got.Anchored != size || got.Key != vkey {
			t.Fatalf("record %d: %+v", seq, got)
		}
		other := r.prove(seq%size + 1)
		for name, change := range map[string]func(p *audit.Proof){
			"the leaf":       func(p *audit.Proof) { p.Leaf = other.Leaf },
			"the number":     func(p *audit.Proof) { p.Index = other.Index },
			"a hash":         func(p *audit.Proof) { p.Hashes[0] = slices.Concat(p.Hashes[0][1:], p.Hashes[0][:1]) },
			"a short hash":   func(p *audit.Proof) { p.Hashes[0] = p.Hashes[0][1:] },
			"a hash less":    func(p *audit.Proof) { p.Hashes = p.Hashes[1:] },
			"a hash more":    func(p *audit.Proof) { p.Hashes = append(p.Hashes, p.Hashes[0]) },
			"the number, -1": func(p *audit.Proof) { p.Index = -1 },
			"the checkpoint": func(p *audit.Proof) { p.Checkpoint = p.Checkpoint[1:] },
		} {
			bad := p
			bad.Hashes = slices.Clone(p.Hashes)
			change(&bad)
			if got := r.judged(&bad, o, vkey); got.Status != audit.Broken {
				t.Errorf("record %d, %s is another: %+v", seq, name, got)
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// A proof proves nothing to whoever has no key, or another one, or a witness that says otherwise.
func TestAProofIsBelievedByItsKey(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.grow(20)
	p := r.prove(7)
	text := must(json.Marshal(p))
	if report, err := audit.VerifyProof(text, audit.VerifyOptions{}); err != nil || report.Status != audit.Unanchored {
		t.Errorf("without a key: %+v, %v", report, err)
	}
	other := must(audit.OpenKey(filepath.Join(t.TempDir(), "other.key")))
	if got := r.judged(&p, audit.VerifyOptions{Keys: []audit.Public{other.Public()}}, other.VerifierKey("x")); got.Status != audit.Broken || got.Fault != audit.Replaced {
		t.Errorf("by another key: %+v", got)
	}
	c := must(audit.ParseCheckpoint(p.Checkpoint))
	c.Root = audit.Hash{1}
	file := audit.File(filepath.Join(t.TempDir(), "witness"))
	if err := file.Keep(t.Context(), must(c.Sign(r.log.Key))); err != nil {
		t.Fatal(err)
	}
	if report, err := audit.VerifyProof(text, audit.VerifyOptions{Keys: r.options().Keys, Witness: file}); err != nil || report.Logs[0].Fault != audit.Replaced {
		t.Errorf("another tree at the witness: %+v, %v", report, err)
	}
	for _, bad := range []string{"", "{}", `{"holdfast-audit-proof":2}`, "[]"} {
		if _, err := audit.VerifyProof([]byte(bad), r.options()); !errors.Is(err, audit.ErrProof) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := r.db.Append(t.Context(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: "last", Actor: "anna"}); err != nil {
		t.Fatal(err)
	}
	f := audit.Found{Origin: c.Origin, Seq: c.Size + 1}
	if _, err := audit.Prove(t.Context(), r.log.Store.(audit.ProofReader), &f); !errors.Is(err, audit.ErrNotSigned) {
		t.Errorf("a record that no checkpoint covers: %v", err)
	}
}
