package storetest

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/internal/waittest"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

// aLog is an audit log of a site, in memory.
type aLog struct {
	log    sites.Log
	leaves []sites.Record
	hashes []audit.Hash
}

// newLog makes a log of n records of site "plant". Two logs of one origin differ if their salt differs.
func (k *kit) newLog(origin, salt string, n int) *aLog {
	k.t.Helper()
	l := &aLog{log: sites.Log{Origin: origin, Number: 1, Size: int64(n)}}
	var before audit.Hash
	for i := range n {
		r := audit.Record{
			ID: audit.EventID(time.UnixMicro(int64(i)), fmt.Append(nil, origin, salt, i)), Occurred: time.UnixMicro(int64(i)), Channel: audit.APIOutbound, Kind: audit.CachedCall, Status: audit.Delivered,
			Site: "plant", Node: "n", Target: fmt.Sprint("t", i), Actor: salt, Personal: []string{"target"},
		}
		leaf, values, err := r.Leaf()
		k.ok(err)
		before = audit.ChainHash(int64(i+1), before, audit.LeafHash(leaf))
		l.leaves, l.hashes = append(l.leaves, sites.Record{Leaf: leaf, Values: values}), append(l.hashes, before)
	}
	return l
}

// batch returns records from first to last.
func (l *aLog) batch(first, last int64, calls ...sites.Call) *sites.Batch {
	b := &sites.Batch{Log: l.log, First: first, Before: make([]byte, 32), End: bytes.Clone(l.hashes[last-1][:]), Records: l.leaves[first-1 : last : last], Calls: calls}
	if first > 1 {
		copy(b.Before, l.hashes[first-2][:])
	}
	return b
}

func (k *kit) copies(l *aLog, first, last int64, want sites.Copy) {
	k.t.Helper()
	got, err := k.Telemetry.Copy(k.ctx(), "plant", l.batch(first, last))
	k.ok(err)
	want.Origin = l.log.Origin
	equal(k, fmt.Sprintf("copy of %d to %d", first, last), got, want)
	state, err := k.Telemetry.Copied(k.ctx(), "plant", []string{l.log.Origin})
	k.ok(err)
	equal(k, "what is said later", state, []sites.Copy{want})
}

// holds checks that exactly the records of these ranges are here, as the log has them.
func (k *kit) holds(l *aLog, want ...sites.Range) {
	k.t.Helper()
	var got []sites.Range
	k.ok(k.Side().Read(k.ctx(), `SELECT a.seq, a.leaf, a.hash FROM hf_audit AS a JOIN hf_audit_log AS l ON l.log = a.log WHERE l.origin = $1 ORDER BY a.seq`, []any{l.log.Origin}, func(scan side.Scan) error {
		var seq int64
		var leaf, hash []byte
		k.ok(scan(&seq, &leaf, &hash))
		if !bytes.Equal(leaf, l.leaves[seq-1].Leaf) || !bytes.Equal(hash, l.hashes[seq-1][:]) {
			k.t.Errorf("record %d is not that of the site", seq)
		}
		if n := len(got); n > 0 && got[n-1].Last == seq-1 {
			got[n-1].Last = seq
		} else {
			got = append(got, sites.Range{First: seq, Last: seq})
		}
		return nil
	}))
	equal(k, "records here", got, want)
}

const (
	plantLog = "holdfast/plant/n/1"
	otherLog = "holdfast/other/n/1"
)

// telemetry tests both ends of the way of a site's audit log to central.
func telemetry(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"records come in any order, and each is here once": func(k *kit) {
			l := k.newLog(plantLog, "", 20)
			k.copies(l, 11, 14, sites.Copy{Size: 14, Gaps: []sites.Range{{First: 1, Last: 10}}})
			k.copies(l, 18, 20, sites.Copy{Size: 20, Gaps: []sites.Range{{First: 1, Last: 10}, {First: 15, Last: 17}}})
			k.copies(l, 3, 5, sites.Copy{Size: 20, Gaps: []sites.Range{{First: 1, Last: 2}, {First: 6, Last: 10}, {First: 15, Last: 17}}})
			k.reopen()
			k.copies(l, 1, 12, sites.Copy{Size: 20, Gaps: []sites.Range{{First: 15, Last: 17}}})
			k.copies(l, 1, 20, sites.Copy{Size: 20})
			k.copies(l, 1, 20, sites.Copy{Size: 20})
			k.holds(l, sites.Range{First: 1, Last: 20})
		},
		"a sealed target is found in a copy":     copiedTarget,
		"a log under another name is its site's": copiedUnderAnotherName,
		"what does not match changes nothing":    brokenBatches,
		"a log may not have gaps without end": func(k *kit) {
			l := k.newLog(plantLog, "", 2*sites.MaxGaps+6)
			for n := range int64(sites.MaxGaps) {
				_, err := k.Telemetry.Copy(k.ctx(), "plant", l.batch(2*n+2, 2*n+2))
				k.ok(err)
			}
			_, err := k.Telemetry.Copy(k.ctx(), "plant", l.batch(2*sites.MaxGaps+4, 2*sites.MaxGaps+4))
			k.fails(err, sites.ErrGaps)
			_, err = k.Telemetry.Copy(k.ctx(), "plant", l.batch(1, 1))
			k.ok(err)
			_, err = k.Telemetry.Copy(k.ctx(), "plant", l.batch(2*sites.MaxGaps+4, 2*sites.MaxGaps+4))
			k.ok(err)
		},
		"a site reads what it has": shipping,
		"a newer call wins":        callsWin,
		"calls are listed":         callsListed,
	})
	m.meet(t, map[string]func(k *kit){
		"the journal tells of records that have come": copyTold,
		"several nodes take one site's log": func(k *kit) {
			stores := []nodestore.Store{nodestore.New(k.Full, nil)}
			if k.m.Beside != nil {
				stores = append(stores, nodestore.New(k.beside(), nil))
			}
			logs := []*aLog{k.newLog(plantLog, "", 60), k.newLog("holdfast/plant/n/2", "", 60)}
			var all sync.WaitGroup
			for n, s := range stores {
				for _, l := range logs {
					for i := range int64(12) {
						i := (i + 5*int64(n)) % 12 * 5
						all.Go(func() {
							if _, err := s.Telemetry.Copy(k.ctx(), "plant", l.batch(i+1, i+5)); err != nil && !errors.Is(err, sites.ErrGaps) {
								k.t.Error(err)
							}
						})
					}
				}
			}
			all.Wait()
			for _, l := range logs {
				k.copies(l, 1, 60, sites.Copy{Size: 60})
				k.holds(l, sites.Range{First: 1, Last: 60})
			}
		},
	})
}

// copiedTarget asks central for a person's address, in the order of time.
func copiedTarget(k *kit) {
	k.copies(k.newLog(plantLog, "", 9), 1, 9, sites.Copy{Size: 9})
	page, err := nodestore.New(k.Full, nil).Audit.Query(k.ctx(), audit.Query{Filter: audit.Filter{Target: "t7", From: time.UnixMicro(7), Until: time.UnixMicro(8)}, Limit: 10})
	k.ok(err)
	if len(page.Records) != 1 || page.Records[0].Target != "t7" || page.Records[0].Origin != plantLog {
		k.t.Errorf("found %+v", page.Records)
	}
}

func brokenBatches(k *kit) {
	l, forged := k.newLog(plantLog, "", 20), k.newLog(plantLog, "forged", 20)
	k.copies(l, 6, 10, sites.Copy{Size: 10, Gaps: []sites.Range{{First: 1, Last: 5}}})
	changed := func(change func(b *sites.Batch)) *sites.Batch {
		b := l.batch(11, 14)
		b.Records = append([]sites.Record(nil), b.Records...)
		change(b)
		return b
	}
	// A hostile site computes its hashes itself.
	chained := func(change func(b *sites.Batch)) *sites.Batch {
		b := changed(change)
		h := audit.Hash(b.Before)
		for i := range b.Records {
			h = audit.ChainHash(b.First+int64(i), h, audit.LeafHash(b.Records[i].Leaf))
		}
		b.End = h[:]
		return b
	}
	k.ok(nodestore.New(k.Full, nil).Sites.AddSite(k.ctx(), "other", [32]byte{1}, "test"))
	foreign := k.newLog(plantLog, "", 1)
	foreign.leaves[0].Leaf = bytes.ReplaceAll(foreign.leaves[0].Leaf, []byte(`"site":"plant"`), []byte(`"site":"other"`))
	foreign.hashes[0] = audit.ChainHash(1, audit.Hash{}, audit.LeafHash(foreign.leaves[0].Leaf))
	for name, c := range map[string]struct {
		batch *sites.Batch
		want  error
	}{
		"over records that are here": {forged.batch(6, 10), sites.ErrBroken},
		"before them":                {forged.batch(1, 5), sites.ErrBroken},
		"behind them":                {forged.batch(11, 12), sites.ErrBroken},
		"around them":                {forged.batch(1, 20), sites.ErrBroken},
		"a leaf changed":             {changed(func(b *sites.Batch) { b.Records[1].Leaf = l.leaves[0].Leaf }), sites.ErrBroken},
		"a record left out":          {changed(func(b *sites.Batch) { b.Records = b.Records[1:] }), sites.ErrBroken},
		"another value":              {changed(func(b *sites.Batch) { b.Records[1].Values = l.leaves[0].Values }), sites.ErrUnreadable},
		"no record":                  {chained(func(b *sites.Batch) { b.Records[1].Leaf = []byte(`{"v":7}`) }), sites.ErrUnreadable},
		"a text that no index holds": {chained(func(b *sites.Batch) {
			b.Records[1].Leaf = bytes.ReplaceAll(b.Records[1].Leaf, []byte(`"node":"n"`), []byte(`"node":"`+strings.Repeat("n", 5000)+`"`))
		}), sites.ErrUnreadable},
		"of another site":          {changed(func(b *sites.Batch) { b.Log.Origin = otherLog }), sites.ErrForeign},
		"of no log":                {changed(func(b *sites.Batch) { b.Log.Origin = "holdfast/plant/n" }), holdfast.ErrInvalid},
		"with another's name":      {foreign.batch(1, 1), sites.ErrForeign},
		"from a number beyond all": {changed(func(b *sites.Batch) { b.First = 1e18 }), holdfast.ErrInvalid},
		"without hashes":           {changed(func(b *sites.Batch) { b.End = nil }), holdfast.ErrInvalid},
		"empty":                    {changed(func(b *sites.Batch) { b.Records = nil }), holdfast.ErrInvalid},
	} {
		if _, err := k.Telemetry.Copy(k.ctx(), "plant", c.batch); !errors.Is(err, c.want) {
			k.t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	k.holds(l, sites.Range{First: 6, Last: 10})
	state, err := k.Telemetry.Copied(k.ctx(), "other", []string{plantLog, otherLog})
	k.ok(err)
	equal(k, "of another site", state, []sites.Copy{{Origin: plantLog}, {Origin: otherLog}})
	k.copies(l, 1, 20, sites.Copy{Size: 20})
}

// copiedUnderAnotherName checks that central goes by the credential: a site that calls itself something else has its
// log there, under the name that people gave it, unless that name is another's. Nobody else goes on with it.
func copiedUnderAnotherName(k *kit) {
	l := k.newLog(plantLog, "", 20)
	copyOf := func(site string, first, last int64) error {
		_, err := k.Telemetry.Copy(k.ctx(), site, l.batch(first, last))
		return err
	}
	store := nodestore.New(k.Full, nil)
	k.ok(store.Sites.AddSite(k.ctx(), "plant", [32]byte{1}, "test"))
	k.fails(copyOf("works", 1, 10), sites.ErrForeign)
	k.ok(store.Sites.RevokeSite(k.ctx(), "plant", "test"))
	k.ok(copyOf("works", 1, 10))
	k.fails(copyOf("plant", 11, 20), sites.ErrForeign)
	k.ok(copyOf("works", 11, 20))
	for site, want := range map[string]int64{"works": 20, "plant": 0} {
		state, err := k.Telemetry.Copied(k.ctx(), site, []string{plantLog})
		k.ok(err)
		equal(k, "what is said to "+site, state, []sites.Copy{{Origin: plantLog, Size: want}})
		page, err := store.Audit.Query(k.ctx(), audit.Query{Filter: audit.Filter{Site: site}, Limit: 100})
		k.ok(err)
		equal(k, "records of "+site, len(page.Records), int(want))
		if len(page.Records) > 0 && page.Records[0].Site != site {
			k.t.Errorf("a record of %s is shown as one of %s", site, page.Records[0].Site)
		}
	}
	var text bytes.Buffer
	x := &audit.Exporter{Reader: store.Audit, Filter: audit.Filter{Site: "works"}}
	k.ok(x.Begin(k.ctx(), plantLog))
	k.ok(x.Write(k.ctx(), &text))
	equal(k, "records of an export", bytes.Count(text.Bytes(), []byte(`"CachedCall"`)), 20)
	report, err := audit.Verify(k.ctx(), store.Audit, audit.VerifyOptions{})
	k.ok(err)
	for _, log := range report.Logs {
		if log.Fault != "" {
			k.t.Errorf("%s: %s at record %d: %s", log.Origin, log.Fault, log.Seq, log.Detail)
		}
	}
}

// shipping writes a log as the appender does, and reads it as telemetry does.
func shipping(k *kit) {
	l := k.newLog(plantLog, "", 12)
	k.ok(k.Side().Change(k.ctx(), side.Cost{}, func(tx side.Tx) error {
		list := []rows.Row{&rows.AuditLog{Log: 1, Origin: plantLog, Own: true, Size: 12, Head: l.hashes[11][:]}}
		for i := range l.leaves {
			seq := int64(i + 1)
			v := l.leaves[i].Values[0]
			list = append(list, &rows.AuditRecord{Log: 1, Seq: seq, ID: holdfast.NewID(), Site: "plant", Leaf: l.leaves[i].Leaf, Hash: l.hashes[i][:]},
				&rows.AuditValue{Log: 1, Seq: seq, Field: v.Field, Salt: v.Salt, Value: v.Text})
		}
		return tx.Put(list...)
	}))
	logs, err := k.Telemetry.Logs(k.ctx())
	k.ok(err)
	equal(k, "logs", logs, []sites.Log{l.log})
	read := func(first, last, most int64) sites.Batch {
		b, err := k.Telemetry.Batch(k.ctx(), l.log, first, last, most)
		k.ok(err)
		return b
	}
	equal(k, "all", read(1, 12, 1<<20), *l.batch(1, 12))
	equal(k, "a part", read(5, 8, 1<<20), *l.batch(5, 8))
	equal(k, "what there is", read(5, 100, 1<<20), *l.batch(5, 12))
	equal(k, "at least one", read(5, 8, 1), *l.batch(5, 5))
	if b := read(14, 20, 1<<20); len(b.Records) != 0 {
		k.t.Errorf("read %d records that are not there", len(b.Records))
	}
	k.ok(k.Side().Change(k.ctx(), side.Cost{}, func(tx side.Tx) error {
		_, err := tx.Exec(`UPDATE hf_audit_log SET cut = 4, cut_hash = $1 WHERE log = 1`, l.hashes[3][:])
		if err == nil {
			_, err = tx.Exec(`DELETE FROM hf_audit WHERE seq <= 4`)
		}
		return err
	}))
	equal(k, "after a purge", read(5, 8, 1<<20), *l.batch(5, 8))
	if b := read(2, 8, 1<<20); len(b.Records) != 0 {
		k.t.Error("purged records are read")
	}
}

func (k *kit) says(l *aLog, seq int64, epoch int64, calls ...sites.Call) {
	k.t.Helper()
	b := l.batch(seq, seq, calls...)
	b.Log.Number = epoch
	_, err := k.Telemetry.Copy(k.ctx(), "plant", b)
	k.ok(err)
}

func callsWin(k *kit) {
	l := k.newLog(plantLog, "", 9)
	id := holdfast.NewID()
	say := func(seq, epoch, revision int64, status string) {
		k.says(l, seq, epoch, sites.Call{ID: id, Revision: revision, Status: status, Created: 7}, sites.Call{ID: "no id, it is too long " + holdfast.ID(strings.Repeat("x", 300))})
	}
	is := func(want string) {
		k.t.Helper()
		c, err := k.SiteCalls.SiteCall(k.ctx(), "plant", id)
		if err != nil || c.Status != want || c.Seen.IsZero() {
			k.t.Fatalf("got %+v, %v; want %s", c, err, want)
		}
	}
	say(1, 1, 5, "retrying")
	is("retrying")
	say(3, 1, 4, "submitted") // late
	is("retrying")
	say(2, 1, 6, "delivered")
	is("delivered")
	say(2, 1, 9, "parked") // a batch that came before may bring a newer call
	is("parked")
	say(4, 2, 1, "submitted") // of a site that was restored
	is("submitted")
	say(5, 1, 99, "delivered")
	is("submitted")
	_, err := k.SiteCalls.SiteCall(k.ctx(), "other", id)
	k.fails(err, holdfast.ErrNotFound)
}

func callsListed(k *kit) {
	l := k.newLog(plantLog, "", 9)
	var ids []holdfast.ID
	for n := range 6 {
		c := sites.Call{ID: holdfast.NewID(), Status: "parked", Created: int64(n/2 + 1), Node: "n", Destination: "erp", LastError: "It is Busy", Revision: 1}
		if n >= 4 {
			c.Status, c.Ended = "delivered", 9
		}
		ids = append(ids, c.ID)
		k.says(l, int64(n+1), 1, c)
	}
	page := func(f sites.CallFilter) (got []holdfast.ID) {
		k.t.Helper()
		for f.Limit = 2; ; {
			p, err := k.SiteCalls.SiteCalls(k.ctx(), &f)
			k.ok(err)
			for _, c := range p.Calls {
				got = append(got, c.ID)
			}
			if f.After = p.Next; f.After == nil {
				return got
			}
		}
	}
	want := []holdfast.ID{ids[5], ids[4], ids[3], ids[2], ids[1], ids[0]}
	equal(k, "all", page(sites.CallFilter{}), want)
	equal(k, "of a site", page(sites.CallFilter{Site: "plant", Error: "is busy", Destination: "erp", Node: "n"}), want)
	equal(k, "of a status", page(sites.CallFilter{Statuses: []string{"parked"}}), want[2:])
	equal(k, "of a time", page(sites.CallFilter{From: time.UnixMicro(2), To: time.UnixMicro(3)}), want[2:4])
	equal(k, "of another", page(sites.CallFilter{Site: "other"}), nil)
	counts, err := k.SiteCalls.CallCounts(k.ctx(), time.UnixMicro(2))
	k.ok(err)
	equal(k, "counts", counts, []sites.CallCount{{Site: "plant", Node: "n", Status: "parked", Count: 4, Old: 2}})
	n, err := k.SiteCalls.PurgeCalls(k.ctx(), time.Hour)
	k.ok(err)
	equal(k, "purged too early", n, 0)
	k.pass(2 * time.Hour)
	n, err = k.SiteCalls.PurgeCalls(k.ctx(), time.Hour)
	k.ok(err)
	equal(k, "purged", n, 2)
	equal(k, "what waits", page(sites.CallFilter{}), want[2:])
}

// copyTold follows the journal while records come.
func copyTold(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx())
	entries, ended := make(chan holdfast.Entry, 10), make(chan error, 1)
	go func() {
		ended <- k.Project(ctx, holdfast.Follower{Name: "f", FromStart: true}, func(_ context.Context, page []holdfast.Entry) ([]holdfast.Row, error) {
			for _, e := range page {
				entries <- e
			}
			return nil, nil
		})
	}()
	waittest.Until(k.t, "the follower is known", func() bool {
		all, err := k.Followers(k.ctx())
		return err == nil && len(all) == 1
	})
	l := k.newLog(plantLog, "", 3)
	for range 2 { // a batch that comes again is told once
		k.copies(l, 1, 3, sites.Copy{Size: 3})
	}
	k.says(l, 3, 1)
	e := <-entries
	var detail struct {
		Log   string `json:"log"`
		First int64  `json:"first"`
		Last  int64  `json:"last"`
		Hash  string `json:"hash"`
	}
	k.ok(json.Unmarshal(e.Detail, &detail))
	if e.Kind != holdfast.Copied || e.Subject != plantLog || detail.Log != plantLog || detail.First != 1 || detail.Last != 3 || detail.Hash != hex.EncodeToString(l.hashes[2][:]) {
		k.t.Errorf("got %+v, %s", e, e.Detail)
	}
	cancel()
	k.ok(<-ended)
	if len(entries) != 0 {
		k.t.Errorf("also told: %+v", <-entries)
	}
}
