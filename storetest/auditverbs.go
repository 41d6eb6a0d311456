package storetest

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// keeper is a log with a key that records everything, as a node's does.
func (k *kit) keeper() (*appender, *nodestore.Audit) {
	k.t.Helper()
	key, err := audit.OpenKey(filepath.Join(k.t.TempDir(), "audit.key"))
	k.ok(err)
	store := nodestore.New(k.Full, nil).Audit
	d := &audit.Describer{Site: "site", Node: "node", Incarnation: store.Incarnation, Category: func(string) holdfast.Category { return "" }}
	a := k.begin(&audit.Log{Store: store, Journal: k.Full, Key: key, Describe: d.Describe})
	waittest.Until(k.t, "the log follows", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 && a.Leads() })
	return a, store
}

// target returns the record whose target is this.
func (k *kit) target(store *nodestore.Audit, target string) *audit.Found {
	k.t.Helper()
	page, err := store.Query(k.ctx(), audit.Query{Filter: audit.Filter{Target: target}, Limit: 2})
	k.ok(err)
	if len(page.Records) != 1 {
		k.t.Fatalf("%d records of %s, want one", len(page.Records), target)
	}
	return &page.Records[0]
}

func copyProved(k *kit) {
	a, store := k.keeper()
	defer a.stop()
	l := k.newLog(plantLog, "", 12)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	k.copies(l, 8, 12, sites.Copy{Size: 12, Gaps: []sites.Range{{First: 6, Last: 7}}})
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	first := k.target(store, "t7") // after a gap nobody knows the hash before it
	if _, err := audit.Prove(k.ctx(), store, first); !errors.Is(err, audit.ErrNoBatch) {
		k.t.Errorf("the record after a gap: %v", err)
	}
	k.copies(l, 6, 7, sites.Copy{Size: 12})
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	for i := range l.leaves {
		f := k.target(store, "t"+string(rune('0'+i%10)))
		if i >= 10 {
			f = k.target(store, "t1"+string(rune('0'+i%10)))
		}
		p, err := audit.Prove(k.ctx(), store, f)
		k.ok(err)
		equal(k, "proved", p.Copy.Seq, int64(i+1))
		a.judge(k, &p, audit.Intact)
		bad := *p.Copy
		bad.Before = slices.Concat(bad.Before[1:], bad.Before[:1])
		for _, changed := range []*audit.CopyProof{
			func() *audit.CopyProof { c := *p.Copy; c.Seq++; return &c }(),
			func() *audit.CopyProof { c := *p.Copy; c.Leaf = l.leaves[(i+1)%len(l.leaves)].Leaf; return &c }(),
			func() *audit.CopyProof { c := *p.Copy; c.Log += "x"; return &c }(),
			func() *audit.CopyProof { c := *p.Copy; c.Following = append(c.Following, c.Before); return &c }(),
		} {
			other := p
			other.Copy = changed
			a.judge(k, &other, audit.Broken)
		}
		if f.Seq > 1 {
			other := p
			other.Copy = &bad
			a.judge(k, &other, audit.Broken)
		}
	}
}

// judge verifies a proof twice.
func (a *appender) judge(k *kit, p *audit.Proof, want audit.Verdict) {
	k.t.Helper()
	text, err := json.Marshal(p)
	k.ok(err)
	report, err := audit.VerifyProof(text, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	k.ok(err)
	equal(k, "verdict", report.Status, want)
	origin, err := a.Origin(k.ctx())
	k.ok(err)
	if err := audittest.Proof(text, a.Key.VerifierKey(origin)); (err == nil) != (want == audit.Intact) || err != nil && !errors.Is(err, audittest.ErrBroken) {
		k.t.Errorf("the second verifier: %v, want %s", err, want)
	}
}
