package storetest

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

// interleaved is a store in which something happens before the next checkpoint is written.
type interleaved struct {
	audit.Store

	before func()
}

func (s *interleaved) Sign(ctx context.Context, c *rows.AuditCheckpoint, by audit.Public) error {
	if f := s.before; f != nil {
		s.before = nil
		f()
	}
	return s.Store.Sign(ctx, c, by)
}

// oldKeyEnds changes the key at one of two nodes that share a log, at the moment at which the other one signs. No checkpoint of the
// old key follows the hand-over, and both go on with the new one.
func oldKeyEnds(k *kit) {
	a := k.purger()
	defer waittest.Until(k.t, "it does not append", func() bool { return !a.Leads() })
	defer a.stop()
	here, there := filepath.Join(k.t.TempDir(), "audit.key"), filepath.Join(k.t.TempDir(), "audit.key")
	key := func(from, to string) *audit.Key {
		k.t.Helper()
		made, err := audit.OpenKey(from)
		k.ok(err)
		text, err := os.ReadFile(from)
		k.ok(err)
		k.ok(os.WriteFile(to, text, 0o600))
		return made
	}
	a.Key = key(here, there)
	theirs, err := audit.OpenKey(there)
	k.ok(err)
	ours, other := &interleaved{Store: a.Store}, &interleaved{Store: nodestore.New(k.Full, nil).Audit}
	a.Store = ours
	b := &audit.Log{Store: other, Journal: k.Full, Site: "site", Node: "node", Key: theirs}
	more := func() {
		k.t.Helper()
		k.call(k.Full, "call", 5)
		k.audited()
	}
	rotate := func() {
		k.t.Helper()
		if _, c, err := b.Rotate(k.ctx(), nil, "yearly", "anna"); err != nil || c.Signer() != b.Key.VerifierKey(c.Origin) || len(c.Keys) != 2 {
			k.t.Errorf("the change of the key ends with %+v, %v", c, err)
		}
	}
	more()
	k.ok(a.Checkpoint(k.ctx()))
	for name, change := range map[string]func(){
		"the other node signs more records before the hand-over is written": func() {
			other.before = func() {
				more()
				k.ok(a.Checkpoint(k.ctx()))
			}
			rotate()
		},
		"the key changes before what the other node signs is written": func() {
			ours.before = rotate
			more()
		},
	} {
		next := key(here+".new", there+".new")
		change()
		k.ok(a.Checkpoint(k.ctx()))
		if a.Key.Public() != next.Public() || b.Key.Public() != next.Public() {
			k.t.Errorf("%s: a node goes on with the old key", name)
		}
		more()
		k.ok(a.Checkpoint(k.ctx()))
		origin, err := a.Origin(k.ctx())
		k.ok(err)
		c, err := audit.ParseCheckpoint(k.newestNote(origin))
		k.ok(err)
		equal(k, name+": the newest was signed by", c.Signer(), next.VerifierKey(origin))
		a.verified(k)
	}
}

// oldKeyOfFormerLog goes on with another key in a store that has lost the hand-over. What the new key has signed names what the old one
// had signed, so the log before is intact, with its purge.
func oldKeyOfFormerLog(k *kit) {
	a := k.purger()
	k.call(k.Full, "old", 20)
	k.audited()
	k.pass(auditKept + time.Minute)
	k.call(k.Full, "new", 5)
	k.audited()
	a.purge(k, 21)
	k.ok(a.Checkpoint(k.ctx()))
	a.stop()
	b := k.begin(&audit.Log{Store: a.Store, Journal: k.Full, Node: "restored", Key: k.key()})
	defer b.stop()
	k.call(k.Full, "after", 3)
	k.audited()
	verdict := func() audit.Verdict {
		r, err := audit.Verify(k.ctx(), b.Store, audit.VerifyOptions{Keys: []audit.Public{b.Key.Public()}})
		k.ok(err)
		return r.Status
	}
	equal(k, "before the new key has signed", verdict(), audit.Broken)
	k.ok(b.Checkpoint(k.ctx()))
	equal(k, "after that", verdict(), audit.Intact)
}
