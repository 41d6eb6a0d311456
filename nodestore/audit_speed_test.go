package nodestore_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/audit"
	"github.com/holdfast-mq/holdfast/internal/side"
	"github.com/holdfast-mq/holdfast/nodestore"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

var auditSize = flag.Int("audit-records", 6000, "how many records the test of audit queries has; the time of pages is judged from a million on, on a quiet machine")

// fillAudit writes n records, one a second: 10 sites, 20 actors, 50 targets, one error in 100, 8 records of
// a correlation id. Each name has a rare form, which the oldest 3 records have.
func fillAudit(t *testing.T, db *sqlite.DB, n int, end time.Time) *nodestore.Audit {
	t.Helper()
	put := func(list []rows.Row) {
		if err := db.Side().Change(t.Context(), side.Cost{Rows: len(list)}, func(tx side.Tx) error { return tx.Put(list...) }); err != nil {
			t.Fatal(err)
		}
	}
	list := []rows.Row{&rows.AuditLog{Log: 1, Origin: "o", Own: true, Opened: rows.Now, Size: int64(n), Head: make([]byte, 32)}}
	for i := range n {
		r := auditRecord(i)
		r.ID, r.Occurred = holdfast.NewID(), end.Add(time.Duration(i-n)*time.Second)
		data, _, err := r.Leaf()
		if err != nil {
			t.Fatal(err)
		}
		if list = append(list, audit.Row(1, int64(i+1), &r, data, audit.LeafHash(data))); len(list) >= 2000 || i == n-1 {
			put(list)
			list = list[:0]
		}
	}
	return nodestore.New(db, nil).Audit
}

func auditRecord(i int) audit.Record {
	if i < 3 {
		return audit.Record{
			Channel: audit.DBOutbound, Kind: audit.CachedCall, Status: audit.Expired, Site: "rare", Node: "rare", Instance: "rare", Actor: "rare", Target: "rare", Correlation: "rare",
		}
	}
	r := audit.Record{
		Channel: audit.Message, Kind: audit.MessageSend, Status: audit.Success, Site: fmt.Sprint("site-", i%10), Node: fmt.Sprint("node-", i%4), Instance: fmt.Sprint("instance-", i%3),
		Actor: fmt.Sprint("actor-", i%20), Target: fmt.Sprint("target-", i%50), Correlation: fmt.Sprint("corr-", i/8),
	}
	if i%100 == 0 {
		r.Status = audit.Parked
	}
	return r
}

// The first page of each filter, each pair, and all at once, with many, few and no matches, comes in
// 50 ms, or says how far it looked.
func TestAuditPagesComeSoon(t *testing.T) {
	t.Parallel()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "holdfast.db"), sqlite.Options{Reserve: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	end, n := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), *auditSize
	store := fillAudit(t, db, n, end)
	var times []time.Duration
	cut := 0
	for _, form := range []string{"many", "few", "none"} {
		set := auditFields(form, n, end)
		for i := range set {
			for j := i; j <= len(set); j++ { // one, two, and all
				var q audit.Query
				set[i](&q.Filter)
				name := fmt.Sprintf("%s %d+%d", form, i, j)
				switch {
				case j < len(set):
					set[j](&q.Filter)
				case i == 0:
					for _, field := range set {
						field(&q.Filter)
					}
				default:
					continue
				}
				q.Limit = 50
				began := time.Now()
				page, err := store.Query(t.Context(), q)
				took := time.Since(began)
				if err != nil {
					t.Fatal(name, err)
				}
				whole := page.LookedUntil.IsZero()
				if !whole && page.Next == "" || len(page.Records) > q.Limit || !whole && page.LookedUntil.After(end) {
					t.Errorf("%s: %d records, looked until %s, next %q", name, len(page.Records), page.LookedUntil, page.Next)
				}
				if !whole && len(page.Records) < q.Limit {
					cut++
				}
				if times = append(times, took); n >= 1_000_000 && took > 60*time.Millisecond {
					t.Errorf("%s took %s, %d records, all looked at: %t", name, took, len(page.Records), whole)
				}
			}
		}
	}
	slices.Sort(times)
	t.Logf("%d records, %d first pages: half within %s, the slowest %s; %d of them say how far they looked before they were full",
		n, len(times), times[len(times)/2], times[len(times)-1], cut)
}

// auditFields are the fields of a filter, each with many, few or no matches.
func auditFields(form string, n int, end time.Time) []func(*audit.Filter) {
	pick := func(many string) string {
		return map[string]string{"many": many, "few": "rare", "none": "nobody"}[form]
	}
	when := map[string]time.Time{"many": end.Add(-time.Duration(n/2) * time.Second), "few": end.Add(-3 * time.Second), "none": end.Add(time.Hour)}[form]
	corr := pick(fmt.Sprint("corr-", (n-4)/8))
	fields := []func(*audit.Filter){
		func(f *audit.Filter) { f.From = when },
		func(f *audit.Filter) { f.Site = pick("site-4") },
		func(f *audit.Filter) { f.Node = pick("node-0") },
		func(f *audit.Filter) { f.Instance = pick("instance-1") },
		func(f *audit.Filter) { f.Actor = pick("actor-4") },
		func(f *audit.Filter) { f.Target = pick("target-4") },
		func(f *audit.Filter) { f.Correlation = corr },
		func(f *audit.Filter) { f.Channel = audit.Channel(pick(string(audit.Message))) },
		func(f *audit.Filter) { f.Kind = audit.Kind(pick(string(audit.MessageSend))) },
		func(f *audit.Filter) { f.Status = audit.Status(pick(string(audit.Parked))) },
	}
	return append(fields, func(f *audit.Filter) { f.ErrorsOnly = true })
}
