package postgres_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/postgres"
)

// A site sends again, by another way, what it has no answer to: of the nodes that
// take the same ids at once, one stores each, and the others see it. NO-01, NO-20.
func TestNodesThatIngestTheSameIDsAtOnce(t *testing.T) {
	t.Parallel()
	for what, messages := range map[string]func(b holdfast.Bundle) holdfast.Bundle{
		"as a site sends them":     func(b holdfast.Bundle) holdfast.Bundle { return b },
		"with ids that are unlike": func(b holdfast.Bundle) holdfast.Bundle { b.Messages[0].ID = ""; return b },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			ingestAtOnce(t, messages)
		})
	}
}

func ingestAtOnce(t *testing.T, messages func(b holdfast.Bundle) holdfast.Bundle) {
	t.Helper()
	const nodes, ids = 3, 200
	dsn := database(t)
	var first, known atomic.Int64
	var wait sync.WaitGroup
	for n := range nodes {
		db := opened(t, dsn, postgres.Options{Node: fmt.Sprint("node-", n)})
		for half := range 2 {
			wait.Go(func() {
				for i := range ids {
					if half == 1 {
						i = ids - 1 - i
					}
					of := func(i int) holdfast.Bundle {
						return messages(notification(holdfast.ID(fmt.Sprint("n-", i)), "plant-1"))
					}
					results, err := db.Bundle(t.Context(), of(i), of((i+7)%ids))
					if err != nil {
						t.Errorf("ingest: %v", err)
						return
					}
					for _, r := range results {
						switch {
						case r.Err != nil:
							t.Errorf("ingest: %v", r.Err)
						case r.Receipt.Duplicate:
							known.Add(1)
						default:
							first.Add(1)
						}
					}
				}
			})
		}
	}
	wait.Wait()
	if first.Load() != ids || known.Load() != nodes*2*2*ids-ids {
		t.Errorf("%d were new and %d known, want %d new", first.Load(), known.Load(), ids)
	}
	if n := number(t, dsn, "SELECT count(*) FROM hf_notification JOIN hf_message USING (seq)"); n != ids {
		t.Errorf("%d are stored, want %d", n, ids)
	}
}

// BenchmarkIngest is 64 callers, one notification each: they share transactions.
func BenchmarkIngest(b *testing.B) {
	db := opened(b, database(b), postgres.Options{})
	b.SetParallelism(32)
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			results, err := db.Bundle(b.Context(), notification(holdfast.NewID(), "plant-1"))
			if err != nil || results[0].Err != nil {
				b.Fatalf("%+v, %v", results, err)
			}
		}
	})
}

// The numbers are read by the lanes of channels, whatever else there is. NO-17.
func TestNumbersBesideManyOtherMessages(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := opened(t, dsn, postgres.Options{})
	ms := make([]holdfast.Message, 2000)
	for i := range ms {
		ms[i] = holdfast.Message{Destination: "a", Endpoint: "E"}
	}
	if _, err := db.Enqueue(t.Context(), ms...); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Bundle(t.Context(), notification("n", "plant-1")); err != nil {
		t.Fatal(err)
	}
	all, sites, err := db.KPIs(t.Context(), time.Hour, time.Minute)
	if err != nil || all.Depth != 1 || len(sites) != 1 || sites["plant-1"].Depth != 1 {
		t.Errorf("got %+v, %+v, %v", all, sites, err)
	}
	// They hide nothing in a list of what waits either.
	p, err := db.Notifications(t.Context(), notify.Query{Status: []notify.Status{notify.Pending}})
	if err != nil || len(p.Records) != 1 {
		t.Errorf("listed %+v, %v", p, err)
	}
}
