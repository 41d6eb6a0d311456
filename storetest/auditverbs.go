package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/audit/audittest"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
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

// erases erases values, and fails unless the counts are these and all logs are intact.
func (a *appender) erases(k *kit, store *nodestore.Audit, e audit.Erasure, want audit.Erased) {
	k.t.Helper()
	e.Reason, e.Actor = "request 4711", "anna"
	got, err := audit.Erase(k.ctx(), store, &e)
	k.ok(err)
	equal(k, fmt.Sprintf("erased by %+v", e), got, want)
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	r, err := audit.Verify(k.ctx(), store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	k.ok(err)
	equal(k, "verdict", r.Status, audit.Intact)
}

func valuesErased(k *kit) {
	a, store := k.keeper()
	defer a.stop()
	search := func(target string) {
		k.ok(k.Append(k.ctx(), holdfast.Entry{
			Kind: holdfast.Called, Code: "query-audit", Subject: "q", Actor: "anna", Outcome: holdfast.Succeeded, Detail: []byte(`{"filter":{"target":"` + target + `"}}`),
		}))
	}
	for range 150 {
		search("a.smit@example.org")
	}
	search("b.smit@example.org")
	search("T3")
	l := k.newLog(plantLog, "", 5)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	k.audited()
	k.ok(store.Hold(k.ctx(), &audit.Hold{Name: "case", Filter: audit.Filter{Target: "t3"}, Reason: "r", Actor: "anna"}))
	k.audited()
	person := audit.Erasure{Person: "A.Smit@example.org"}
	tried := person
	tried.DryRun = true
	a.erases(k, store, tried, audit.Erased{Records: 150, Values: 150})
	a.erases(k, store, person, audit.Erased{Records: 150, Values: 150})
	a.erases(k, store, person, audit.Erased{})
	a.erases(k, store, audit.Erasure{Person: "t3"}, audit.Erased{Records: 2, Values: 2, Held: 1}) // two filters: a search, and the hold
	a.erases(k, store, audit.Erasure{Person: "t3", DespiteHold: true}, audit.Erased{Records: 1, Values: 1})
	a.erases(k, store, audit.Erasure{Value: "t"}, audit.Erased{})
	a.erases(k, store, audit.Erasure{Value: "t2"}, audit.Erased{Records: 1, Values: 1})
	a.erases(k, store, audit.Erasure{Record: k.target(store, "t1").ID}, audit.Erased{Records: 1, Values: 1})
	k.copies(l, 1, 5, sites.Copy{Size: 5}) // what comes again brings no value back
	page, err := store.Query(k.ctx(), audit.Query{Filter: audit.Filter{Kind: audit.EraseKind}, Limit: 10})
	k.ok(err)
	var logs []string
	for i := range page.Records {
		r := &page.Records[i]
		var d audit.Decision
		k.ok(json.Unmarshal(r.Extra, &d))
		logs = append(logs, fmt.Sprint(strings.HasPrefix(r.Target, "holdfast/plant/"), d.Values, len(d.Records)))
		if r.Actor != "anna" || d.Reason != "request 4711" || d.Log != r.Target || bytes.Contains(r.Leaf, []byte("smit")) {
			k.t.Errorf("recorded as %+v %s", r, r.Extra)
		}
	}
	equal(k, "records of erasures", logs, []string{"true 1 1", "true 1 1", "true 1 1", "false 2 2", "false 50 50", "false 100 100"})
	// A hold that was made after the erasure had read them keeps its values.
	logsOf := map[bool]*rows.AuditLog{}
	list, err := store.Logs(k.ctx())
	k.ok(err)
	for _, l := range list {
		logsOf[l.Own] = l
	}
	if _, err := store.EraseValues(k.ctx(), logsOf[false], &audit.Step{Places: []audit.Place{{Seq: 5, Field: "target"}}, Reason: "r", Actor: "anna"}); !errors.Is(err, audit.ErrHeld) {
		k.t.Errorf("a hold was made meanwhile: %v", err)
	}
	k.target(store, "t4")
	// What goes without a record is not intact.
	k.ok(k.Side().Change(k.ctx(), side.Cost{}, func(tx side.Tx) error {
		_, err := tx.Exec(`DELETE FROM hf_audit_value WHERE log = $1`, logsOf[true].Log)
		return err
	}))
	r, err := audit.Verify(k.ctx(), store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	k.ok(err)
	equal(k, "without a record", r.Status, audit.Unanchored)
}

// lateReader is a store in which a record comes after all others were read.
type lateReader struct {
	audit.Reader

	late  func()
	until int64
}

func (r *lateReader) Records(ctx context.Context, log, after int64, limit int, yield func(s *audit.Stored) error) error {
	if log == 1 && after >= r.until && r.late != nil {
		r.late()
		r.late = nil
	}
	return r.Reader.Records(ctx, log, after, limit, yield)
}

// erasureBesideVerification erases a value, and its record comes after the verification has read the log.
func erasureBesideVerification(k *kit) {
	a, store := k.keeper()
	k.call(k.Full, "call", 3)
	k.ok(k.Append(k.ctx(), holdfast.Entry{Kind: holdfast.Called, Code: "query-audit", Subject: "q", Actor: "anna", Outcome: holdfast.Succeeded, Detail: []byte(`{"filter":{"target":"a.smit@example.org"}}`)}))
	k.audited()
	k.ok(a.Checkpoint(k.ctx()))
	a.stop()
	got, err := audit.Erase(k.ctx(), store, &audit.Erasure{Person: "a.smit@example.org", Reason: "r", Actor: "anna"})
	k.ok(err)
	equal(k, "values", got.Values, 1)
	logs, err := store.Logs(k.ctx())
	k.ok(err)
	verdict := func(late func()) audit.Verdict {
		r, err := audit.Verify(k.ctx(), &lateReader{store, late, logs[0].Size}, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
		k.ok(err)
		return r.Status
	}
	equal(k, "without its record", verdict(nil), audit.Unanchored)
	var again *appender
	equal(k, "with a late record", verdict(func() {
		again = k.begin(a.Log)
		k.audited()
	}), audit.Intact)
	again.stop()
}
