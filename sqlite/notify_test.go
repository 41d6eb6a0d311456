package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/internal/racetest"
	"github.com/holdfast-mq/holdfast/internal/search"
	"github.com/holdfast-mq/holdfast/notify"
	"github.com/holdfast-mq/holdfast/sqlite"
)

// A page reads a bounded number of rows, however few of them it shows, and the
// next one goes on from there. A time range is found without walking. NO-18.
func TestAPageOfNotificationsIsBounded(t *testing.T) {
	t.Parallel()
	racetest.Without(t, "thousands of rows")
	const n = search.Rows + 500
	db := fresh(t, sqlite.Options{})
	defer shut(t, db)
	first := notification("first", "plant-1")
	rowOf(first).Subject = "The first of all"
	ingest(t, db, first)
	for i := 0; i < n; i += 500 {
		list := make([]holdfast.Bundle, 500)
		for j := range list {
			list[j] = notification(holdfast.ID(fmt.Sprint("n-", i+j)), "plant-1")
		}
		ingest(t, db, list...)
	}
	pages := 0
	var found []notify.Record
	for q := (notify.Query{Subject: "first"}); ; pages++ {
		p, err := db.Notifications(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p.Records...)
		if q.After = p.Next; q.After == "" {
			break
		}
	}
	if pages != 1 || len(found) != 1 || found[0].Notification.ID != "first" {
		t.Errorf("found %v on %d pages", found, pages+1)
	}
	middle, err := db.Notification(t.Context(), "plant-1", "n-400")
	if err != nil {
		t.Fatal(err)
	}
	p, err := db.Notifications(t.Context(), notify.Query{To: middle[0].Created, Limit: 3})
	if err != nil || len(p.Records) != 3 || p.Records[0].Seq > middle[0].Seq+500 || p.Records[0].Created.After(middle[0].Created.Add(time.Millisecond)) {
		t.Errorf("until then: %+v, %v", p, err)
	}
}
