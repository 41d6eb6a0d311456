package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/link/sites"
	"github.com/holdfast-mq/holdfast/nodestore"
)

// valuesOf lists the numbers of the records of a log beside which a value stands.
func (k *kit) valuesOf(origin string) (list []int64) {
	k.t.Helper()
	k.ok(k.Side().Read(k.ctx(), `SELECT v.seq FROM hf_audit_value AS v JOIN hf_audit_log AS l ON l.log = v.log WHERE l.origin = $1 ORDER BY v.seq`, []any{origin}, func(scan side.Scan) error {
		var seq int64
		err := scan(&seq)
		list = append(list, seq)
		return err
	}))
	return list
}

// unconfirmed lists who has not confirmed how many erasures.
func (k *kit) unconfirmed(store *nodestore.Audit) (list []string) {
	k.t.Helper()
	all, err := store.Unconfirmed(k.ctx())
	k.ok(err)
	for _, u := range all {
		if u.Since.IsZero() {
			k.t.Errorf("%+v", u)
		}
		list = append(list, fmt.Sprint(u.Site, " ", u.Values))
	}
	return list
}

func places(seqs ...int64) (list []audit.Place) {
	for _, seq := range seqs {
		list = append(list, audit.Place{Seq: seq, Field: "target"})
	}
	return list
}

// centralShares checks central's end: what it erases of a copy the site is told until it has confirmed it, and what the site
// erases goes from the copy once it is there, unless a hold keeps it.
func centralShares(k *kit) {
	a, store := k.keeper()
	defer a.stop()
	l := k.newLog(plantLog, "", 8)
	k.copies(l, 1, 5, sites.Copy{Size: 5})
	share := &audit.Sharing{Store: store}
	told := func(peer string, want ...audit.Gone) {
		k.t.Helper()
		got, err := share.Tell(k.ctx(), peer)
		k.ok(err)
		equal(k, "told to "+peer, got, want)
	}
	for _, target := range []string{"t0", "t2"} {
		a.erases(k, store, audit.Erasure{Value: target}, audit.Erased{Records: 1, Values: 1})
	}
	equal(k, "not confirmed", k.unconfirmed(store), []string{"plant 2"})
	told("plant", audit.Gone{Origin: plantLog, Reason: "request 4711", Places: places(1, 3)})
	told("other")
	does := func(peer string, in audit.Erasures, want ...audit.Gone) {
		k.t.Helper()
		got, err := share.Told(k.ctx(), peer, &in)
		k.ok(err)
		equal(k, "done for "+peer, got, want)
	}
	does("other", audit.Erasures{Done: []audit.Gone{{Origin: plantLog, Places: places(1, 3)}}}) // not its log
	equal(k, "not confirmed", k.unconfirmed(store), []string{"plant 2"})
	does("plant", audit.Erasures{Done: []audit.Gone{{Origin: plantLog, Places: places(1)}}})
	told("plant", audit.Gone{Origin: plantLog, Reason: "request 4711", Places: places(3)})
	does("plant", audit.Erasures{Done: []audit.Gone{{Origin: plantLog, Places: places(3)}}})
	equal(k, "not confirmed", k.unconfirmed(store), nil)

	k.ok(store.Hold(k.ctx(), &audit.Hold{Name: "case", Filter: audit.Filter{Target: "t4"}, Reason: "r", Actor: "anna"}))
	erase := audit.Erasures{Erase: []audit.Gone{{Origin: plantLog, Reason: "request 4712", Places: places(2, 3, 5, 7)}, {Origin: otherLog, Places: places(1)}}}
	does("other", erase) // the log of another site
	does("plant", erase, audit.Gone{Origin: plantLog, Places: places(2, 3)})
	equal(k, "values of the copy", k.valuesOf(plantLog), []int64{4, 5})
	k.copies(l, 6, 8, sites.Copy{Size: 8}) // it was on its way, with its values
	does("plant", erase, audit.Gone{Origin: plantLog, Places: places(2, 3, 7)})
	k.ok(store.Release(k.ctx(), "case", "r", "anna"))
	does("plant", erase, audit.Gone{Origin: plantLog, Places: places(2, 3, 5, 7)})
	equal(k, "values of the copy", k.valuesOf(plantLog), []int64{4, 6, 8})
	equal(k, "not confirmed, of what the site has told", k.unconfirmed(store), nil)
	k.audited()
	page, err := store.Query(k.ctx(), audit.Query{Filter: audit.Filter{Kind: audit.EraseKind, Actor: "plant"}, Limit: 10})
	k.ok(err)
	var d audit.Decision
	if len(page.Records) != 3 || json.Unmarshal(page.Records[2].Extra, &d) != nil || d.Reason != "request 4712" || d.Values != 1 {
		k.t.Errorf("%d records of it, the first says %+v", len(page.Records), d)
	}
	if _, err := share.Told(k.ctx(), "plant", &audit.Erasures{Erase: []audit.Gone{{Places: make([]audit.Place, 5*audit.MostShared)}}}); !errors.Is(err, holdfast.ErrInvalid) {
		k.t.Errorf("of too much at once: %v", err)
	}
}

// revokedShares checks that nothing waits for ever for a site that was revoked.
func revokedShares(k *kit) {
	a, store := k.keeper()
	defer a.stop()
	k.ok(k.AddSite(k.ctx(), "plant", hash(1), ""))
	k.copies(k.newLog(plantLog, "", 8), 1, 5, sites.Copy{Size: 5})
	erase := func(target string, want ...string) {
		k.t.Helper()
		a.erases(k, store, audit.Erasure{Value: target}, audit.Erased{Records: 1, Values: 1})
		equal(k, "not confirmed", k.unconfirmed(store), want)
	}
	erase("t0", "plant 1")
	k.ok(k.RevokeSite(k.ctx(), "plant", ""))
	equal(k, "not confirmed, once it is revoked", k.unconfirmed(store), nil)
	erase("t2")
}

// siteShares checks the site's end, with its own log.
func siteShares(k *kit) {
	a, store := k.keeper()
	defer a.stop()
	for i := range 3 {
		k.ok(k.Append(k.ctx(), holdfast.Entry{
			Kind: holdfast.Called, Code: "query-audit", Subject: "q", Actor: "anna", Outcome: holdfast.Succeeded, Detail: fmt.Appendf(nil, `{"filter":{"target":"p%d@example.org"}}`, i),
		}))
	}
	k.audited()
	logs, err := store.Logs(k.ctx())
	k.ok(err)
	origin, all := logs[0].Origin, k.valuesOf(logs[0].Origin)
	if len(logs) != 1 || len(all) != 3 {
		k.t.Fatalf("%d logs, values of %v", len(logs), all)
	}
	request := func(seq int64) []audit.Place { return []audit.Place{{Seq: seq, Field: "request"}} }
	share := &audit.Sharing{Store: store, Site: true}
	a.erases(k, store, audit.Erasure{Person: "p0@example.org"}, audit.Erased{Records: 1, Values: 1})
	equal(k, "a node that is no site tells nobody", k.unconfirmed(store), nil)
	a.erases(k, store, audit.Erasure{Person: "p1@example.org", Uplink: true}, audit.Erased{Records: 1, Values: 1})
	equal(k, "not confirmed", k.unconfirmed(store), []string{" 1"})
	got, err := share.Tell(k.ctx(), "central")
	k.ok(err)
	equal(k, "told to central", got, []audit.Gone{{Origin: origin, Reason: "request 4711", Places: request(all[1])}})
	done, err := share.Told(k.ctx(), "central", &audit.Erasures{
		Erase: []audit.Gone{{Origin: origin, Reason: "r", Places: request(all[2])}, {Origin: otherLog, Places: request(1)}},
		Done:  []audit.Gone{{Origin: origin, Places: request(all[1])}},
	})
	k.ok(err)
	equal(k, "done", done, []audit.Gone{{Origin: origin, Places: request(all[2])}, {Origin: otherLog, Places: request(1)}})
	equal(k, "not confirmed", k.unconfirmed(store), nil)
	equal(k, "values", k.valuesOf(origin), nil)
	k.audited()
	r, err := audit.Verify(context.WithoutCancel(k.ctx()), store, audit.VerifyOptions{Keys: []audit.Public{a.Key.Public()}})
	if err != nil || r.Status == audit.Broken {
		k.t.Errorf("%+v, %v", r, err)
	}
}
