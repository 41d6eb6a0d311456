package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
)

// auditQueries tests audit.Records.
func auditQueries(t *testing.T, m Maker) {
	t.Helper()
	m.run(t, map[string]func(k *kit){
		"a query finds what its filter selects": auditFound,
		"a page says how far it looked":         auditLooked,
		"numbers of the audit log":              auditCounted,
	})
}

// auditStart is when the records of these tests begin.
func auditStart() time.Time { return time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC) }

// putAudit writes records as a log does, without its chain.
func (k *kit) putAudit(list ...audit.Record) *nodestore.Audit {
	k.t.Helper()
	var all []rows.Row
	all = append(all, &rows.AuditLog{Log: 1, Origin: "holdfast/s/n/i", Own: true, Opened: rows.Now, Size: int64(len(list)), Head: make([]byte, 32)})
	for i := range list {
		r := &list[i]
		data, values, err := r.Leaf()
		if err != nil {
			k.t.Fatal(err)
		}
		seq := int64(i + 1)
		all = append(all, audit.Row(1, seq, r, data, audit.LeafHash(data)))
		for _, v := range values {
			all = append(all, &rows.AuditValue{Log: 1, Seq: seq, Field: v.Field, At: r.Occurred.UnixMicro(), Salt: v.Salt, Value: v.Text})
		}
	}
	for part := range slices.Chunk(all, 1000) {
		k.ok(k.Side().Change(k.ctx(), side.Cost{Rows: len(part)}, func(tx side.Tx) error { return tx.Put(part...) }))
	}
	return nodestore.New(k.Full, nil).Audit
}

// variedRecords returns records that differ in all that a filter can ask for. Some have the same time.
func variedRecords(n int) (list []audit.Record) {
	pick := func(i int, of ...string) string { return of[i%len(of)] }
	for i := range n {
		r := audit.Record{
			Occurred: auditStart().Add(time.Duration(i/2) * time.Second),
			Channel:  audit.Channel(pick(i, string(audit.Message), string(audit.Notification))), Kind: audit.Kind(pick(i/2, string(audit.MessageSend), string(audit.NotifyReach))),
			Status: audit.Status(pick(i, string(audit.Attempted), string(audit.Parked), string(audit.Success))),
			Site:   pick(i, "a", "b", "c"), Node: pick(i/3, "n", "o"), Instance: pick(i, "", "x"), Actor: pick(i, "anna", "", "berta", "system"),
			Target: pick(i, "t", "a@b", "", "u"), Correlation: pick(i/5, "c", "d", ""), Error: pick(i, "", "e"),
		}
		if r.Target == "a@b" {
			r.Personal = []string{"target"}
		}
		r.ID = audit.EventID(r.Occurred, fmt.Append(nil, i))
		list = append(list, r)
	}
	return list
}

func auditFound(k *kit) {
	list := variedRecords(60)
	db := k.putAudit(list...)
	fields := []func(f *audit.Filter){
		func(f *audit.Filter) { f.From = auditStart().Add(5 * time.Second) },
		func(f *audit.Filter) { f.Until = auditStart().Add(20 * time.Second) },
		func(f *audit.Filter) { f.Site = "b" }, func(f *audit.Filter) { f.Node = "o" }, func(f *audit.Filter) { f.Instance = "x" },
		func(f *audit.Filter) { f.Actor = "system" }, func(f *audit.Filter) { f.Target = "a@b" }, func(f *audit.Filter) { f.Target = "u" },
		func(f *audit.Filter) { f.Channel = audit.Notification }, func(f *audit.Filter) { f.Kind = audit.NotifyReach },
		func(f *audit.Filter) { f.Status = audit.Parked }, func(f *audit.Filter) { f.Status = audit.Success },
		func(f *audit.Filter) { f.Correlation = "d" }, func(f *audit.Filter) { f.ErrorsOnly = true }, func(f *audit.Filter) { f.Site = "nobody" },
	}
	for i := range fields {
		for j := i; j < len(fields); j++ {
			var f audit.Filter
			fields[i](&f)
			fields[j](&f)
			var want []holdfast.ID
			for at := range slices.Backward(list) {
				if f.Match(&list[at]) {
					want = append(want, list[at].ID)
				}
			}
			equal(k, fmt.Sprintf("found by %+v", f), k.queryAudit(db, audit.Query{Filter: f, Limit: 7}), want)
		}
	}
	whole, err := db.Query(k.ctx(), audit.Query{Limit: 60})
	k.ok(err)
	for i := range whole.Records {
		want := list[len(list)-1-i]
		f := whole.Records[i]
		equal(k, "record", f.Record, want)
		one, err := db.Record(k.ctx(), want.ID)
		k.ok(err)
		equal(k, "record by its id", one, f)
	}
	if whole.Next != "" || !whole.LookedUntil.IsZero() {
		k.t.Errorf("after the last page: next %q, looked until %s", whole.Next, whole.LookedUntil)
	}
	_, err = db.Record(k.ctx(), holdfast.NewID())
	k.fails(err, holdfast.ErrNotFound)
	_, err = db.Query(k.ctx(), audit.Query{After: "x"})
	k.fails(err, holdfast.ErrInvalid)
}

// queryAudit returns the ids of all pages.
func (k *kit) queryAudit(db *nodestore.Audit, q audit.Query) (ids []holdfast.ID) {
	k.t.Helper()
	for range 1000 {
		page, err := db.Query(k.ctx(), q)
		if err != nil || len(page.Records) > q.Limit {
			k.t.Fatalf("%+v: %d records, %v", q, len(page.Records), err)
		}
		for i := range page.Records {
			ids = append(ids, page.Records[i].ID)
		}
		if q.After = page.Next; q.After == "" {
			return ids
		}
	}
	k.t.Fatalf("%+v does not end", q)
	return nil
}

func auditLooked(k *kit) {
	list := variedRecords(5200)
	list[3].Kind = audit.SignIn
	db := k.putAudit(list...)
	q := audit.Query{Filter: audit.Filter{Kind: audit.SignIn}, Limit: 10}
	page, err := db.Query(k.ctx(), q)
	k.ok(err)
	if len(page.Records) != 0 || page.Next == "" || page.LookedUntil.Before(list[3].Occurred) || !page.LookedUntil.Before(list[5199].Occurred) {
		k.t.Errorf("a page that ends before what it looks for: %d records, next %q, looked until %s", len(page.Records), page.Next, page.LookedUntil)
	}
	equal(k, "all pages", k.queryAudit(db, q), []holdfast.ID{list[3].ID})
}

func auditCounted(k *kit) {
	db := nodestore.New(k.Full, nil).Audit
	n, err := db.KPIs(k.ctx(), time.Hour)
	k.ok(err)
	equal(k, "of an empty log", n, audit.KPIs{})
	list := variedRecords(30)
	old := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Microsecond)
	for i := range list {
		list[i].Occurred = old
		if i >= 12 {
			list[i].Occurred = old.Add(2 * time.Hour)
		}
	}
	db = k.putAudit(list...)
	n, err = db.KPIs(k.ctx(), time.Hour)
	k.ok(err)
	equal(k, "numbers", n, audit.KPIs{Records: 18, Errors: 6, Oldest: old, Newest: old.Add(2 * time.Hour)})
	by, err := db.SiteKPIs(k.ctx(), time.Hour, []string{"b", "none", "a"})
	k.ok(err)
	equal(k, "numbers by site", by, []audit.SiteKPIs{{Site: "b", Records: 6, Errors: 6}, {Site: "none"}, {Site: "a", Records: 6}})
}
