package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// audits tests what nodestore.Audit and audit.Log promise together.
func audits(t *testing.T, m Maker) {
	t.Helper()
	m.meet(t, map[string]func(k *kit){
		"three appenders write one chain":          threeAppenders, // A1
		"records are neither changed nor deleted":  recordsStay,
		"the lease has one holder":                 leaseHolder,
		"checkpoints of others are kept":           checkpointsOfOthers,
		"others vouch for the log":                 checkpointsReturned,
		"others learn of a change of the key":      handOversExchanged,
		"a purge beside a verification":            purgeBesideVerification,
		"a verification beside an erasure":         erasureBesideVerification,
		"central shares erasures":                  centralShares,
		"a revoked site is told of none":           revokedShares,
		"a site shares erasures":                   siteShares,
		"an appender that wakes up writes nothing": lateAppender,
	})
	m.run(t, map[string]func(k *kit){
		"a log goes on after a restart":          logGoesOn, // A2
		"a key that has handed over ends":        oldKeyEnds,
		"a purge takes what is old":              purgeTakes,
		"a purge that died goes on":              purgeGoesOn,
		"a log before a restore and its old key": oldKeyOfFormerLog,
		"copies are exported":                    copiesExported,
		"a hold keeps records":                   holdKeeps,
		"a record of a copy is proved":           copyProved,
		"values are erased, with a record":       valuesErased,
		"a forged purge is found":                forgedPurge, // A6
	})
}

// describedCalls is a Describe for tests: each call of the API becomes a record with a personal value.
func describedCalls() func(ctx context.Context, page []holdfast.Entry) ([]audit.Record, error) {
	return func(_ context.Context, page []holdfast.Entry) (list []audit.Record, err error) {
		for i := range page {
			e := &page[i]
			if e.Kind != holdfast.Called {
				continue
			}
			list = append(list, audit.Record{
				ID: holdfast.ID(fmt.Sprint("call-", e.Seq)), Occurred: e.At, Channel: audit.APIInbound, Kind: audit.APICall, Status: audit.Success,
				Site: "site", Node: "node", Actor: e.Actor, Target: e.Subject, Extra: json.RawMessage(e.Detail), Personal: []string{"target"},
			})
		}
		return list, nil
	}
}

// appender is a Log that runs.
type appender struct {
	*audit.Log

	stop func()
}

func (k *kit) appends(on Full, shared bool) *appender {
	k.t.Helper()
	return k.begin(&audit.Log{Store: nodestore.New(on, nil).Audit, Journal: on, Shared: shared})
}

// begin runs a log.
func (k *kit) begin(l *audit.Log) *appender {
	k.t.Helper()
	if l.Node == "" {
		l.Node = "node"
	}
	if l.Site = "site"; l.Describe == nil {
		l.Describe = describedCalls()
	}
	ctx, cancel := context.WithCancel(k.ctx())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return &appender{l, sync.OnceFunc(func() {
		k.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			k.t.Errorf("append: %v", err)
		}
	})}
}

// call appends entries of calls, each of another target.
func (k *kit) call(on Full, name string, n int) {
	k.t.Helper()
	for i := range n {
		k.ok(on.Append(k.ctx(), holdfast.Entry{Kind: holdfast.Called, Code: "test", Subject: fmt.Sprint(name, "-", i), Actor: "anna"}))
	}
}

func (k *kit) audited() {
	k.t.Helper()
	waittest.Until(k.t, "all is in the log", func() bool {
		list, err := k.Followers(k.ctx())
		return err == nil && len(list) == 1 && list[0].Name == audit.FollowerName && list[0].Unread.IsZero()
	})
}

// chained checks the chain and the tree of the only log, and returns the targets of its records.
func (k *kit) chained(want int64) (targets []string) {
	k.t.Helper()
	a := nodestore.New(k.Full, nil).Audit
	logs, err := a.Logs(k.ctx())
	if err != nil || len(logs) != 1 || logs[0].Size != want {
		k.t.Fatalf("logs %+v, %v, want one of %d records", logs, err, want)
	}
	var head audit.Hash
	var hashes []tlog.Hash
	read := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, index := range indexes {
			list[i] = hashes[index]
		}
		return list, nil
	})
	seq := int64(0)
	k.ok(a.Records(k.ctx(), logs[0].Log, 0, 1<<30, func(r *audit.Stored) error {
		seq++
		more, err := tlog.StoredHashes(seq-1, r.Leaf, read)
		k.ok(err)
		hashes = append(hashes, more...)
		head = audit.ChainHash(seq, head, audit.LeafHash(r.Leaf))
		if r.Seq != seq || !bytes.Equal(r.Hash, head[:]) {
			k.t.Fatalf("record %d has the number %d and the hash %x, want %x", seq, r.Seq, r.Hash, head)
		}
		return nil
	}))
	if seq != want || !bytes.Equal(logs[0].Head, head[:]) {
		k.t.Errorf("%d records with head %x, want %d with %x", seq, logs[0].Head, want, head)
	}
	root, err := tlog.TreeHash(want, read)
	k.ok(err)
	got, err := audit.Root(k.ctx(), a, logs[0].Log, want)
	k.ok(err)
	equal(k, "root", got, root)
	k.ok(a.Values(k.ctx(), logs[0].Log, 1, want, func(_ int64, v audit.Value) error {
		targets = append(targets, v.Text)
		return nil
	}))
	return targets
}

func threeAppenders(k *kit) {
	stores := []Full{k.Full, k.Full, k.Full}
	if k.m.Beside != nil {
		stores[2] = k.m.Beside(k.t, k.Full)
		defer func() { k.ok(stores[2].Close()) }()
	}
	for _, s := range stores {
		defer k.appends(s, false).stop() // all project: the place of the follower decides
	}
	waittest.Until(k.t, "the log follows", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 })
	var group sync.WaitGroup
	const writers, each = 50, 12
	for w := range writers {
		group.Go(func() { k.call(stores[w%len(stores)], fmt.Sprint(w), each) })
	}
	group.Wait()
	k.audited()
	targets := k.chained(1 + writers*each)
	slicesUnique(k, targets, writers*each)
}

// slicesUnique fails unless there are n texts, all different.
func slicesUnique(k *kit, list []string, n int) {
	k.t.Helper()
	seen := map[string]bool{}
	for _, s := range list {
		seen[s] = true
	}
	if len(list) != n || len(seen) != n {
		k.t.Errorf("%d records, %d different, want %d", len(list), len(seen), n)
	}
}

func logGoesOn(k *kit) {
	total := 0
	for i, n := range []int{3, 254, 700} { // to the end of a tile, and over it
		a := k.appends(k.Full, true)
		waittest.Until(k.t, "the log follows", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 })
		k.call(k.Full, fmt.Sprint("round-", i), n)
		k.audited()
		a.stop()
		total += n
		slicesUnique(k, k.chained(int64(1+total)), total)
		k.reopen()
	}
}

func recordsStay(k *kit) {
	a := k.appends(k.Full, false)
	defer a.stop()
	waittest.Until(k.t, "the log follows", func() bool { list, err := k.Followers(k.ctx()); return err == nil && len(list) == 1 })
	k.call(k.Full, "call", 2)
	k.audited()
	try := func(what string, f func(tx side.Tx) error) {
		k.t.Helper()
		if err := k.Side().Change(k.ctx(), side.Cost{}, f); err == nil || !strings.Contains(err.Error(), "audit records") {
			k.t.Errorf("%s: %v, want a refusal", what, err)
		}
	}
	try("update", func(tx side.Tx) error {
		_, err := tx.Exec(`UPDATE hf_audit SET actor = 'nobody' WHERE seq = 2`)
		return err
	})
	try("delete", func(tx side.Tx) error {
		_, err := tx.Exec(`DELETE FROM hf_audit WHERE seq = 2`)
		return err
	})
	try("another record under the number", func(tx side.Tx) error {
		other := audit.Record{ID: "other", Occurred: time.Now(), Channel: audit.System, Kind: audit.EraseKind, Status: audit.Success, Site: "site"}
		leaf, _, err := other.Leaf()
		if err != nil {
			return err
		}
		return tx.Put(audit.Row(1, 2, &other, leaf, audit.LeafHash(leaf)))
	})
	k.chained(3)
}

func leaseHolder(k *kit) {
	a := nodestore.New(k.Full, nil).Audit
	first, err := a.Lease(k.ctx(), 0)
	k.ok(err)
	if other, err := a.Lease(k.ctx(), 0); first == 0 || other != 0 || err != nil {
		k.t.Errorf("leases %d and %d, %v: want one holder", first, other, err)
	}
	k.pass(audit.LeaseFor / 2)
	again, err := a.Lease(k.ctx(), first)
	k.ok(err)
	if again <= first {
		k.t.Errorf("the lease goes to %d, and before to %d", again, first)
	}
	if old, err := a.Lease(k.ctx(), first); old != 0 || err != nil {
		k.t.Errorf("an older lease is good: %d, %v", old, err)
	}
	k.pass(audit.LeaseFor + time.Second)
	next, err := a.Lease(k.ctx(), 0)
	k.ok(err)
	if old, err := a.Lease(k.ctx(), again); next == 0 || old != 0 || err != nil {
		k.t.Errorf("after its end: lease %d, and the old holder %d, %v", next, old, err)
	}
}
