package sqlite_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/rows"
	"github.com/holdfast-mq/holdfast/sqlite"
)

func notification(id holdfast.ID, site string) holdfast.Bundle {
	n := notify.Notification{ID: id, Type: "Alarm", List: "ops", Subject: "Pump 3 stopped", Body: strings.Repeat("It stopped at noon. ", 20), Origin: notify.Origin{Site: site}}
	payload, err := notify.Encode(n)
	if err != nil {
		panic(err)
	}
	first := holdfast.Message{ID: n.Key(), Source: site, Destination: notify.LanePrefix + "mail", Endpoint: notify.Endpoint, Kind: holdfast.Command}
	return notify.BundleOf(&n, sha256.Sum256([]byte(id)), payload, []holdfast.Message{first}, []string{"mail"})
}

// rowOf is the row of its first copy.
func rowOf(b holdfast.Bundle) *rows.Notification { return b.Rows[0].(*rows.Notification) }

func ingest(t testing.TB, db *sqlite.DB, list ...holdfast.Bundle) {
	t.Helper()
	results, err := db.Bundle(t.Context(), list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil || r.Receipt.Duplicate {
			t.Fatalf("ingest: %+v", r)
		}
	}
}

// BenchmarkIngest is 64 callers, one notification each: they share commits.
func BenchmarkIngest(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			ingest(b, db, notification(holdfast.NewID(), "plant-1"))
		}
	})
}

// BenchmarkIngestBatch is a batch of a site's backlog.
func BenchmarkIngestBatch(b *testing.B) {
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	for b.Loop() {
		list := make([]holdfast.Bundle, 500)
		for i := range list {
			list[i] = notification(holdfast.NewID(), "plant-1")
		}
		ingest(b, db, list...)
	}
}

// BenchmarkKPIs counts a backlog of ten thousand beside many more that were delivered.
func BenchmarkKPIs(b *testing.B) {
	const delivered, waiting = 100_000, 10_000
	db := fresh(b, sqlite.Options{})
	defer shut(b, db)
	for n := 0; n < delivered+waiting; n += 500 {
		list := make([]holdfast.Bundle, 500)
		for i := range list {
			list[i] = notification(holdfast.NewID(), fmt.Sprint("plant-", i%100))
		}
		ingest(b, db, list...)
		if n < delivered {
			batch, err := db.Claim(b.Context(), map[string]int{notify.LanePrefix + "mail": 500})
			if err != nil {
				b.Fatal(err)
			}
			settleAll(b, db, batch.Claims)
		}
	}
	for b.Loop() {
		if all, _, err := db.KPIs(b.Context(), time.Minute, time.Millisecond); err != nil || all.Depth != waiting {
			b.Fatalf("%+v, %v", all, err)
		}
	}
}
