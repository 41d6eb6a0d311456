package postgres_test

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-mq/holdfast"
	"github.com/holdfast-mq/holdfast/postgres"
)

// heldRows are 12,000 that wait for a lane that nobody serves, and as many that are parked,
// with a TTL of a day each.
func heldRows() []string {
	return slices.Concat(lanes(), []string{
		`INSERT INTO hf_message SELECT n, int8send(n), 2, 2, t, 'x', NULL, NULL, NULL, 0, 86400000000, NULL FROM generate_series(1001, 25000) AS n, (SELECT hf_now() AS t) AS now`,
		`INSERT INTO hf_queue (seq, lane, due, start, expires) SELECT seq, lane, created, created, created + ttl FROM hf_message WHERE seq <= 13000`,
		`INSERT INTO hf_final SELECT seq, lane, 3, created, created + ttl, 0, 1, 1, NULL, false, 'permanent', NULL FROM hf_message WHERE seq > 13000`,
		`INSERT INTO hf_tally (owner, lane, pending, parked) VALUES (0, 2, 12000, 12000)`,
	})
}

// turn expires what is over, and tells how many, and in how many pages.
func turn(t *testing.T, db *postgres.DB) (ended, pages int) {
	t.Helper()
	for more := true; more; pages++ {
		n, again, err := db.Expire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended, more = ended+n, again
	}
	return ended, pages
}

// F1-52: what a doubted clock holds is read once, in pages, and not at each sweep; what
// is over meanwhile ends all the same, and all of it does when the clock is believed.
func TestASweepPassesOverWhatIsHeld(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	db := open(t, dsn, postgres.Options{})
	if err := sql(t.Context(), dsn, heldRows()...); err != nil {
		t.Fatal(err)
	}
	shut(t, db)
	step(t, dsn, 48*time.Hour)
	db = opened(t, dsn, postgres.Options{})
	// For each of the two tables: what is over for certain, and the pages of the rest.
	const none, all = 2 * 2, 2 * (1 + 3)
	sweep := func(when string, wantEnded, wantPages int) {
		t.Helper()
		if ended, pages := turn(t, db); ended != wantEnded || pages != wantPages {
			t.Errorf("%s: %d ended in %d pages, want %d in %d", when, ended, pages, wantEnded, wantPages)
		}
	}
	sweep("the first sweep", 0, all)
	sweep("the second", 0, none)
	if d := db.Doubt(); d.Held != 24_000 {
		t.Errorf("%d are held", d.Held)
	}
	listed := map[int64]bool{}
	for q := (holdfast.Query{Held: true, Limit: 500}); ; {
		p, err := db.List(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Records {
			listed[p.Records[i].Seq] = true
		}
		if q.After = p.Next; q.After == "" {
			break
		}
		if len(p.Records) != 500 {
			t.Fatalf("a page has %d messages", len(p.Records))
		}
	}
	if len(listed) != 24_000 {
		t.Errorf("%d are listed", len(listed))
	}
	put(t, db, holdfast.Message{ID: "new", TTL: time.Minute})
	pass(t, dsn, 2*time.Minute)
	sweep("with one that is over", 1, none)
	db.HearTime(time.UnixMicro(int64(number(t, dsn, "SELECT hf_raw()"))).Add(-48 * time.Hour))
	sweep("when another clock has prolonged the hold", 0, none)
	pass(t, dsn, 20*time.Minute)
	sweep("after a while", 0, all)
	db.HearTime(time.UnixMicro(int64(number(t, dsn, "SELECT hf_raw()"))).Add(time.Second))
	sweep("when the clock is confirmed", 24_000, 2*(24+1))
	if d := db.Doubt(); d.Held != 0 {
		t.Errorf("%d are held, and the clock is believed", d.Held)
	}
}
