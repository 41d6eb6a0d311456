package storetest

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

const auditKept = 20 * time.Minute

// purger is a log with a key, which appends.
func (k *kit) purger() *appender {
	k.t.Helper()
	key, err := audit.OpenKey(filepath.Join(k.t.TempDir(), "audit.key"))
	k.ok(err)
	a := k.begin(&audit.Log{Store: &dyingStore{Store: nodestore.New(k.Full, nil).Audit}, Journal: k.Full, Key: key})
	waittest.Until(k.t, "the log follows", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 && a.Leads() })
	return a
}

// dyingStore is one that a call does not reach, as if the process died before it.
type dyingStore struct {
	audit.Store

	dies string
}

var errDied = errors.New("died")

func (s *dyingStore) Cut(ctx context.Context, log, last int64, hash audit.Hash, newest rows.Instant) (bool, error) {
	if s.dies == "cut" {
		return false, errDied
	}
	return s.Store.Cut(ctx, log, last, hash, newest)
}

func (s *dyingStore) Sweep(ctx context.Context, log, cut int64) (int64, error) {
	if s.dies == "sweep" {
		return 0, errDied
	}
	return s.Store.Sweep(ctx, log, cut)
}

// verified fails unless all logs are intact.
func (a *appender) verified(k *kit) {
	k.t.Helper()
	r, err := audit.Verify(k.ctx(), a.Store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	if err != nil || r.Status == audit.Broken {
		k.t.Fatalf("verify: %+v, %v", r, err)
	}
}

// left returns the numbers of the records that a log has.
func (k *kit) left(log int64) (list []int64) {
	k.t.Helper()
	a := nodestore.New(k.Full, nil).Audit
	k.ok(a.Records(k.ctx(), log, 0, 1<<20, func(r *audit.Stored) error { list = append(list, r.Seq); return nil }))
	var values []int64
	k.ok(a.Values(k.ctx(), log, 0, 1<<40, func(seq int64, _ audit.Value) error { values = append(values, seq); return nil }))
	for _, seq := range values {
		if !slices.Contains(list, seq) {
			k.t.Errorf("record %d is gone, and its value is there", seq)
		}
	}
	return list
}

func (a *appender) purge(k *kit, want int64) {
	k.t.Helper()
	if gone, err := a.Purge(k.ctx(), auditKept); err != nil || gone != want {
		k.t.Fatalf("purged %d, %v, want %d", gone, err, want)
	}
	a.verified(k)
}

func purgeTakes(k *kit) {
	a := k.purger()
	defer a.stop()
	k.call(k.Full, "old", 300)
	k.audited()
	l := k.newLog(plantLog, "", 9)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	k.copies(l, 8, 9, sites.Copy{Size: 9, Gaps: []sites.Range{{First: 6, Last: 7}}})
	k.audited()
	a.purge(k, 0)
	k.pass(auditKept + time.Minute)
	k.call(k.Full, "new", 3)
	k.audited()
	held := int64(200)
	a.Held = func(string) int64 { return held }
	a.purge(k, 200+7)
	if got := k.left(2); len(got) != 0 {
		k.t.Errorf("the copy has %d", got)
	}
	k.copies(l, 6, 9, sites.Copy{Size: 9}) // the gap went, and nothing comes back
	a.Held = nil
	a.purge(k, 1+300-200)
	if got := k.left(1); got[0] != 302 {
		k.t.Errorf("left %d", got)
	}
	// The records of the first purges go, too, and the copy is intact all the same.
	k.pass(auditKept + time.Minute)
	a.purge(k, 3+2+2) // and what the copy's purge said is said again
	k.pass(auditKept + time.Minute)
	a.purge(k, 2)
}

func purgeGoesOn(k *kit) {
	a := k.purger()
	defer a.stop()
	k.call(k.Full, "old", 600)
	k.audited()
	k.pass(auditKept + time.Minute)
	k.call(k.Full, "new", 1)
	k.audited()
	s := a.Store.(*dyingStore)                       //nolint:forcetypeassert // the purger's
	for _, s.dies = range []string{"cut", "sweep"} { // on record; then cut
		if _, err := a.Purge(k.ctx(), auditKept); err == nil {
			k.t.Fatal("it has not died")
		}
		a.verified(k)
	}
	s.dies = ""
	a.purge(k, 601)
}

// purgingReader is a store in which a purge happens when the own log was read.
type purgingReader struct {
	audit.Reader

	purge func()
}

func (r *purgingReader) Last(ctx context.Context, log int64) (int64, error) {
	if log == 2 && r.purge != nil {
		r.purge()
		r.purge = nil
	}
	return r.Reader.Last(ctx, log)
}

func purgeBesideVerification(k *kit) {
	a := k.purger()
	defer a.stop()
	l := k.newLog(plantLog, "", 9)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	k.audited()
	k.pass(auditKept + time.Minute)
	k.copies(l, 6, 9, sites.Copy{Size: 9})
	k.call(k.Full, "new", 1)
	k.audited()
	verify := func(meanwhile func()) audit.Verdict {
		r, err := audit.Verify(k.ctx(), &purgingReader{a.Store, meanwhile}, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
		k.ok(err)
		return r.Status
	}
	equal(k, "beside a purge", verify(func() { a.purge(k, 5+1) }), audit.Intact)
	equal(k, "beside one that nobody has recorded", verify(func() {
		k.ok(k.Side().Change(k.ctx(), side.Cost{}, func(tx side.Tx) error {
			_, err := tx.Exec(`UPDATE hf_audit_log SET cut = 7, cut_hash = (SELECT hash FROM hf_audit WHERE log = 2 AND seq = 7) WHERE log = 2`)
			return err
		}))
	}), audit.Broken)
}

func holdKeeps(k *kit) {
	a := k.purger()
	defer a.stop()
	k.call(k.Full, "old", 1200)
	k.audited()
	k.pass(auditKept + time.Minute)
	k.ok(a.Store.Hold(k.ctx(), &audit.Hold{Name: "case", Filter: audit.Filter{Target: "old-1100"}, Reason: "a court asks", Actor: "anna"}))
	a.purge(k, 1101) // with the record that opened the log
	a.purge(k, 0)
	// A purge that was planned before the hold was made cuts nothing.
	p, err := a.Store.Old(k.ctx(), 1, 1101, 1110, auditKept, 1000)
	k.ok(err)
	if cut, err := a.Store.Cut(k.ctx(), 1, p.Last, p.Hash, 0); p.Count != 9 || cut || err != nil {
		k.t.Errorf("cut %+v: %v, %v", p, cut, err)
	}
	k.ok(a.Store.Release(k.ctx(), "case", "it has ended", "berta"))
	a.purge(k, 100)
	equal(k, "first record left", k.left(1)[0], 1202)
}
